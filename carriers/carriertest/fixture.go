package carriertest

import (
	"context"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Fixture is one carrier under test and the foreign side of its link. Function
// fields that are nil, and lists that are empty, say what the far side cannot
// do. The suite may call the functions from several goroutines.
type Fixture struct {
	// Carrier is the carrier under test, not yet running. It is to reconnect
	// without long pauses.
	Carrier core.Carrier

	// Arrivals are the arrivals that Inject can produce; empty for a carrier that
	// only sends.
	Arrivals []core.Arrival
	// Inject puts one frame on the wire as a foreign peer does. It does not wait
	// for the carrier, also when that takes nothing more at the moment. Where the
	// carrier is Ordered, frames leave in the order of the calls.
	Inject func(ctx context.Context, f Frame) error
	// Outcomes lists what the far side has learnt of its frames, in the order in
	// which it learnt it, repeats included. Nil where the carrier acknowledges
	// nothing that the far side could see.
	Outcomes func() []Outcome
	// SeesRefusals is true when the far side can tell a refusal from an
	// acknowledgement. Where it cannot (MQTT), a rejected frame ends Acked.
	SeesRefusals bool
	// Addressed is true when frames travel on addresses that the carrier reads
	// (Inbound.Address) and writes.
	Addressed bool
	// LineFramed is true when a frame is one line, so that CR and LF cannot come
	// in and go out as spaces.
	LineFramed bool
	// MaxEnvelopeBytes is the Host.MaxEnvelopeBytes that the carrier was built
	// with. Zero where the far side cannot put a larger frame on the wire.
	MaxEnvelopeBytes int
	// BlockedOffers is how many offers may stand blocked at the same time while
	// the intake takes nothing; zero means one, for a carrier that offers from one
	// goroutine.
	BlockedOffers int

	// Recipients are the destinations that the carrier under test can reach once
	// it is ready; empty for a carrier that only receives. With two or more the
	// suite checks that one does not delay another.
	Recipients []core.Recipient
	// Received lists what came out of the carrier, in order.
	Received func() []Received
	// Withhold makes the far side take what is sent to the recipient without
	// acknowledging it, until it is called again with false.
	Withhold func(r core.Recipient, on bool)
	// Refuse makes the far side refuse what is sent to the recipient, until it is
	// called again with false.
	Refuse func(r core.Recipient, on bool)
	// Stall makes the far side stop reading what the carrier writes, its
	// acknowledgements too, until it is called again with false.
	Stall func(on bool)

	// Cut takes the link down, such that the carrier cannot come back until
	// Restore. Both may be called before the carrier runs. Nil where the carrier
	// has no standing link.
	Cut     func()
	Restore func()
	// RedeliversOnReconnect is true when a carrier that Redelivers needs a new
	// connection for it (MQTT): the suite then cuts and restores the link where it
	// waits for a redelivery.
	RedeliversOnReconnect bool
	// RedeliversWithin is how long an unacknowledged frame takes to come again by
	// itself; the suite watches that long for what must not come again.
	RedeliversWithin time.Duration

	// Joined waits until the recipients can be reached, where that is later than
	// StateReady (an agent that has to start). Nil means that it is not.
	Joined func(ctx context.Context) error
	// Secrets are the secrets that the carrier was built with (a password in its
	// URL, a key): none may stand in an error, the status or the log.
	Secrets []string
	// Logs is what the carrier has logged so far, to be searched for secrets. May
	// be nil.
	Logs func() string
	// Close ends the far side and waits for it. The suite calls it once, after
	// the carrier has stopped. Whatever still runs afterwards is a leak.
	Close func()

	// Patience is how long something may take that must come; default 5 s.
	Patience time.Duration
	// Quiet is how long the suite watches for something that must not come;
	// default 100 ms.
	Quiet time.Duration
}

// Frame is one frame that the far side puts on the wire.
type Frame struct {
	// Key names the frame in Outcomes. It stands in the payload, too, as the
	// envelope's id.
	Key     string
	Arrival core.Arrival
	// Address is where to put it; carriers without addresses ignore it.
	Address core.Address
	Payload []byte
}

// Result is what the far side learnt of a frame.
type Result string

// The results.
const (
	// Acked: the carrier said that the frame is taken.
	Acked Result = "acked"
	// Refused: the carrier said that the frame will never be taken.
	Refused Result = "refused"
	// Later: the carrier said that the frame is not taken now (a NAK, a 503).
	// Not hearing anything says the same.
	Later Result = "later"
)

// Outcome is one thing that the far side learnt of one frame.
type Outcome struct {
	Key    string
	Result Result
}

// Received is one message as it came out of the carrier.
type Received struct {
	// Recipient is the entry of Fixture.Recipients that got it.
	Recipient core.Recipient
	// Address is where it came out; nil where the carrier has no addresses.
	Address *core.Address
	// Token is the delivery's own id as the far side saw it (Outbound.Token);
	// empty where the carrier has no place for it.
	Token string
	// Payload is the bytes, without the framing.
	Payload []byte
}

func (f *Fixture) defaults() {
	if f.Patience == 0 {
		f.Patience = 5 * time.Second
	}
	if f.Quiet == 0 {
		f.Quiet = 100 * time.Millisecond
	}
	if f.BlockedOffers == 0 {
		f.BlockedOffers = 1
	}
}
