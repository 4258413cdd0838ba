package core

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The types here are what readers of the store are shown. Times are UTC. Their
// JSON is the HTTP interface's.

// Message is one committed message of the history.
type Message struct {
	Seq         int64          `json:"seq"`
	CommittedAt time.Time      `json:"committed_at"`
	Carrier     string         `json:"carrier"`
	Envelope    jsontext.Value `json:"envelope"`

	// ID, WorkspaceID and Channel are the message's own, for those who route by
	// them without parsing.
	ID          string `json:"-"`
	WorkspaceID string `json:"-"`
	Channel     string `json:"-"`
	// Direct holds the two peers of a direct room's message, empty otherwise:
	// only they (and admins) may read it.
	Direct [2]string `json:"-"`
}

// MayRead reports whether the peer (empty: nobody in particular) may read the
// message.
func (m *Message) MayRead(peer string) bool {
	return m.Direct[0] == "" || (peer != "" && (peer == m.Direct[0] || peer == m.Direct[1]))
}

// HistoryQuery selects messages of one channel, oldest first.
type HistoryQuery struct {
	WorkspaceID string
	Channel     string
	// After is the seq behind which to start.
	After int64
	// Limit is the most messages to return, at least 1.
	Limit int
	// Kind, ThreadID and WorkID narrow, when not empty.
	Kind     Kind
	ThreadID string
	WorkID   string
	// Peer is who asks: that peer's direct rooms are shown. Admin sees all.
	Peer  string
	Admin bool
}

// Decision is one recipient decision of a message, as it was committed.
type Decision struct {
	Recipient string `json:"recipient"`
	// Decision is "deliver" or "ignore".
	Decision string `json:"decision"`
	Reason   Ignore `json:"reason,omitempty"`
}

// Delivery is one delivery of a message as it stands now.
type Delivery struct {
	ID        string        `json:"id"`
	Recipient string        `json:"recipient"`
	State     DeliveryState `json:"state"`
	Attempts  int           `json:"attempts"`
	// Ack is the carrier's acknowledgement, null until there is one. It is not a
	// receipt.
	Ack       *AckView `json:"ack"`
	Reason    string   `json:"reason,omitempty"`
	LastError string   `json:"last_error,omitempty"`
}

// AckView is a carrier's acknowledgement as readers see it.
type AckView struct {
	Kind   AckKind   `json:"kind"`
	At     time.Time `json:"at"`
	Detail string    `json:"detail,omitempty"`
}

// ReceiptView is a receipt message about another message.
type ReceiptView struct {
	// Channel is where the receipt was sent, for those who judge by it.
	Channel    string        `json:"-"`
	Seq        int64         `json:"seq"`
	ID         string        `json:"id"`
	From       string        `json:"from"`
	Status     ReceiptStatus `json:"status"`
	ReasonCode string        `json:"reason_code,omitempty"`
	Detail     string        `json:"detail,omitempty"`
}

// Inspection is everything that is known of one message: the decisions, the
// carriers' acknowledgements and the receipts, side by side.
type Inspection struct {
	// Seq is null while the message is parked.
	Seq         *int64         `json:"seq"`
	CommittedAt time.Time      `json:"committed_at"`
	Carrier     string         `json:"carrier"`
	Arrival     string         `json:"arrival"`
	Parked      bool           `json:"parked"`
	Envelope    jsontext.Value `json:"envelope"`
	Decisions   []Decision     `json:"decisions"`
	Deliveries  []Delivery     `json:"deliveries"`
	Receipts    []ReceiptView  `json:"receipts"`
	// Wakes are those that the message admitted or joined, or that followed for
	// its sake; Skips say why a recipient got no wake of its own.
	Wakes []WakeView `json:"wakes"`
	Skips []SkipView `json:"skips"`
	// Participations holds, by recipient, the participation of every agent that
	// Wakes and Skips speak of.
	Participations map[string]Participation `json:"resolved_network_participation"`

	// Parties are the only peers who may read it (with admins); both empty means
	// everybody with access to the channel.
	Parties [2]string `json:"-"`
	Channel string    `json:"-"`
}

