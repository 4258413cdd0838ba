package stdio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// failure waits for a send to fail, and gives its code.
func failure(t *testing.T, result <-chan outcome) core.SendCode {
	t.Helper()
	got := wait(t, result)
	var failed *core.SendError
	if !errors.As(got.err, &failed) {
		t.Fatalf("the send was reported as %+v, want a *core.SendError", got)
	}
	return failed.Code
}

// sized makes an outbound larger than a pipe takes.
func sized(n int) func(*core.Outbound) {
	return func(out *core.Outbound) { out.Envelope.Raw = []byte(filled(out.Envelope.ID, n)) }
}

func numbered(seq int64) func(*core.Outbound) {
	return func(out *core.Outbound) { out.Delivery.Seq = seq }
}

// stalled runs a puppet that has stopped reading and whose pipe is full: one
// delivery is half written.
func stalled(t *testing.T, timeout time.Duration) (*bench, *puppet) {
	t.Helper()
	p := newPuppet(t)
	q := newPuppet(t)
	b := run(t, map[string]AgentConfig{"ada": p.config(t, "ada"), "bob": q.config(t, "bob")},
		func(c *Config) { c.WriteTimeout = timeout })
	b.ready()
	setReading(t, p, false)
	return b, p
}

func setReading(t *testing.T, p *puppet, on bool) {
	t.Helper()
	p.must(t, order{Read: &on})
}

func TestAgentThatStopsInAMidLineGetsTheRestOfIt(t *testing.T) {
	b, p := stalled(t, 100*time.Millisecond)
	if code := failure(t, b.send(t.Context(), "ada", "long", sized(300<<10))); code != core.CodeTimeout {
		t.Errorf("a line that is half written failed with %q, want %q", code, core.CodeTimeout)
	}
	if code := failure(t, b.send(t.Context(), "ada", "next", numbered(1000))); code != core.CodeUnavailable {
		t.Errorf("a line behind it failed with %q, want %q", code, core.CodeUnavailable)
	}
	if s := b.Status(); s.State != core.StateNotReady || !strings.Contains(s.Why, "does not read") {
		t.Errorf("the status is %q: %q", s.State, s.Why)
	}
	setReading(t, p, true)
	until(t, "the carrier is ready again", func() bool { return b.Status().State == core.StateReady })
	if got := wait(t, b.send(t.Context(), "ada", "last")); got.err != nil {
		t.Fatal(got.err)
	}
	until(t, "the agent has read it all", func() bool { return len(p.heard()) == 2 })
	if got := p.heard(); got[0] != filled("long", 300<<10) || got[1] != say("last") {
		t.Errorf("the agent has read lines of %d and %d bytes: %.80q, %.80q", len(got[0]), len(got[1]), got[0], got[1])
	}
	if n := b.agent("ada").Starts; n != 1 {
		t.Errorf("the agent was started %d times", n)
	}
}

func TestRetryOfAHalfWrittenLineIsNotWrittenTwice(t *testing.T) {
	b, p := stalled(t, 100*time.Millisecond)
	failure(t, b.send(t.Context(), "ada", "long", sized(300<<10)))
	again := b.send(t.Context(), "ada", "long", sized(300<<10))
	setReading(t, p, true)
	if got := wait(t, again); got.err != nil || got.ack.Kind != core.AckStdioWrite {
		t.Fatalf("the retry was reported as %+v", got)
	}
	wait(t, b.send(t.Context(), "ada", "last"))
	until(t, "the last line is read", func() bool { return slices.Contains(p.heard(), say("last")) })
	if n := len(p.heard()); n != 2 {
		t.Errorf("the agent has read %d lines, want 2", n)
	}
}

