package carriertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

const memorySecret = "open sesame"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryPassesTheSuite(t *testing.T) {
	run := func(name string, limits core.Limits, change func(*Fixture)) {
		t.Run(name, func(t *testing.T) {
			Run(t, func(*testing.T) Fixture {
				f := memoryFixture(NewMemory("mem", MemoryConfig{Limits: limits}))
				change(&f)
				return f
			})
		})
	}
	run("with everything", boundedLimits(), func(*Fixture) {})

	forgetful := boundedLimits()
	forgetful.Redelivers, forgetful.Ordered, forgetful.InFlight, forgetful.MaxPayload = false, false, 1, 0
	run("without redelivery, order or window", forgetful, func(f *Fixture) {
		f.Stall, f.Cut, f.Restore = nil, nil, nil
		f.SeesRefusals = true
	})
	run("behind a far side that sees no acknowledgements", boundedLimits(), func(f *Fixture) {
		f.Outcomes, f.SeesRefusals, f.Withhold, f.Refuse = nil, false, nil, nil
	})
	run("only receiving", boundedLimits(), func(f *Fixture) { f.Recipients = nil })
	run("only sending", boundedLimits(), func(f *Fixture) { f.Arrivals, f.Inject = nil, nil })
}

// boundedLimits are the default ones with a bound of size.
func boundedLimits() core.Limits {
	l := NewMemory("mem", MemoryConfig{}).Limits()
	l.MaxPayload = 1 << 20
	return l
}

// memoryFixture is the far side of an in-memory carrier.
func memoryFixture(m *Memory) Fixture {
	far := &memoryFar{m: m, keys: map[*Injected]string{}}
	return Fixture{
		Carrier:          m,
		Arrivals:         []core.Arrival{core.ArrivalNative, core.ArrivalIngress},
		Inject:           far.inject,
		Outcomes:         far.outcomes,
		SeesRefusals:     true,
		Addressed:        true,
		MaxEnvelopeBytes: 1 << 20,
		Recipients:       []core.Recipient{m.Link(), {Carrier: "mem", Link: "second"}},
		Received:         far.received,
		Withhold:         func(r core.Recipient, on bool) { m.Withhold(on, r) },
		Refuse:           far.refuse,
		Stall:            m.Stall,
		Cut:              m.Cut,
		Restore:          m.Restore,
		Secrets:          []string{memorySecret},
		Patience:         5 * time.Second,
		Quiet:            50 * time.Millisecond,
	}
}

type memoryFar struct {
	m    *Memory
	mu   sync.Mutex
	keys map[*Injected]string
}

func (far *memoryFar) inject(_ context.Context, f Frame) error {
	far.mu.Lock()
	defer far.mu.Unlock()
	address := f.Address
	far.keys[far.m.Inject(core.Inbound{Payload: f.Payload, Arrival: f.Arrival, Address: &address})] = f.Key
	return nil
}

func (far *memoryFar) outcomes() []Outcome {
	results := map[core.Verdict]Result{
		core.VerdictCommitted: Acked, core.VerdictRejected: Refused, core.VerdictRetry: Later,
	}
	far.mu.Lock()
	defer far.mu.Unlock()
	var list []Outcome
	for _, l := range far.m.Learnt() {
		list = append(list, Outcome{Key: far.keys[l.Frame], Result: results[l.Verdict]})
	}
	return list
}

func (far *memoryFar) received() []Received {
	var list []Received
	for _, out := range far.m.Sent() {
		address := &core.Address{WorkspaceID: out.Envelope.WorkspaceID, Channel: out.Envelope.Channel, Class: core.AddressBroadcast}
		if out.To != "" {
			address.Class, address.Token = core.AddressPeer, routeToken(out.To)
		}
		list = append(list, Received{Recipient: out.Recipient, Address: address, Token: out.Token, Payload: out.Envelope.Raw})
	}
	return list
}

func (far *memoryFar) refuse(r core.Recipient, on bool) {
	var with *core.SendError
	if on {
		with = &core.SendError{Code: core.CodeRefused, Detail: "the far side refuses"}
	}
	far.m.Refuse(with, r)
}