// WorkView is one unit of work.
type WorkView struct {
	WorkspaceID string    `json:"workspace_id"`
	WorkID      string    `json:"work_id"`
	Channel     string    `json:"channel"`
	Surface     Surface   `json:"surface"`
	ContainerID string    `json:"container_id"`
	Initiator   string    `json:"initiator"`
	Target      string    `json:"target"`
	State       WorkState `json:"state"`
	OpenedSeq   int64     `json:"opened_seq"`
	UpdatedSeq  int64     `json:"updated_seq"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// PeerView is one peer and where it is.
type PeerView struct {
	WorkspaceID string `json:"workspace_id"`
	Peer        string `json:"peer"`
	// Attached lists the channels in which the peer is attached here.
	Attached []string `json:"attached"`
	// Carrier is where the peer was last heard, empty if never.
	Carrier   string     `json:"carrier,omitempty"`
	Channel   string     `json:"channel,omitempty"`
	LastHeard *time.Time `json:"last_heard,omitempty"`
	// Card is what the peer last said of itself: a claim, never a permission.
	Card        jsontext.Value `json:"card,omitempty"`
	CardCarrier string         `json:"card_carrier,omitempty"`
	CardAt      *time.Time     `json:"card_at,omitempty"`
}

// ThreadView is one public thread.
type ThreadView struct {
	WorkspaceID  string    `json:"workspace_id"`
	Channel      string    `json:"channel"`
	ThreadID     string    `json:"thread_id"`
	Participants int       `json:"participants"`
	Messages     int64     `json:"messages"`
	LastSeq      int64     `json:"last_seq"`
	LastAt       time.Time `json:"last_at"`
}

// DeadLetter is a delivery that was given up.
type DeadLetter struct {
	Delivery    string `json:"delivery"`
	Recipient   string `json:"recipient"`
	WorkspaceID string `json:"workspace_id"`
	ID          string `json:"id"`
	Reason      string `json:"reason"`
	Attempts    int    `json:"attempts"`
	LastError   string `json:"last_error,omitempty"`
}

// InboxEntry is one entry of an attached peer's inbox.
type InboxEntry struct {
	// Position is the entry's place in this inbox.
	Position int64          `json:"position"`
	Seq      int64          `json:"seq"`
	Envelope jsontext.Value `json:"envelope"`
	Delivery DeliveryID     `json:"-"`
	// Served is true when the entry was handed out before.
	Served bool `json:"-"`
}

// Trouble is why a carrier is not ready, in a word that gives nothing away.
type Trouble string

// The kinds of trouble.
const (
	// TroubleStore: the store cannot write, so that no carrier may take anything.
	TroubleStore Trouble = "store"
	// TroubleAgents: an agent does not run, or does not read.
	TroubleAgents Trouble = "agents"
	// TroubleLink: a connection or a listener is not there, or refused.
	TroubleLink Trouble = "link"
)

// CarrierView is one carrier as readers see it.
type CarrierView struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	State State  `json:"state"`
	// Trouble is the kind of what is missing, for programs; Why is for people.
	Trouble     Trouble        `json:"trouble,omitempty"`
	Why         string         `json:"why,omitempty"`
	LastReceive *time.Time     `json:"last_receive,omitempty"`
	LastSend    *time.Time     `json:"last_send,omitempty"`
	Dropped     uint64         `json:"dropped"`
	MaxPayload  int            `json:"max_payload"`
	InFlight    int            `json:"in_flight"`
	Redelivers  bool           `json:"redelivers"`
	Ordered     bool           `json:"ordered"`
	AckKind     AckKind        `json:"ack_kind"`
	Guarantee   string         `json:"guarantee"`
	Detail      map[string]any `json:"detail,omitempty"`
}
