package core

import "time"

// Protocol is the one value of the envelope's protocol field.
const Protocol = "compozy-network/v0"

// Surface says what kind of conversation a message belongs to.
type Surface string

// The two surfaces of conversation kinds.
const (
	SurfaceThread Surface = "thread"
	SurfaceDirect Surface = "direct"
)

// Envelope holds the fields that the gateway reads, and in Raw the bytes that
// it stores and forwards. A field that is absent or null is its zero value.
type Envelope struct {
	Protocol    string
	ID          string
	WorkspaceID string
	Kind        Kind
	Channel     string
	Surface     Surface
	ThreadID    string
	DirectID    string
	From        string
	To          string
	// Mentions are without repeats, in the order of first appearance.
	Mentions []string
	// WorkID is the trimmed form, which is the identity of the work.
	WorkID      string
	ReplyTo     string
	TraceID     string
	CausationID string
	// TS is the sender's clock in Unix seconds.
	TS int64
	// ExpiresAt is in Unix seconds, and counts only when HasExpiry.
	ExpiresAt int64
	HasExpiry bool

	// Body is the object of the body field as it came; Ext and Proof likewise,
	// nil when absent.
	Body  []byte
	Ext   []byte
	Proof []byte

	// Receipt, Trace, Whois, Card and Capability are filled by CheckBody for the
	// kinds that have them.
	Receipt    *Receipt
	Trace      *Trace
	Whois      *Whois
	Card       *PeerCard
	Capability *Capability
	// Text is the text of a say, filled by CheckBody.
	Text string

	// Content is the SHA-256 by which a retry is told from a reuse of the id: of
	// the bytes without white space between tokens and without the top-level
	// members ts, expires_at and proof.
	Content [32]byte
	// Raw is the envelope's bytes as they came, without the white space around
	// the object.
	Raw []byte
}

// Receipt is the body of a receipt.
type Receipt struct {
	ForID      string
	Status     ReceiptStatus
	ReasonCode string
	Detail     string
}

// Trace is the body of a trace.
type Trace struct {
	State WorkState
}

// Whois is the body of a whois. The card of a response stands in
// Envelope.Card.
type Whois struct {
	// Type is "request" or "response".
	Type  string
	Query string
}

// PeerCard is what a peer says of itself. It is a claim and never grants
// anything.
type PeerCard struct {
	PeerID             string
	DisplayName        string
	ProfilesSupported  []string
	Capabilities       []string
	ArtifactsSupported []string
	TrustModes         []string
	// Raw is the card as it came.
	Raw []byte
}

// FreshnessPolicy bounds how old, how far ahead and how long-lived an envelope
// may be.
type FreshnessPolicy struct {
	MaxReplayAge time.Duration
	MaxLifetime  time.Duration
}

// Container is the thread or direct room that a message belongs to. Its zero
// value is no container.
type Container struct {
	Surface Surface
	// ID is the thread_id or the direct_id.
	ID string
}

// Container gives the thread or room of a conversation kind.
func (e *Envelope) Container() Container {
	switch e.Surface {
	case SurfaceThread:
		return Container{SurfaceThread, e.ThreadID}
	case SurfaceDirect:
		return Container{SurfaceDirect, e.DirectID}
	}
	return Container{}
}
