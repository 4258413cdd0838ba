package carriertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func sendChecks() []check {
	return []check{
		{"a send is reported exactly once", []ability{sends}, checkReportedOnce},
		{"an acknowledgement is of the declared kind", []ability{sends}, checkAckKind},
		{"an acknowledgement that is withheld is not invented", []ability{withholds}, checkWithheld},
		{"a refusal is an error, and the next message passes", []ability{refuses}, checkRefused},
		{"a destination that does not answer delays no other", []ability{withholds, sendsToTwo}, checkIndependent},
		{"a message past its deadline is not written", []ability{sends}, checkExpired},
		{"a send ends with its context", []ability{sends}, checkSendCancelled},
	}
}

// send is one call of Send and what was reported of it.
type send struct {
	out      core.Outbound
	returned chan struct{}

	mu      sync.Mutex
	reports []report
}

type report struct {
	ack core.Ack
	err error
}

func (s *send) done(ack core.Ack, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, report{ack, err})
}

func (s *send) reported() []report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reports)
}

// send calls Send with a context that lasts as long as the suite's patience, and
// waits until Send returns.
func (r *rig) send(out core.Outbound) *send {
	r.Helper()
	return r.sendFor(r.Patience, out)
}

// sendFor calls Send with a context that ends after d, and waits until Send
// returns.
func (r *rig) sendFor(d time.Duration, out core.Outbound) *send {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	s := r.calls(ctx, cancel, out)[0]
	if !r.within(d+r.Patience, s.returned) {
		r.Fatalf("Send of %s to %s did not return", out.Envelope.ID, out.Recipient)
	}
	return s
}

// sendInTurn calls Send for one message after the other and does not wait, for
// Send may block while acknowledgements are missing.
func (r *rig) sendInTurn(outs ...core.Outbound) []*send {
	ctx, cancel := context.WithTimeout(context.Background(), 2*r.Patience)
	return r.calls(ctx, cancel, outs...)
}

// calls calls Send from a goroutine of its own, which ends with the check.
func (r *rig) calls(ctx context.Context, cancel context.CancelFunc, outs ...core.Outbound) []*send {
	var sent []*send
	for _, out := range outs {
		sent = append(sent, &send{out: out, returned: make(chan struct{})})
	}
	go func() {
		for _, s := range sent {
			r.Carrier.Send(ctx, s.out, s.done)
			close(s.returned)
		}
	}()
	r.Cleanup(func() {
		cancel()
		if last := sent[len(sent)-1]; !r.within(r.Patience, last.returned) {
			r.Errorf("Send of %s did not return with the end of its context", last.out.Envelope.ID)
		}
	})
	return sent
}

// outbounds builds as many deliveries as may be under way to the recipient, at
// most n.
func (r *rig) outbounds(to core.Recipient, n int) []core.Outbound {
	var outs []core.Outbound
	for range min(r.limits.InFlight, n) {
		outs = append(outs, r.outbound(to))
	}
	return outs
}

// report waits for what is reported of the send.
func (r *rig) report(s *send) report {
	r.Helper()
	r.until("the send of "+s.out.Envelope.ID+" is reported", func() bool { return len(s.reported()) > 0 })
	return s.reported()[0]
}

// failure waits for the send to fail, and tells how.
func (r *rig) failure(s *send) *core.SendError {
	r.Helper()
	got := r.report(s)
	var failed *core.SendError
	switch {
	case got.err == nil:
		r.Fatalf("the send of %s was acknowledged (%+v), want an error", s.out.Envelope.ID, got.ack)
	case !errors.As(got.err, &failed):
		r.Fatalf("the send of %s failed with a %T, want a *core.SendError: %v", s.out.Envelope.ID, got.err, got.err)
	case got.ack != core.Ack{}:
		r.Errorf("the send of %s reported an acknowledgement with its error: %+v", s.out.Envelope.ID, got.ack)
	}
	return failed
}

// mustSend sends and waits for the acknowledgement.
func (r *rig) mustSend(out core.Outbound) core.Ack {
	r.Helper()
	got := r.report(r.send(out))
	if got.err != nil {
		r.Fatalf("the send of %s to %s failed: %v", out.Envelope.ID, out.Recipient, got.err)
	}
	return got.ack
}

