package core

import (
	"context"
	"log/slog"
	"time"
)

// Host is what a carrier is told of the gateway that runs it.
type Host struct {
	// Name is the carrier's configured name.
	Name string
	// InstanceID is the gateway's own random id, kept in its database. It is part
	// of durable names and client ids, so that two gateways never share a session
	// by accident.
	InstanceID string
	// MaxEnvelopeBytes is the largest envelope that the gateway takes.
	MaxEnvelopeBytes int
	Logger           *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Carrier is one transport. The gateway starts it, hands it an Intake, and
// asks it to send what others said. A carrier keeps nothing: it never touches
// the store, never retries a send and never decides what a message means.
type Carrier interface {
	// Run connects, receives and offers every frame to in. It reconnects for
	// ever and returns nil once ctx has ended and everything that it started has
	// ended too. It returns an error only for what no retry can mend.
	// A peer that is down is not such an error: Status tells of it.
	Run(ctx context.Context, in Intake) error

	// Send puts one message on the wire, in the order of the calls, and calls
	// done exactly once, from any goroutine, when the carrier's own
	// acknowledgement or a failure is known. It returns when the message has its
	// place in that order; it may block for back-pressure until ctx ends. One
	// goroutine at a time calls Send for one destination; destinations call
	// concurrently. done never comes later than shortly after the end of ctx:
	// an acknowledgement that has not come by then is an unknown outcome, which
	// is an error with CodeTimeout. done must not be called while Send's caller
	// could be blocked by it: it does not block. An error passed to done is a
	// *SendError. Payload must not be changed, nor kept after done.
	Send(ctx context.Context, out Outbound, done func(Ack, error))

	// Links names the standing destinations of this carrier: the public side of
	// a bus, each webhook. It is constant for the life of the carrier.
	Links() []Link

	// Limits tells what the carrier can do. It is constant.
	Limits() Limits

	// Status tells how the carrier stands now. It never blocks on I/O.
	Status() Status
}

// Intake is what the gateway gives a carrier to run with. All methods may be
// called concurrently.
type Intake interface {
	// Offer gives one received frame its place in the order of this carrier's
	// offers. It blocks while the gateway is full, until ctx ends. When it returns
	// nil, settle will be called exactly once, in the order of this carrier's
	// offers, after the commit that the settlement speaks of. When it returns an
	// error (ctx ended, or the gateway is stopping), settle is never called and
	// nothing is kept. settle must not block, and may be called before Offer returns
	// and after Run has returned. The payload must not be changed
	// afterwards. Frames whose order matters are offered from one goroutine.
	Offer(ctx context.Context, in Inbound, settle func(Settlement)) error

	// Attach makes a peer a local recipient, durably, until Detach. It is
	// idempotent.
	Attach(ctx context.Context, at Attachment) error

	// Detach ends an attachment. It is idempotent.
	Detach(ctx context.Context, at Attachment) error

	// Acked records an acknowledgement that comes later than the send, such as an
	// agent's own. It is idempotent; an unknown delivery is ErrNotFound.
	Acked(ctx context.Context, id DeliveryID, ack Ack) error
}

// Arrival says whether the carrier's own peers saw the message before the
// gateway did.
type Arrival uint8

// The two arrivals.
const (
	// ArrivalIngress is a message that nobody else has seen: HTTP, stdio, the
	// ingress address of a bus. It goes out on its own carrier too.
	ArrivalIngress Arrival = iota
	// ArrivalNative is a message that the carrier's own peers have already.
	ArrivalNative
)

// String is the word that the API shows.
func (a Arrival) String() string {
	if a == ArrivalNative {
		return "native"
	}
	return "ingress"
}

// Inbound is one frame as a carrier received it.
type Inbound struct {
	// Payload is the frame's bytes, without the framing.
	Payload []byte
	// Size is the frame's true size in bytes where the carrier stopped reading
	// before its end (Payload then holds what was read); zero means len(Payload).
	// A frame larger than the limit is refused without being parsed.
	Size int64
	// Arrival is native or ingress.
	Arrival Arrival
	// Address is what the carrier's address said of the message; nil where the
	// carrier has no addresses.
	Address *Address
	// BadAddress is set when the frame came in on an address of ours that cannot
	// be read; the frame is then refused as malformed, and this is why.
	BadAddress string
	// Redelivered is true when the carrier itself marks the frame as its own
	// redelivery (JetStream delivery count above 1, MQTT DUP).
	Redelivered bool
	// Principal is the authenticated sender, nil where the carrier has none.
	Principal *Principal
	// Wake is the id of the wake in which a hosted agent wrote the frame, empty
	// where there was none.
	Wake string
}

// Principal is an authenticated sender and what it may speak for.
type Principal struct {
	// Name identifies the principal inside its carrier, for logs and pins.
	Name string
	// Scope bounds what it may send: Peers bounds the envelope's from.
	Scope Scope
}

// Pin reserves a peer id for one principal of one carrier.
type Pin struct {
	// Workspaces are patterns; nil means every workspace.
	Workspaces []string
	// Peer is the reserved id.
	Peer string
	// Principal is the Principal.Name that may use it.
	Principal string
}

// Pinner is implemented by carriers that reserve peer ids.
type Pinner interface {
	// Pins lists the reserved ids as they stand now.
	Pins() []Pin
}

// Hoster is implemented by carriers that push to peers of their own.
type Hoster interface {
	// Hosted lists every peer that the carrier attaches with Push, as configured.
	// One that was attached in an earlier run and is not among them is detached.
	Hosted() []Attachment
}

// Attachment names a peer attached to one channel.
type Attachment struct {
	WorkspaceID string
	Channel     string
	Peer        string
	// Push says how deliveries reach the peer: true, the gateway calls the
	// carrier's Send; false, somebody pulls them (an inbox).
	Push bool
	// Principal is the Principal.Name of who attaches it, empty where the carrier
	// has none. A reserved peer id is attached by its own principal only, or
	// ErrForbidden.
	Principal string
}

// Link is a standing destination of a carrier.
type Link struct {
	// Name is empty for the carrier itself, else the name of the webhook.
	Name  string
	Scope Scope
}

// Recipient names who a delivery is for. Exactly one of Link and Peer speaks:
// Peer is empty for a link.
type Recipient struct {
	// Carrier is the configured name of the carrier that serves the recipient.
	Carrier string
	// Link is the name inside the carrier: empty for the carrier itself.
	Link string
	// WorkspaceID, Channel and Peer name an attached peer.
	WorkspaceID string
	Channel     string
	Peer        string
}

// String is the recipient as the API shows it: carrier:NAME, webhook:NAME or
// peer:PEER.
func (r Recipient) String() string {
	switch {
	case r.Peer != "":
		return "peer:" + r.Peer
	case r.Link != "":
		return "webhook:" + r.Link
	default:
		return "carrier:" + r.Carrier
	}
}

// Outbound is one delivery to send.
type Outbound struct {
	// Delivery identifies the delivery; it is the same on each attempt.
	Delivery DeliveryID
	// Token is the delivery's own unguessable id, the same on each attempt,
	// never derived from the envelope's id alone. 32 hex digits.
	Token string
	// Recipient is who it is for.
	Recipient Recipient
	// To is the peer whose address it goes to; empty means broadcast.
	To string
	// Envelope holds the fields, and in Raw the bytes to send, unchanged.
	Envelope *Envelope
	// Seq is the message's position in the history.
	Seq int64
	// Attempt counts from 1.
	Attempt int
	// Deadline is the instant after which the message must not be written any
	// more; a carrier that kept it waiting checks again right before the write
	// and fails with CodeExpired. Zero means none.
	Deadline time.Time
}

// Ack is a carrier's acknowledgement of a send. It is never a protocol receipt.
type Ack struct {
	// Kind is one of the AckKind constants.
	Kind AckKind
	// At is when it came.
	At time.Time
	// Detail is what the carrier said, for people; short.
	Detail string
}

// AckKind names what kind of carrier acknowledgement a delivery got.
type AckKind string

// The kinds of carrier acknowledgement.
const (
	AckNATSFlush       AckKind = "nats.flush"
	AckJetStreamPubAck AckKind = "jetstream.puback"
	AckMQTTPubAck      AckKind = "mqtt.puback"
	AckHTTP2xx         AckKind = "http.2xx"
	AckHTTPCursor      AckKind = "http.cursor"
	AckStdioWrite      AckKind = "stdio.write"
	AckStdioAck        AckKind = "stdio.ack"
)

// Limits is what a carrier declares of itself; the gateway enforces it and the
// conformance suite proves it true.
type Limits struct {
	// MaxPayload is the largest payload in bytes that can be sent; 0 means no
	// limit. A larger one is never given to Send.
	MaxPayload int
	// InFlight is how many sends to one destination may wait for their
	// acknowledgement at the same time; at least 1.
	InFlight int
	// Redelivers is true when a frame that was never settled comes again.
	Redelivers bool
	// Ordered is true when frames arrive in the order they were sent as long as
	// nothing is redelivered.
	Ordered bool
	// AckKind is the acknowledgement that Send reports.
	AckKind AckKind
	// Guarantee is one sentence for people: what an acknowledgement of this
	// carrier says and what it does not.
	Guarantee string
}

// State is how a carrier stands.
type State string

// The states of a carrier.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateNotReady State = "not ready"
	StateStopped  State = "stopped"
)

// Status is how a carrier stands at one moment.
type Status struct {
	State State
	// Why says what is missing when the state is not ready: the address, the
	// filter that was refused, the stream that overlaps. Anybody may read it, so it
	// names no file and repeats nothing that an agent or a message said.
	Why string
	// LastReceive and LastSend are zero until the first.
	LastReceive time.Time
	LastSend    time.Time
	// Dropped counts frames that the carrier knows it lost (core NATS).
	Dropped uint64
	// Detail holds further facts by name, such as the agents of a stdio carrier.
	// They are for who operates the gateway alone.
	Detail map[string]any
}
