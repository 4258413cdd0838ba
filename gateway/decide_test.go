package gateway

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

func TestAKnownKeySettlesFirst(t *testing.T) {
	first := func(w *world) fields { return w.say("ann", fields{"to": "bob", "work_id": "w1"}) }
	later := func(w *world) { w.now = w.now.Add(time.Hour) }
	cases := []struct {
		name   string
		change func(*world, fields)
		via    func(*world) *origin
		want   func(*testing.T, *world, core.Settlement)
	}{
		{"the same again is a duplicate of the first", nil, nil, wantDuplicate},
		{"the same with a refreshed ts is a duplicate", func(w *world, f fields) { f["ts"] = w.now.Unix() + 3 }, nil, wantDuplicate},
		{"the same with another expiry and proof is a duplicate", func(w *world, f fields) {
			f["expires_at"] = w.now.Unix() + 60
			f["proof"] = fields{"sig": "x"}
		}, nil, wantDuplicate},
		{"known but stale is still a duplicate", func(w *world, _ fields) { later(w) }, nil, wantDuplicate},
		{"over another carrier it is a duplicate", nil, func(w *world) *origin { return w.http }, wantDuplicate},
		{"back on a carrier where we published it, it is an echo", nil, func(w *world) *origin { return w.mqtt }, wantEcho},
		{"a stale echo is an echo", func(w *world, _ fields) { later(w) }, func(w *world) *origin { return w.mqtt }, wantEcho},
		{"other content under the id is refused", func(_ *world, f fields) { f["body"] = fields{"text": "other"} }, nil, wantConflict},
		{"other content under the id is refused, stale or not", func(w *world, f fields) {
			f["body"] = fields{"text": "other"}
			later(w)
		}, nil, wantConflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			f := first(w)
			w.accepted(w.arrive(w.nats, f))
			again := maps.Clone(f)
			if c.change != nil {
				c.change(w, again)
			}
			via := w.nats
			if c.via != nil {
				via = c.via(w)
			}
			c.want(t, w, w.arrive(via, again))
		})
	}
}

func wantDuplicate(t *testing.T, w *world, s core.Settlement) {
	t.Helper()
	if s.Verdict != core.VerdictCommitted || !s.Duplicate || s.Seq != 1 || s.Echo {
		t.Fatalf("settled %+v (%v), want a duplicate of seq 1", s, s.Rejection)
	}
	if len(w.changes.Rejections) != 0 {
		t.Fatal("a duplicate left a rejection row")
	}
}

func wantEcho(t *testing.T, w *world, s core.Settlement) {
	t.Helper()
	if !s.Echo || s.Duplicate {
		t.Fatalf("settled %+v, want an echo", s)
	}
	if len(w.changes.Messages)+len(w.changes.Rejections)+len(w.changes.Deliveries) != 0 {
		t.Fatalf("an echo changed something: %+v", w.changes)
	}
}

func wantConflict(t *testing.T, w *world, s core.Settlement) {
	t.Helper()
	w.refused(s, core.ReasonDuplicate)
	if s.Rejection.Detail != "id reused with different content" {
		t.Fatalf("detail %q", s.Rejection.Detail)
	}
}

func TestScopeExcusesAnEchoButNoDuplicate(t *testing.T) {
	w := newWorld(t)
	f := w.say("ann")
	w.accepted(w.arrive(w.nats, f))
	outOfScope := func(o *offer) {
		o.fromAllowed = false
		o.refusal = &core.Rejection{Step: core.StepScope, Reason: core.ReasonNotTarget}
	}
	wantEcho(t, w, w.arrive(w.mqtt, f, outOfScope))
	w.refused(w.arrive(w.nats, f, outOfScope), core.ReasonNotTarget)
}