// sendMany sends n messages, with as many under way as the carrier declares.
func (r *rig) sendMany(to core.Recipient, n int) []*send {
	r.Helper()
	var sent []*send
	for i := range n {
		if i >= r.limits.InFlight {
			r.report(sent[i-r.limits.InFlight])
		}
		sent = append(sent, r.send(r.outbound(to)))
	}
	return sent
}

// awaitReported waits for all reports and wants them to be acknowledgements.
func (r *rig) awaitReported(sent []*send) {
	r.Helper()
	for _, s := range sent {
		if got := r.report(s); got.err != nil {
			r.Fatalf("the send of %s failed: %v", s.out.Envelope.ID, got.err)
		}
	}
}

// receivedOf lists the copies of one message that came out.
func (r *rig) receivedOf(out core.Outbound) []Received {
	var list []Received
	for _, got := range r.Received() {
		if got.Recipient == out.Recipient && keyIn(got.Payload) == out.Envelope.ID {
			list = append(list, got)
		}
	}
	return list
}

func (r *rig) awaitReceived(out core.Outbound) Received {
	r.Helper()
	r.until("message "+out.Envelope.ID+" comes out", func() bool { return len(r.receivedOf(out)) > 0 })
	return r.receivedOf(out)[0]
}

// receivedOrder lists the keys that came out at the recipient.
func (r *rig) receivedOrder(to core.Recipient) []string {
	var keys []string
	for _, got := range r.Received() {
		if got.Recipient == to {
			keys = append(keys, keyIn(got.Payload))
		}
	}
	return keys
}

func (r *rig) withhold(to core.Recipient) {
	r.Withhold(to, true)
	r.Cleanup(func() { r.Withhold(to, false) })
}

func checkReportedOnce(r *rig) {
	r.start()
	sent := r.sendMany(r.Recipients[0], 20)
	for _, s := range sent {
		r.report(s)
	}
	r.never(r.Quiet, "a send was reported more than once", func() bool {
		return slices.ContainsFunc(sent, func(s *send) bool { return len(s.reported()) > 1 })
	})
}

func checkAckKind(r *rig) {
	r.start()
	for _, to := range r.Recipients {
		ack := r.mustSend(r.outbound(to))
		if ack.Kind != r.limits.AckKind || ack.At.IsZero() {
			r.Errorf("the acknowledgement of %s is %+v, want kind %q and a time", to, ack, r.limits.AckKind)
		}
	}
}

func checkWithheld(r *rig) {
	r.start()
	to := r.Recipients[0]
	r.withhold(to)
	s := r.sendFor(2*r.Quiet, r.outbound(to))
	if got := r.failure(s); got.Code != core.CodeTimeout {
		r.Errorf("a send whose acknowledgement did not come failed with %q, want %q: %v", got.Code, core.CodeTimeout, got)
	}
}

func checkRefused(r *rig) {
	r.start()
	to := r.Recipients[0]
	r.Refuse(to, true)
	_ = r.failure(r.send(r.outbound(to)))
	r.Refuse(to, false)
	r.mustSend(r.outbound(to))
}

func checkIndependent(r *rig) {
	r.start()
	mute, fine := r.Recipients[0], r.Recipients[1]
	r.withhold(mute)
	waiting := r.sendInTurn(r.outbounds(mute, 8)...)
	r.awaitReceived(waiting[0].out)
	for range 5 {
		r.mustSend(r.outbound(fine))
	}
	if slices.ContainsFunc(waiting, func(s *send) bool { return len(s.reported()) > 0 }) {
		r.Errorf("the sends to a destination that does not answer ended before those to the other")
	}
}

func checkExpired(r *rig) {
	r.start()
	out := r.outbound(r.Recipients[0])
	out.Deadline = time.Now().Add(-time.Hour)
	if got := r.failure(r.send(out)); got.Code != core.CodeExpired {
		r.Errorf("a send past its deadline failed with %q, want %q: %v", got.Code, core.CodeExpired, got)
	}
	r.never(r.Quiet, "a message past its deadline was written", func() bool { return len(r.receivedOf(out)) > 0 })
}

func checkSendCancelled(r *rig) {
	r.start()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.report(r.calls(ctx, cancel, r.outbound(r.Recipients[0]))[0])
	r.mustSend(r.outbound(r.Recipients[0]))
}
