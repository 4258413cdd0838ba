package core_test

import (
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

const (
	initiator = "planner.sess-1"
	target    = "reviewer.sess-xyz"
)

// workMessage is one of the messages that can be sent about a work.
type workMessage struct {
	name   string
	kind   core.Kind
	status core.ReceiptStatus
	state  core.WorkState
}

func (m workMessage) envelope(from, to string) *core.Envelope {
	e := &core.Envelope{
		Kind: m.kind, Channel: "builders", Surface: core.SurfaceThread, ThreadID: "thread_plan-1",
		From: from, To: to, WorkID: "work-1",
	}
	switch m.kind {
	case core.KindReceipt:
		e.Receipt = &core.Receipt{ForID: "m-1", Status: m.status}
	case core.KindTrace:
		e.Trace = &core.Trace{State: m.state}
	}
	return e
}

// workMessages is every message that differs in what it means for a work.
func workMessages() []workMessage {
	all := []workMessage{
		{name: "say", kind: core.KindSay},
		{name: "capability", kind: core.KindCapability},
	}
	for _, s := range core.ReceiptStatuses() {
		all = append(all, workMessage{name: "receipt " + string(s), kind: core.KindReceipt, status: s})
	}
	for _, s := range core.WorkStates() {
		all = append(all, workMessage{name: "trace " + string(s), kind: core.KindTrace, state: s})
	}
	return all
}

// transitions is the whole machine: for each message, the state that follows
// submitted, working and needs_input. "" is a refusal as malformed.
var transitions = map[string][3]core.WorkState{
	"say":                 {core.WorkSubmitted, core.WorkWorking, core.WorkWorking},
	"capability":          {core.WorkSubmitted, core.WorkWorking, core.WorkWorking},
	"receipt accepted":    {core.WorkWorking, core.WorkWorking, core.WorkNeedsInput},
	"receipt rejected":    {core.WorkFailed, core.WorkFailed, core.WorkFailed},
	"receipt duplicate":   {core.WorkSubmitted, core.WorkWorking, core.WorkNeedsInput},
	"receipt expired":     {core.WorkSubmitted, core.WorkWorking, core.WorkNeedsInput},
	"receipt unsupported": {core.WorkSubmitted, core.WorkWorking, core.WorkNeedsInput},
	"receipt canceled":    {core.WorkCanceled, core.WorkCanceled, core.WorkCanceled},
	"trace submitted":     {"", "", ""},
	"trace working":       {core.WorkWorking, core.WorkWorking, core.WorkWorking},
	"trace needs_input":   {core.WorkNeedsInput, core.WorkNeedsInput, core.WorkNeedsInput},
	"trace completed":     {core.WorkCompleted, core.WorkCompleted, core.WorkCompleted},
	"trace failed":        {core.WorkFailed, core.WorkFailed, core.WorkFailed},
	"trace canceled":      {core.WorkCanceled, core.WorkCanceled, core.WorkCanceled},
}

func workIn(state core.WorkState) core.Work {
	w := core.OpenWork(workMessage{kind: core.KindSay}.envelope(initiator, target))
	w.State = state
	return w
}

func TestOpenWorkBindsTheOpener(t *testing.T) {
	want := core.Work{
		Channel:   "builders",
		Container: core.Container{Surface: core.SurfaceThread, ID: "thread_plan-1"},
		Initiator: initiator, Target: target, State: core.WorkSubmitted,
	}
	for _, kind := range []core.Kind{core.KindSay, core.KindCapability} {
		if got := core.OpenWork(mustCheck(t, valid(kind).raw())); got != want {
			t.Errorf("%s opens %+v", kind, got)
		}
	}
}

func TestEveryMessageInEveryState(t *testing.T) {
	messages := workMessages()
	if len(messages) != len(transitions) {
		t.Fatalf("%d messages, %d rows", len(messages), len(transitions))
	}
	for column, state := range core.WorkStates() {
		for _, m := range messages {
			t.Run(string(state)+" "+m.name, func(t *testing.T) {
				w := workIn(state)
				got, rej := w.Apply(m.envelope(target, initiator))
				if w.State != state {
					t.Error("the work itself was changed")
				}
				cancels := m.name == "receipt canceled" || m.name == "trace canceled"
				switch {
				case state.Terminal() && state == core.WorkCanceled && cancels:
					if got != state || rej != nil {
						t.Errorf("a second cancel gave %s, %v", got, rej)
					}
				case state.Terminal():
					refusal{core.ReasonWorkClosed, core.StepState}.verify(t, rej)
				case transitions[m.name][column] == "":
					refusal{core.ReasonMalformed, core.StepState}.verify(t, rej)
				case got != transitions[m.name][column] || rej != nil:
					t.Errorf("gave %s, %v, want %s", got, rej, transitions[m.name][column])
				}
				if rej != nil && got != state {
					t.Errorf("a refusal gave state %s", got)
				}
			})
		}
	}
}

func TestOnlyTheTargetTakesResponsibility(t *testing.T) {
	accepted := workMessage{kind: core.KindReceipt, status: core.ReceiptAccepted}
	got, rej := workIn(core.WorkSubmitted).Apply(accepted.envelope(initiator, target))
	if got != core.WorkSubmitted || rej != nil {
		t.Errorf("the initiator's accepted gave %s, %v", got, rej)
	}
	for _, m := range workMessages() {
		if m.name == "receipt accepted" || m.name == "trace submitted" {
			continue
		}
		for column, state := range core.WorkStates()[:3] {
			got, rej := workIn(state).Apply(m.envelope(initiator, target))
			if got != transitions[m.name][column] || rej != nil {
				t.Errorf("%s in %s from the initiator gave %s, %v", m.name, state, got, rej)
			}
		}
	}
}

func TestWorkRefusesInOrder(t *testing.T) {
	mismatch := refusal{core.ReasonWorkContainerMismatch, core.StepState}
	actor := refusal{core.ReasonNotTarget, core.StepState}
	closed := refusal{core.ReasonWorkClosed, core.StepState}
	for _, m := range workMessages() {
		for name, c := range map[string]struct {
			change func(*core.Envelope)
			want   refusal
		}{
			"another channel":            {func(e *core.Envelope) { e.Channel = "x" }, mismatch},
			"another thread":             {func(e *core.Envelope) { e.ThreadID = "thread_x-1" }, mismatch},
			"a room of the same id":      {func(e *core.Envelope) { e.Surface, e.DirectID = core.SurfaceDirect, e.ThreadID }, mismatch},
			"another thread and actor":   {func(e *core.Envelope) { e.ThreadID, e.From = "thread_x-1", "x" }, mismatch},
			"a third sender":             {func(e *core.Envelope) { e.From = "x" }, actor},
			"a third recipient":          {func(e *core.Envelope) { e.To = "x" }, actor},
			"no recipient":               {func(e *core.Envelope) { e.To = "" }, actor},
			"the initiator to itself":    {func(e *core.Envelope) { e.From, e.To = initiator, initiator }, actor},
			"the target to itself":       {func(e *core.Envelope) { e.From, e.To = target, target }, actor},
			"the right pair on a closed": {func(*core.Envelope) {}, closed},
			"the other way round on it":  {func(e *core.Envelope) { e.From, e.To = e.To, e.From }, closed},
		} {
			t.Run(m.name+" "+name, func(t *testing.T) {
				e := m.envelope(target, initiator)
				c.change(e)
				state, rej := workIn(core.WorkCompleted).Apply(e)
				c.want.verify(t, rej)
				if state != core.WorkCompleted {
					t.Errorf("state %s", state)
				}
			})
		}
	}
}

func TestTerminalWorkStaysAsItIs(t *testing.T) {
	messages := workMessages()
	rapid.Check(t, func(t *rapid.T) {
		w := workIn(core.WorkSubmitted)
		peers := []string{initiator, target, "outsider"}
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			m := rapid.SampledFrom(messages).Draw(t, "message")
			e := m.envelope(rapid.SampledFrom(peers).Draw(t, "from"), rapid.SampledFrom(peers).Draw(t, "to"))
			next, rej := w.Apply(e)
			if rej != nil && next != w.State {
				t.Fatalf("a refused %s moved %s to %s", m.name, w.State, next)
			}
			if w.State.Terminal() && next != w.State {
				t.Fatalf("%s moved terminal %s to %s", m.name, w.State, next)
			}
			if next == core.WorkSubmitted && w.State != core.WorkSubmitted {
				t.Fatalf("%s moved %s back to submitted", m.name, w.State)
			}
			w.State = next
		}
	})
}

// Whatever the order of a conversation with one terminal message is, its end
// is that message's.
func TestEveryOrderWithOneTerminalMessageEndsAlike(t *testing.T) {
	quiet := []workMessage{
		{kind: core.KindSay},
		{kind: core.KindReceipt, status: core.ReceiptAccepted},
		{kind: core.KindTrace, state: core.WorkWorking},
		{kind: core.KindTrace, state: core.WorkNeedsInput},
	}
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.SampledFrom([]core.WorkState{core.WorkCompleted, core.WorkFailed, core.WorkCanceled}).Draw(t, "end")
		all := append(rapid.SliceOf(rapid.SampledFrom(quiet)).Draw(t, "quiet"), workMessage{kind: core.KindTrace, state: last})
		w := workIn(core.WorkSubmitted)
		for _, m := range rapid.Permutation(all).Draw(t, "order") {
			w.State, _ = w.Apply(m.envelope(target, initiator))
		}
		if w.State != last {
			t.Fatalf("ended as %s, want %s", w.State, last)
		}
	})
}