func TestWorkRulesInTheirOrder(t *testing.T) {
	const room = roomOne
	cases := []struct {
		name   string
		offer  func(*world) fields
		reason core.Reason
	}{
		{"another thread", func(w *world) fields {
			f := w.trace("bob", "ann", "w1", "working")
			f["thread_id"] = "thread_two"
			return f
		}, core.ReasonWorkContainerMismatch},
		{"another thread, and a stranger", func(w *world) fields {
			f := w.trace("eve", "ann", "w1", "working")
			f["thread_id"] = "thread_two"
			return f
		}, core.ReasonWorkContainerMismatch},
		{"another channel", func(w *world) fields {
			f := w.trace("bob", "ann", "w1", "working")
			f["channel"] = "other"
			return f
		}, core.ReasonWorkContainerMismatch},
		{"a direct room", func(w *world) fields {
			return w.envelope("trace", "bob", inRoom(room), fields{"to": "ann", "work_id": "w1", "body": fields{"state": "working"}})
		}, core.ReasonWorkContainerMismatch},
		{"a stranger", func(w *world) fields { return w.trace("eve", "ann", "w1", "working") }, core.ReasonNotTarget},
		{"to a stranger", func(w *world) fields { return w.trace("bob", "eve", "w1", "working") }, core.ReasonNotTarget},
		{"a stranger's say", func(w *world) fields { return w.say("eve", fields{"to": "bob", "work_id": "w1"}) }, core.ReasonNotTarget},
		{"a trace back to submitted", func(w *world) fields { return w.trace("bob", "ann", "w1", "submitted") }, core.ReasonMalformed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.accepted(w.arrive(w.nats, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
			w.refused(w.arrive(w.nats, c.offer(w)), c.reason)
			if state := w.state.Works[store.WorkKey{WorkspaceID: "ws", WorkID: "w1"}].State; state != core.WorkSubmitted {
				t.Fatalf("the refusal moved the work to %s", state)
			}
		})
	}
}

func TestTerminalWorkStaysClosed(t *testing.T) {
	for _, last := range []core.WorkState{core.WorkCompleted, core.WorkFailed, core.WorkCanceled} {
		t.Run(string(last), func(t *testing.T) {
			w := newWorld(t)
			w.accepted(w.arrive(w.nats, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
			w.accepted(w.arrive(w.mqtt, w.trace("bob", "ann", "w1", string(last))))
			for _, state := range core.WorkStates() {
				s := w.arrive(w.mqtt, w.trace("bob", "ann", "w1", string(state)))
				switch {
				case state == core.WorkCanceled && last == core.WorkCanceled:
					w.accepted(s)
				case state == core.WorkSubmitted:
					if s.Verdict != core.VerdictRejected {
						t.Fatalf("submitted after %s was taken", last)
					}
				default:
					w.refused(s, core.ReasonWorkClosed)
				}
			}
			w.refused(w.arrive(w.nats, w.say("ann", fields{"to": "bob", "work_id": "w1"})), core.ReasonWorkClosed)
			w.refused(w.arrive(w.mqtt, w.receipt("bob", "ann", "w1", "accepted")), core.ReasonWorkClosed)
		})
	}
}

func TestEveryOrderOfArrivalEndsInTheSameState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.policy.maxParkedFrom = 10
		messages := []fields{
			w.say("ann", fields{"to": "bob", "work_id": "w1"}),
			w.receipt("bob", "ann", "w1", "accepted"),
			w.trace("bob", "ann", "w1", "working"),
			w.trace("bob", "ann", "w1", "needs_input"),
			w.trace("bob", "ann", "w1", "completed"),
		}
		twice := append(append([]fields{}, messages...), messages...)
		for _, f := range rapid.Permutation(twice).Draw(rt, "order") {
			w.arrive(w.nats, f)
		}
		if state := w.state.Works[store.WorkKey{WorkspaceID: "ws", WorkID: "w1"}].State; state != core.WorkCompleted {
			rt.Fatalf("ended %s, want completed", state)
		}
		if w.parked.total != 0 {
			rt.Fatalf("%d still parked", w.parked.total)
		}
	})
}