func TestAgentThatDoesNotReadDelaysNoOther(t *testing.T) {
	b, _ := stalled(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := b.send(ctx, "ada", "long", sized(300<<10))
	for i := range 20 {
		if got := wait(t, b.send(t.Context(), "bob", fmt.Sprint("m", i))); got.err != nil {
			t.Fatal(got.err)
		}
	}
	select {
	case got := <-stuck:
		t.Errorf("the send to the agent that does not read was reported: %+v", got)
	default:
	}
	cancel()
	if code := failure(t, stuck); code != core.CodeTimeout {
		t.Errorf("the end of the context was reported as %q", code)
	}
}

func TestOrderHoldsWhenASendIsGivenUp(t *testing.T) {
	b, p := stalled(t, time.Minute)
	blocker := b.send(t.Context(), "ada", "blocker", sized(300<<10), numbered(1))
	ctx, cancel := context.WithCancel(t.Context())
	first := b.send(ctx, "ada", "first", numbered(2))
	second := b.send(t.Context(), "ada", "second", numbered(3))
	cancel()
	if code := failure(t, first); code != core.CodeTimeout {
		t.Errorf("the first was given up with %q", code)
	}
	if code := failure(t, second); code.Permanent() {
		t.Errorf("the one behind it was given up with %q", code)
	}
	setReading(t, p, true)
	wait(t, blocker)
	for i, id := range []string{"first", "second"} {
		wait(t, b.send(t.Context(), "ada", id, numbered(int64(i+2))))
	}
	until(t, "the agent has read it all", func() bool { return len(p.heard()) >= 3 })
	if got := p.heard(); len(got) != 3 || got[1] != say("first") || got[2] != say("second") {
		t.Errorf("the agent has read %d lines, the last ones %.60q", len(got), got[1:])
	}
}

func TestDeadlinePassesWhileALineWaits(t *testing.T) {
	b, p := stalled(t, time.Minute)
	blocker := b.send(t.Context(), "ada", "blocker", sized(300<<10), numbered(1))
	late := b.send(t.Context(), "ada", "late", numbered(2), func(out *core.Outbound) { out.Deadline = time.Now().Add(50 * time.Millisecond) })
	other := b.send(t.Context(), "ada", "other", numbered(3))
	if code := failure(t, late); code != core.CodeExpired {
		t.Errorf("it was given up with %q, want %q", code, core.CodeExpired)
	}
	setReading(t, p, true)
	for _, result := range []<-chan outcome{blocker, other} {
		if got := wait(t, result); got.err != nil {
			t.Error(got.err)
		}
	}
	until(t, "the agent has read the other", func() bool { return slices.Contains(p.heard(), say("other")) })
	if slices.Contains(p.heard(), say("late")) {
		t.Error("a message past its deadline was written")
	}
}

func TestControlLinesAndDeliveriesDoNotMix(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	var text strings.Builder
	const lines = 200
	for i := range lines {
		text.WriteString(say(fmt.Sprint("in", i)) + "\n")
	}
	p.write(t, text.String())
	for i := range 20 {
		if got := wait(t, b.send(t.Context(), "ada", fmt.Sprint("out", i), sized(100<<10))); got.err != nil {
			t.Fatal(got.err)
		}
	}
	until(t, "the agent has read it all", func() bool { return len(p.heard()) == lines+20 })
	for _, line := range p.heard() {
		if _, ok := controlOf(line); !ok && line != filled(idOf([]byte(line)), 100<<10) {
			t.Fatalf("a line of %d bytes: %.80q", len(line), line)
		}
	}
}

func TestUnknownRecipientIsABadAddress(t *testing.T) {
	p := newPuppet(t)
	local := shell("loc", "cat")
	local.Participation.Mode = ModeLocal
	b := run(t, map[string]AgentConfig{"ada": p.config(t, "ada"), "loc": local})
	for name, change := range map[string]func(*core.Recipient){
		"another peer":      func(r *core.Recipient) { r.Peer = "eve" },
		"another workspace": func(r *core.Recipient) { r.WorkspaceID = "ws-2" },
		"another channel":   func(r *core.Recipient) { r.Channel = "den" },
		"a local agent":     func(r *core.Recipient) { r.Peer = "loc" },
		"a link":            func(r *core.Recipient) { *r = core.Recipient{Carrier: "agents"} },
	} {
		result := b.send(t.Context(), "ada", "a", func(out *core.Outbound) { change(&out.Recipient) })
		if code := failure(t, result); code != core.CodeBadAddress {
			t.Errorf("%s: %q, want %q", name, code, core.CodeBadAddress)
		}
	}
}

func TestLineBreaksGoOutAsSpacesAndThePayloadIsUntouched(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	raw := []byte("{\r\n \"id\" : \"a\"\n}")
	backing := append(raw[:len(raw):len(raw)], "beyond"...)
	wait(t, b.send(t.Context(), "ada", "a", func(out *core.Outbound) { out.Envelope.Raw = backing[:len(raw)] }))
	until(t, "the agent has read it", func() bool { return slices.Equal(p.heard(), []string{`{   "id" : "a" }`}) })
	if string(backing) != "{\r\n \"id\" : \"a\"\n}beyond" {
		t.Errorf("the payload has become %q", backing)
	}
}

func TestAgentThatEndsEndsItsSendsAtOnce(t *testing.T) {
	for _, mode := range []AckMode{AckWrite, AckExplicit} {
		t.Run(string(mode), func(t *testing.T) {
			p := newPuppet(t)
			cfg := p.config(t, "ada")
			cfg.Ack = mode
			b := run(t, one("ada", cfg), func(c *Config) { c.WriteTimeout = time.Minute })
			b.ready()
			setReading(t, p, false)
			var waiting []<-chan outcome
			for i := range 3 {
				waiting = append(waiting, b.send(t.Context(), "ada", fmt.Sprint("m", i), sized(300<<10), numbered(int64(i+1))))
			}
			status := 7
			p.must(t, order{Exit: &status})
			for _, result := range waiting {
				if code := failure(t, result); code != core.CodeUnavailable {
					t.Errorf("failed with %q, want %q", code, core.CodeUnavailable)
				}
			}
			until(t, "the status tells why", func() bool { return strings.Contains(b.agent("ada").Why, "exit status 7") })
			if mode == AckExplicit {
				return // This puppet does not acknowledge.
			}
			until(t, "another process takes the message", func() bool {
				return wait(t, b.send(t.Context(), "ada", "m0", numbered(1))).err == nil
			})
		})
	}
}

func TestAgentThatClosesItsInputIsHeardAndThenStartedAgain(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	p.must(t, order{CloseInput: true})
	until(t, "a send fails", func() bool { return wait(t, b.send(t.Context(), "ada", "a")).err != nil })
	if code := failure(t, b.send(t.Context(), "ada", "a")); code != core.CodeUnavailable {
		t.Errorf("failed with %q, want %q", code, core.CodeUnavailable)
	}
	if s := b.Status(); s.State != core.StateNotReady || !strings.Contains(s.Why, "closed its input") {
		t.Errorf("the status is %q: %q", s.State, s.Why)
	}
	p.write(t, say("x")+"\n")
	until(t, "it is still heard", func() bool { return slices.Contains(b.in.ids(), "x") })
	until(t, "another process is there", func() bool { return len(p.processes()) == 2 })
	if s := b.agent("ada"); !strings.Contains(s.Why, "closed its input") {
		t.Errorf("the status tells %+v", s)
	}
	until(t, "it takes a message", func() bool { return wait(t, b.send(t.Context(), "ada", "b")).err == nil })
}

func TestExplicitAcknowledgement(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", explicit(p.config(t, "ada"))))
	b.ready()
	if l := b.Limits(); l.AckKind != core.AckStdioAck || l.InFlight != explicitInFlight {
		t.Errorf("the limits are %+v", l)
	}
	got := wait(t, b.send(t.Context(), "ada", "a"))
	if got.err != nil || got.ack.Kind != core.AckStdioAck || got.ack.At.IsZero() {
		t.Fatalf("reported as %+v", got)
	}

	acknowledge := false
	p.must(t, order{Acknowledge: &acknowledge})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	result := b.send(ctx, "ada", "late", numbered(77))
	if code := failure(t, result); code != core.CodeTimeout {
		t.Errorf("without an acknowledgement it failed with %q, want %q", code, core.CodeTimeout)
	}
	p.write(t, `{"carrier":{"ack":"never given"}}`+"\n"+`{ "carrier" : {"x":1, "ack":"late"} }`+"\r\n")
	until(t, "the late acknowledgement is recorded", func() bool {
		b.in.mu.Lock()
		defer b.in.mu.Unlock()
		return b.in.late[core.DeliveryID{Seq: 77, Recipient: 1}].Kind == core.AckStdioAck
	})
	until(t, "the other is counted", func() bool { return b.agent("ada").UnusedControls == 1 })
	never(t, "a send was reported twice", func() bool { return len(result) > 0 })
}

func TestUnacknowledgedMessageGoesToTheNextProcess(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", explicit(p.config(t, "ada"))))
	b.ready()
	acknowledge := false
	p.must(t, order{Acknowledge: &acknowledge})
	first := b.send(t.Context(), "ada", "a")
	until(t, "the first process has read it", func() bool { return len(p.heard()) == 1 })
	status := 1
	p.must(t, order{Exit: &status})
	if code := failure(t, first); code != core.CodeUnavailable {
		t.Errorf("the end of the process was reported as %q, want %q", code, core.CodeUnavailable)
	}
	until(t, "the next process acknowledges it", func() bool {
		got := wait(t, b.send(t.Context(), "ada", "a"))
		return got.err == nil && got.ack.Kind == core.AckStdioAck
	})
	until(t, "both have told what they read", func() bool { return len(p.heard()) >= 2 })
	if got := p.heard(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("the two processes have read %q", got)
	}
}

func TestControlLinesOfAgentsThatNeedNotAcknowledgeAreOnlyCounted(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	p.write(t, `{"carrier":{"ack":"a"}}`+"\n"+`{"carrier":{"done":"w1","usage":{"input_tokens":1}}}`+"\n"+`{"carrier":{}}`+"\n"+say("x")+"\n")
	until(t, "the envelope behind them is offered", func() bool { return len(b.in.frames()) == 1 })
	if s := b.agent("ada"); s.UnusedControls != 3 || s.Noise != 0 {
		t.Errorf("the status tells %+v", s)
	}
	until(t, "only the envelope is answered", func() bool { return len(p.heard()) == 1 })
	never(t, "a control line was answered", func() bool { return len(p.heard()) > 1 })
}
