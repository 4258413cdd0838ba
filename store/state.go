package store

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Key is the dedup key of an envelope.
type Key struct{ WorkspaceID, ID string }

// WorkKey names a unit of work.
type WorkKey struct{ WorkspaceID, WorkID string }

// ContainerKey names a thread or a direct room.
type ContainerKey struct {
	WorkspaceID, Channel string
	core.Container
}

// Member names a peer in a thread.
type Member struct {
	Container ContainerKey
	Peer      string
}

// PeerKey names a peer of a workspace.
type PeerKey struct{ WorkspaceID, Peer string }

// Needs lists the rows that a group of envelopes touches. Repeats are allowed.
type Needs struct {
	Keys       []Key
	Works      []WorkKey
	Containers []ContainerKey
	Members    []Member
	Peers      []PeerKey
	// Owners are agents that may be woken, Causes the keys of envelopes that may
	// stem from a wake or have caused one, and Runs the ids of wakes.
	Owners []OwnerKey
	Causes []Key
	Runs   []int64
}

// State holds the rows that Needs named, as they stand in the transaction. What
// is missing from a map does not exist. The committer changes it in memory, so
// that each envelope of a group sees the effect of those before it.
type State struct {
	Keys       map[Key]*Known
	Works      map[WorkKey]*Work
	Containers map[ContainerKey]*Container
	Members    map[Member]bool
	Peers      map[PeerKey]*Peer
	// Parked holds, in order of arrival, what waits for the opener of a work.
	Parked map[WorkKey][]*Parked
	// Owners holds the agents by their recipient, Causes the wakes that an
	// envelope was a source or a product of, and Runs every wake that either
	// names: one wake is one Run.
	Owners map[int64]*Owner
	Causes map[Key][]*Run
	Runs   map[int64]*Run
}

// Known is an id that was committed before.
type Known struct {
	// Seq is 0 while the message is parked.
	Seq         int64
	Parked      bool
	Content     [32]byte
	CommittedAt time.Time
	// Recipients are those to whom a delivery of the message exists.
	Recipients []int64
}

// Work is a unit of work.
type Work struct {
	Key       WorkKey
	Channel   string
	Container core.Container
	Initiator string
	Target    string
	State     core.WorkState
	OpenedSeq int64
	// UpdatedSeq and UpdatedAt are of the last message that changed the state.
	UpdatedSeq int64
	UpdatedAt  time.Time
}

// Container is a thread or a direct room.
type Container struct {
	Key ContainerKey
	// PeerA and PeerB are the two peers that a direct room is bound to.
	PeerA, PeerB string
	// Participants counts the members of a thread.
	Participants int
	Messages     int64
	LastSeq      int64
	LastAt       time.Time
}

// Peer is what is known of a peer.
type Peer struct {
	Key PeerKey
	// Link is the recipient id of the link it was last heard on, 0 if never.
	Link      int64
	Channel   string
	LastHeard time.Time
	// Card is the card as it came, nil when unchanged or unknown; CardLink and
	// CardAt say where and when it was heard.
	Card     []byte
	CardLink int64
	CardAt   time.Time
}

// Parked is a receipt or trace that waits for the opener of its work.
type Parked struct {
	// ID orders by arrival.
	ID         int64
	Key        Key
	WorkID     string
	From, To   string
	Carrier    string
	Arrival    core.Arrival
	Address    *core.Address
	ReceivedAt time.Time
	// FreshUntil is when it ends as not_found.
	FreshUntil time.Time
	Content    [32]byte
	Payload    []byte
	// KnownUntil is how long its key must stay known.
	KnownUntil time.Time
}

// Changes is what a group commits, in one transaction. Slices are in order.
type Changes struct {
	Now time.Time
	// Messages have seqs that grow, above all that were committed before.
	Messages   []Message
	Deliveries []NewDelivery
	Parked     []*Parked
	// Unparked are the ids of parked rows that were released or given up.
	Unparked []int64
	// Forgotten are keys given up because what was parked under them ended in a
	// rejection.
	Forgotten  []Key
	Rejections []Rejection
	// Works, Containers, Members and Peers are whole rows to be written.
	Works      []*Work
	Containers []*Container
	Members    []Member
	Peers      []*Peer
	// Results are the outcomes of deliveries.
	Results []Result
	// Wakes are admitted, Joined are messages that come to an open one, Products
	// are envelopes that were written in one, and Waiting is weighed again later.
	Wakes    []*NewWake
	Joined   []Joined
	Products []Product
	Waiting  []Waiting
}

// Message is an accepted message to be stored.
type Message struct {
	Seq       int64
	Key       Key
	Channel   string
	Container core.Container
	Kind      core.Kind
	WorkID    string
	// ForID is the message that a receipt speaks of.
	ForID string
	// Carrier is the configured name of the carrier it came in on; for the
	// gateway's own messages, the gateway's name.
	Carrier     string
	Arrival     core.Arrival
	CommittedAt time.Time
	Content     [32]byte
	// KnownUntil is how long its key must stay known.
	KnownUntil time.Time
	Ignored    []Ignored
	// Skips say who got no wake of its own for it.
	Skips   []Skipped
	Payload []byte
	// Released is true when the message was parked before, so its key is known
	// already.
	Released bool
}

// Ignored is an ignore decision.
type Ignored struct {
	Recipient int64
	Reason    core.Ignore
}

// NewDelivery is a deliver decision and its outbox row.
type NewDelivery struct {
	ID core.DeliveryID
	// Position orders the recipient's queue.
	Position int64
	// To is the peer whose address it goes to, empty for broadcast.
	To string
	// Deadline is the instant after which it is not written any more.
	Deadline time.Time
	// Direct is true for a direct room's message: when its recipient is an
	// attached-peer row and the peer is heard on a link, it moves there.
	Direct bool
}

// Rejection is a refused frame: never its content.
type Rejection struct {
	Hash    [32]byte
	Size    int64
	Carrier string
	// ClaimedWorkspaceID, ClaimedID and ClaimedFrom are what the frame said, cut
	// to a bounded length.
	ClaimedWorkspaceID, ClaimedID, ClaimedFrom string
	Reason                                     core.Reason
	Detail                                     string
	At                                         time.Time
}

// Result is the outcome of a delivery, or of one attempt.
type Result struct {
	ID       core.DeliveryID
	State    core.DeliveryState
	Attempts int
	// Ack is set when State is acked.
	Ack core.Ack
	// Reason is why it is dead; LastError what the last attempt met.
	Reason    string
	LastError string
	// NextAttempt is set when State is pending: not before then.
	NextAttempt time.Time
}

// Pending is a delivery that waits to be sent.
type Pending struct {
	ID       core.DeliveryID
	Position int64
	To       string
	Attempts int
	Deadline time.Time
	// NextAttempt is zero or the instant before which it must not be tried.
	NextAttempt time.Time
	// Held is true for what waits for a wake of its recipient.
	Held    bool
	Payload []byte
}

// Queue is what waits for a recipient.
type Queue struct {
	Recipient int64
	// Pending counts its pending deliveries, Late those of them whose deadline has
	// come.
	Pending, Late int64
}

// RecipientRow is a recipient with its id.
type RecipientRow struct {
	ID int64
	core.Recipient
	// Attached is true while an attached peer is attached.
	Attached bool
	Push     bool
	// Pending counts its pending deliveries.
	Pending int64
}