func TestParkingIsBoundedAndEndsWithFreshness(t *testing.T) {
	w := newWorld(t)
	early := w.trace("bob", "ann", "w1", "working")
	s := w.arrive(w.mqtt, early)
	if !s.Parked || s.Seq != 0 || s.Verdict != core.VerdictCommitted {
		t.Fatalf("settled %+v, want parked", s)
	}
	if s = w.arrive(w.mqtt, early); !s.Duplicate || !s.Parked {
		t.Fatalf("settled %+v, want a duplicate that is parked", s)
	}
	w.arrive(w.mqtt, w.trace("bob", "ann", "w2", "working"))
	w.arrive(w.mqtt, w.trace("bob", "ann", "w3", "working"))
	w.refused(w.arrive(w.mqtt, w.trace("bob", "ann", "w4", "working")), core.ReasonBusy)
	w.refused(w.arrive(w.mqtt, w.trace("bob", "ann", "w4", "submitted")), core.ReasonMalformed)

	w.now = w.now.Add(6 * time.Minute)
	w.accepted(w.arrive(w.nats, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
	if len(w.changes.Messages) != 1 || len(w.changes.Rejections) != 1 || w.changes.Rejections[0].Reason != core.ReasonNotFound {
		t.Fatalf("a stale parked message was not ended as not_found: %+v", w.changes.Rejections)
	}
	if w.parked.total != 2 {
		t.Fatalf("%d parked, want 2", w.parked.total)
	}
}

func TestReleasedMessagesFollowTheirOpenerInOrder(t *testing.T) {
	w := newWorld(t)
	w.arrive(w.mqtt, w.trace("bob", "ann", "w1", "completed"))
	w.arrive(w.mqtt, w.trace("bob", "ann", "w1", "working"))
	w.arrive(w.mqtt, w.trace("eve", "ann", "w1", "working"))
	w.accepted(w.arrive(w.nats, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
	if n := len(w.changes.Messages); n != 2 {
		t.Fatalf("%d messages, want the opener and the first terminal one", n)
	}
	if w.changes.Messages[1].Seq != 2 || !w.changes.Messages[1].Released {
		t.Fatalf("released as %+v", w.changes.Messages[1])
	}
	reasons := []core.Reason{w.changes.Rejections[0].Reason, w.changes.Rejections[1].Reason}
	if reasons[0] != core.ReasonWorkClosed || reasons[1] != core.ReasonNotTarget {
		t.Fatalf("rejections %v", reasons)
	}
	if len(w.changes.Forgotten) != 2 || len(w.changes.Unparked) != 3 {
		t.Fatalf("forgotten %v, unparked %v", w.changes.Forgotten, w.changes.Unparked)
	}
}

func TestDirectRooms(t *testing.T) {
	w := newWorld(t)
	text := fields{"body": fields{"text": "x"}}
	w.refused(w.arrive(w.http, w.envelope("say", "ann", inRoom(roomOne), text)), core.ReasonConversationNotFound)
	w.accepted(w.arrive(w.http, w.envelope("say", "ann", inRoom(roomOne), text, fields{"to": "bob"})))
	w.refused(w.arrive(w.http, w.envelope("say", "eve", inRoom(roomOne), text, fields{"to": "bob"})), core.ReasonNotTarget)
	w.refused(w.arrive(w.http, w.envelope("say", "ann", inRoom(roomOne), text, fields{"to": "eve"})), core.ReasonNotTarget)
	w.accepted(w.arrive(w.http, w.envelope("say", "bob", inRoom(roomOne), text)))
	if to := w.changes.Deliveries[0].To; to != "ann" {
		t.Fatalf("without to it goes to %q, want the other party", to)
	}
	w.accepted(w.arrive(w.http, w.envelope("say", "ann", inRoom(roomTwo), text, fields{"to": "bob"})))
}

func TestRejectionReceipts(t *testing.T) {
	work := fields{"to": "bob", "work_id": "w1"}
	stale := func(w *world) fields {
		f := w.say("ann", work)
		f["ts"] = w.now.Unix() - 1000
		return f
	}
	cases := []struct {
		name   string
		offer  func(*world) fields
		via    func(*world) *origin
		change func(*offer)
		status string
	}{
		{"a stale opener", stale, nil, nil, "expired"},
		{"a say without work_id owes none", func(w *world) fields {
			f := w.say("ann")
			f["ts"] = w.now.Unix() - 1000
			return f
		}, nil, nil, ""},
		{"HTTP has answered already", stale, func(w *world) *origin { return w.http }, nil, ""},
		{"a from that may not speak here", stale, nil, func(o *offer) { o.fromAllowed = false }, ""},
		{"a sender over its allowance", stale, nil, func(o *offer) { o.receiptAllowed = func() bool { return false } }, ""},
		{"a trace", func(w *world) fields {
			f := w.trace("ann", "bob", "w1", "working")
			f["ts"] = w.now.Unix() - 1000
			return f
		}, nil, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			via := w.nats
			if c.via != nil {
				via = c.via(w)
			}
			change := c.change
			if change == nil {
				change = func(*offer) {}
			}
			f := c.offer(w)
			w.arrive(via, f, change)
			if c.status == "" {
				if len(w.changes.Messages) != 0 {
					t.Fatalf("sent %s", w.changes.Messages[0].Payload)
				}
				return
			}
			w.checkReceipt(f["id"].(string), c.status)
			w.arrive(via, f, change)
			if len(w.changes.Messages) != 0 {
				t.Fatal("the same refusal made a second receipt")
			}
		})
	}
}

func TestADuplicateOpenerOwesAReceiptUnlessTheCarrierRepeatedIt(t *testing.T) {
	w := newWorld(t)
	f := w.say("ann", fields{"to": "bob", "work_id": "w1"})
	w.accepted(w.arrive(w.nats, f))
	w.arrive(w.nats, f, func(o *offer) { o.in.Redelivered = true })
	if len(w.changes.Messages) != 0 {
		t.Fatal("the carrier's own redelivery made a receipt")
	}
	w.arrive(w.nats, f)
	w.checkReceipt(f["id"].(string), "duplicate")
	if state := w.state.Works[store.WorkKey{WorkspaceID: "ws", WorkID: "w1"}].State; state != core.WorkSubmitted {
		t.Fatalf("the receipt moved the work to %s", state)
	}
}

func (w *world) checkReceipt(forID, status string) {
	w.t.Helper()
	if len(w.changes.Messages) != 1 {
		w.t.Fatalf("%d messages, want one receipt", len(w.changes.Messages))
	}
	env, refusal := core.Parse(w.changes.Messages[0].Payload)
	if refusal == nil {
		refusal = env.CheckBody()
	}
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	if string(env.Receipt.Status) != status || env.Receipt.ForID != forID || env.From != "gateway.test" || env.To != "ann" {
		w.t.Fatalf("receipt %s", env.Raw)
	}
	if len(w.changes.Deliveries) != 1 || w.changes.Deliveries[0].ID.Recipient != w.nats.row || w.changes.Deliveries[0].To != "ann" {
		w.t.Fatalf("deliveries %+v", w.changes.Deliveries)
	}
}
