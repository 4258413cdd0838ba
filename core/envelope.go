package core

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
//
// Raw, Body, Ext, Proof and the Raw of a card or capability are slices of the
// bytes that were given to Parse; whoever holds an Envelope must not change
// them. The strings are copies.
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

	// emptySurface says that surface, thread_id or direct_id was given as an
	// empty string, which is neither absent nor allowed.
	emptySurface bool
	// subject is the card or capability in the body of the kinds that have one.
	subject *subject
}

// Receipt is the body of a receipt.
type Receipt struct {
	ForID  string
	Status ReceiptStatus
	// ReasonCode is empty where the receipt gives none. It need not be one of
	// the codes that the gateway itself uses.
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
	// Type is WhoisRequest or WhoisResponse.
	Type  string
	Query string
}

// The types of a whois.
const (
	WhoisRequest  = "request"
	WhoisResponse = "response"
)

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

// Capability is the document of a capability message, as the sender wrote it:
// nothing is trimmed, dropped or sorted (that is done for the digest alone).
type Capability struct {
	ID      string
	Summary string
	Outcome string
	Version string

	ContextNeeded     []string
	ArtifactsExpected []string
	ExecutionOutline  []string
	Constraints       []string
	Examples          []string
	Requirements      []string

	// Digest is the digest that the document claims; CheckBody has compared it.
	Digest string
	// Raw is the document as it came.
	Raw []byte
}
