package http

import (
	"context"
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// Reader is what readers are shown of the store. All methods may be called
// concurrently. What does not exist is core.ErrNotFound.
type Reader interface {
	// History gives messages of one channel, oldest first, and the position
	// behind which the next page starts, nil at the end.
	History(ctx context.Context, q core.HistoryQuery) ([]core.Message, *int64, error)
	// MessagesAfter gives up to limit messages of the channel behind the
	// position, oldest first, also those of direct rooms: the caller filters by
	// Message.MayRead. Fewer than limit means that these were all at that moment.
	MessagesAfter(ctx context.Context, workspace, channel string, after int64, limit int) ([]core.Message, error)
	// Inspect gives everything that is known of one message.
	Inspect(ctx context.Context, workspace, id string) (*core.Inspection, error)
	// Work gives one unit of work.
	Work(ctx context.Context, workspace, workID string) (*core.WorkView, error)
	// Threads lists up to limit public threads of a workspace, the latest first,
	// of those channels that are visible.
	Threads(ctx context.Context, workspace string, limit int, visible func(channel string) bool) ([]core.ThreadView, error)
	// Peers lists the known peers of a workspace.
	Peers(ctx context.Context, workspace string) ([]core.PeerView, error)
	// SeqRange gives the positions from oldest to newest between which every
	// message is retained. When none is, oldest is newest + 1.
	SeqRange(ctx context.Context) (oldest, newest int64, err error)
	// Committed gives a channel that is closed when something more has been
	// committed. Call it again for the next time, and before reading what must
	// not be missed.
	Committed() <-chan struct{}
}

// Inboxes is the pulled side of attached peers.
type Inboxes interface {
	// Inbox gives up to limit entries that are still deliverable and stand behind
	// the position, in order.
	Inbox(ctx context.Context, at core.Attachment, after int64, limit int) ([]core.InboxEntry, error)
	// LastPosition is the highest position that any inbox has given yet, and any
	// later entry stands behind it.
	LastPosition(ctx context.Context) (int64, error)
	// Served records, durably, that the entries up to the position were served.
	Served(ctx context.Context, at core.Attachment, position int64) error
	// AckThrough acknowledges the served entries up to the position, never one
	// that was not served, and gives their number.
	AckThrough(ctx context.Context, at core.Attachment, position int64, ack core.Ack) (int, error)
}

// DeadLetters are the deliveries that were given up.
type DeadLetters interface {
	// DeadLetters lists up to limit of them behind the delivery id, "" for the
	// first.
	DeadLetters(ctx context.Context, after string, limit int) ([]core.DeadLetter, error)
	// Replay makes one pending again. core.ErrExpired says that its message may
	// not be delivered any more.
	Replay(ctx context.Context, id core.DeliveryID) error
	// Discard gives one up for good.
	Discard(ctx context.Context, id core.DeliveryID) error
}

// Agents are the agents that the gateway hosts.
type Agents interface {
	// Agents lists them all.
	Agents(ctx context.Context) ([]core.AgentView, error)
	// RenewAgent gives one, by its name or CARRIER.NAME, a new participation.
	// core.ErrForbidden says that there is nothing to renew, or not now.
	RenewAgent(ctx context.Context, name string) error
}

// Pins knows which peer ids are reserved, by any carrier, and for whom.
type Pins interface {
	// MaySpeakFor reports whether the principal, a token of this carrier or "",
	// may read and act as the peer.
	MaySpeakFor(workspace, peer, principal string) bool
	// IsAgent reports whether the gateway hosts an agent under the peer id in the
	// workspace.
	IsAgent(workspace, peer string) bool
}

// Fleet tells of all carriers of the gateway, this one included.
type Fleet interface {
	Carriers() []core.CarrierView
}

// Backend is the reading side of the gateway, behind the HTTP interface.
type Backend struct {
	Reader      Reader
	Inboxes     Inboxes
	DeadLetters DeadLetters
	Fleet       Fleet
	Pins        Pins
	// Rejections is nil where there is no log of them.
	Rejections Rejections
	// Agents is nil where no agents are hosted.
	Agents Agents
	// Metrics answers /metrics; nil means that there are none.
	Metrics nethttp.Handler
}
