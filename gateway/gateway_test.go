package gateway

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

func TestAMessageComesOutElsewhereByteForByte(t *testing.T) {
	h := newHouse(t)
	h.start()
	payload := h.say()
	s := h.take(h.a.Native(payload))
	if s.Seq != 1 || s.ID != "id-1" {
		t.Fatalf("settled %+v", s)
	}
	out := h.sent(h.b, 1)[0]
	if !bytes.Equal(out.Envelope.Raw, payload) || out.To != "" {
		t.Fatalf("sent to %q:\n%s\nwant\n%s", out.To, out.Envelope.Raw, payload)
	}
	h.eventually("the acknowledgement is recorded", func() bool { return h.deliveryState("id-1", "carrier:b") == core.DeliveryAcked })
	if n := len(h.a.Sent()); n != 0 {
		t.Fatalf("%d came back on its own carrier", n)
	}
	if r := h.inspect("id-1").Receipts; len(r) != 0 {
		t.Fatalf("a carrier's acknowledgement became a receipt: %+v", r)
	}
}

func TestOneIdOfferedAtOnceIsAcceptedOnce(t *testing.T) {
	h := newHouse(t)
	h.start()
	payload := h.say()
	var frames []*carriertest.Injected
	for range 50 {
		frames = append(frames, h.a.Ingress(payload), h.b.Ingress(payload))
	}
	fresh := 0
	for _, f := range frames {
		if s := h.take(f); !s.Duplicate {
			fresh++
		} else if s.Seq != 1 {
			t.Fatalf("a duplicate of seq %d", s.Seq)
		}
	}
	if fresh != 1 {
		t.Fatalf("%d acceptances, want 1", fresh)
	}
	h.sent(h.a, 1)
	h.sent(h.b, 1)
	other := h.settled(h.a.Ingress(h.sayAs("id-1", "other")))
	if other.Verdict != core.VerdictRejected || other.Rejection.Reason != core.ReasonDuplicate {
		t.Fatalf("other content: %+v", other)
	}
}

func TestARestartGoesOnWithTheOutbox(t *testing.T) {
	h := newHouse(t)
	h.b.Cut()
	h.start()
	for range 10 {
		h.take(h.a.Native(h.say()))
	}
	h.stop()
	h.b.Restore()
	h.start()
	out := h.sent(h.b, 10)
	for i, o := range out {
		if want := fmt.Sprintf("id-%d", i+1); o.Envelope.ID != want {
			t.Fatalf("number %d is %s, want %s", i, o.Envelope.ID, want)
		}
	}
	if s := h.take(h.a.Native(h.sayAs("id-3", "text 3"))); !s.Duplicate || s.Seq != 3 {
		t.Fatalf("after the restart: %+v", s)
	}
}

func TestOrderIsKeptOverCuts(t *testing.T) {
	h := newHouse(t)
	h.start()
	const n = 200
	for i := range n {
		if i == 60 || i == 140 {
			h.b.Cut()
		}
		if i == 80 || i == 150 {
			h.b.Restore()
		}
		h.take(h.a.Native(h.say()))
	}
	seen, last := map[string]bool{}, 0
	h.eventually("all came out", func() bool {
		clear(seen)
		for _, o := range h.b.Sent() {
			seen[o.Envelope.ID] = true
		}
		return len(seen) == n
	})
	clear(seen)
	for _, o := range h.b.Sent() {
		var i int
		if _, err := fmt.Sscanf(o.Envelope.ID, "id-%d", &i); err != nil {
			t.Fatal(err)
		}
		if !seen[o.Envelope.ID] && i != last+1 {
			t.Fatalf("first delivery of %d after %d", i, last)
		}
		if !seen[o.Envelope.ID] {
			last = i
		}
		seen[o.Envelope.ID] = true
	}
}

func TestALockedDatabaseSettlesNothingAndThenEverythingOnce(t *testing.T) {
	h := newHouse(t)
	h.patience = 50 * time.Millisecond
	h.start()
	h.take(h.a.Native(h.say()))
	unlock := h.lockDatabase()
	frames := []*carriertest.Injected{h.a.Native(h.say()), h.b.Native(h.say()), h.a.Native([]byte("{bad"))}
	h.eventually("the store's trouble shows", func() bool { return h.StoreTrouble() != "" })
	for _, f := range frames {
		if s := f.Learnt(); len(s) != 0 {
			t.Fatalf("settled %+v while the database was locked", s)
		}
	}
	for _, c := range h.Carriers() {
		if c.State == core.StateReady {
			t.Fatalf("carrier %s says ready while nothing can be stored", c.Name)
		}
		if c.Why != "the store cannot write now (see the log)" || c.Trouble != core.TroubleStore {
			t.Fatalf("carrier %s tells everybody %q and %q", c.Name, c.Trouble, c.Why)
		}
	}
	unlock()
	h.take(frames[0])
	h.take(frames[1])
	if s := h.settled(frames[2]); s.Verdict != core.VerdictRejected {
		t.Fatalf("settled %+v", s)
	}
	h.eventually("the trouble is over", func() bool { return h.StoreTrouble() == "" })
	if messages, _, err := h.View("a").History(t.Context(), core.HistoryQuery{WorkspaceID: "ws", Channel: "ops", Limit: 10}); err != nil || len(messages) != 3 {
		t.Fatalf("%d messages, %v; want 3", len(messages), err)
	}
}

func TestADeadDestinationDelaysNobodyElse(t *testing.T) {
	h := newHouse(t)
	h.b.Withhold(true)
	h.start()
	for range 100 {
		h.take(h.b.Native(h.say()))
		h.take(h.a.Native(h.say()))
	}
	h.sent(h.a, 100)
	h.b.Withhold(false)
	h.sent(h.b, 100)
}

func TestARefusedMessageIsDeadAndTheNextGoesOn(t *testing.T) {
	h := newHouse(t)
	h.start()
	h.b.Refuse(&core.SendError{Code: core.CodeRefused, Detail: "no such thing"})
	h.take(h.a.Native(h.say()))
	h.eventually("it is dead", func() bool { return h.deliveryState("id-1", "carrier:b") == core.DeliveryDead })
	h.b.Refuse(nil)
	h.take(h.a.Native(h.say()))
	h.sent(h.b, 1)
	letters, err := h.View("a").DeadLetters(t.Context(), "", 10)
	if err != nil || len(letters) != 1 || letters[0].ID != "id-1" || letters[0].Reason != "refused" {
		t.Fatalf("dead letters %+v, %v", letters, err)
	}
	id, err := core.ParseDeliveryID(letters[0].Delivery)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.View("a").Replay(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if out := h.sent(h.b, 2)[1]; out.Envelope.ID != "id-1" {
		t.Fatalf("replayed %s", out.Envelope.ID)
	}
	if err := h.View("a").Replay(t.Context(), id); err == nil {
		t.Fatal("a delivery that is not dead was replayed")
	}
}

func TestALateDeliveryExpiresAndStaysReadable(t *testing.T) {
	h := newHouse(t)
	h.b.Cut()
	h.start()
	h.take(h.a.Native(h.say(fmt.Sprintf(`"expires_at":%d`, h.now().Unix()+60))))
	h.offset.Add(int64(2 * time.Minute))
	h.eventually("it is expired", func() bool { return h.deliveryState("id-1", "carrier:b") == core.DeliveryExpired })
	h.b.Restore()
	if n := len(h.b.Sent()); n != 0 {
		t.Fatalf("%d late messages came out", n)
	}
}

func TestAFullOutboxGivesUpTheOldest(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Store.MaxPending = 5 })
	h.b.Cut()
	h.start()
	for range 8 {
		h.take(h.a.Native(h.say()))
	}
	letters, err := h.View("a").DeadLetters(t.Context(), "", 10)
	if err != nil || len(letters) != 3 || letters[0].ID != "id-1" || letters[0].Reason != "outbox full" {
		t.Fatalf("dead letters %+v, %v", letters, err)
	}
	h.b.Restore()
	if out := h.sent(h.b, 5); out[0].Envelope.ID != "id-4" {
		t.Fatalf("the first to come out is %s", out[0].Envelope.ID)
	}
}

func TestADirectMessageWaitsUntilItsPeerIsHeard(t *testing.T) {
	h := newHouse(t)
	h.start()
	direct := func(id, from, to string) []byte {
		return fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":"say","surface":"direct",`+
			`"direct_id":"direct_0123456789abcdef0123456789abcdef","from":%q,"to":%q,"ts":%d,"body":{"text":"x"}}`, id, from, to, h.now().Unix())
	}
	h.take(h.a.Native(direct("d1", "ann", "bob")))
	h.take(h.a.Native(direct("d2", "ann", "bob")))
	if got := h.inspect("d1").Deliveries; len(got) != 1 || got[0].Recipient != "peer:bob" || got[0].State != core.DeliveryPending {
		t.Fatalf("deliveries %+v", got)
	}
	hello := bytes.Replace(h.say(), []byte(`"from":"ann"`), []byte(`"from":"bob"`), 1)
	h.take(h.b.Native(hello))
	var direct1 []core.Outbound
	h.eventually("both move to where bob was heard", func() bool {
		direct1 = direct1[:0]
		for _, o := range h.b.Sent() {
			if o.To == "bob" {
				direct1 = append(direct1, o)
			}
		}
		return len(direct1) == 2
	})
	if direct1[0].Envelope.ID != "d1" || direct1[1].Envelope.ID != "d2" {
		t.Fatalf("order %s, %s", direct1[0].Envelope.ID, direct1[1].Envelope.ID)
	}
}

func TestADirectMessageIsIgnoredWhenItsPeerIsHeardWhereItCameFrom(t *testing.T) {
	h := newHouse(t)
	h.start()
	h.take(h.a.Native(fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":"d1","workspace_id":"ws","channel":"ops","kind":"say","surface":"direct",`+
		`"direct_id":"direct_0123456789abcdef0123456789abcdef","from":"ann","to":"bob","ts":%d,"body":{"text":"x"}}`, h.now().Unix())))
	h.take(h.a.Native(bytes.Replace(h.say(), []byte(`"from":"ann"`), []byte(`"from":"bob"`), 1)))
	found := h.inspect("d1")
	if len(found.Deliveries) != 0 {
		t.Fatalf("deliveries %+v", found.Deliveries)
	}
	for _, d := range found.Decisions {
		if d.Recipient == "peer:bob" && d.Decision == "ignore" && d.Reason == core.IgnoreOrigin {
			return
		}
	}
	t.Fatalf("decisions %+v", found.Decisions)
}

func TestAnInboxIsAcknowledgedByItsCursor(t *testing.T) {
	h := newHouse(t)
	h.start()
	at := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bob"}
	if err := h.a.Attach(h.context(), at); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.take(h.a.Native(h.say()))
	}
	v := h.View("a")
	entries, err := v.Inbox(t.Context(), at, 0, 10)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	ack := core.Ack{Kind: core.AckHTTPCursor, At: h.now()}
	if n, err := v.AckThrough(t.Context(), at, entries[2].Position, ack); err != nil || n != 0 {
		t.Fatalf("acknowledged %d that were never served, %v", n, err)
	}
	if err := v.Served(t.Context(), at, entries[1].Position); err != nil {
		t.Fatal(err)
	}
	if n, err := v.AckThrough(t.Context(), at, entries[2].Position+100, ack); err != nil || n != 2 {
		t.Fatalf("acknowledged %d, %v; want the two that were served", n, err)
	}
	if state := h.deliveryState("id-3", "peer:bob"); state != core.DeliveryPending {
		t.Fatalf("the third is %s", state)
	}
}

func TestAStopLosesNothingThatWasAcknowledged(t *testing.T) {
	h := newHouse(t)
	h.start()
	var mu sync.Mutex
	var frames []*carriertest.Injected
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		for ctx.Err() == nil && len(frames) < 2000 {
			f := h.a.Native(h.say())
			mu.Lock()
			frames = append(frames, f)
			mu.Unlock()
		}
	})
	h.sent(h.b, 50)
	h.stop()
	cancel()
	sending.Wait()
	acked := map[string]bool{}
	for _, f := range frames {
		for _, s := range f.Learnt() {
			if s.Verdict == core.VerdictCommitted {
				acked[s.ID] = true
			}
		}
	}
	h.start()
	h.eventually("everything that was acknowledged comes out", func() bool {
		missing := maps.Clone(acked)
		for _, o := range h.b.Sent() {
			delete(missing, o.Envelope.ID)
		}
		return len(missing) == 0
	})
}

func TestAPushedPeerThatNobodyHostsAnyMoreIsDetached(t *testing.T) {
	h := newHouse(t)
	h.start()
	at := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bob", Push: true}
	if err := h.a.Attach(h.context(), at); err != nil {
		t.Fatal(err)
	}
	h.take(h.b.Native(h.say()))
	h.eventually("it is pushed", func() bool { return h.deliveryState("id-1", "peer:bob") == core.DeliveryAcked })
	h.stop()
	h.start()
	h.take(h.b.Native(h.say()))
	if state := h.deliveryState("id-2", "peer:bob"); state != "" {
		t.Fatalf("a forgotten peer has a delivery: %s", state)
	}
}

func TestAStopDoesNotWaitForEverForALockedDatabase(t *testing.T) {
	h := newHouse(t)
	h.patience = 50 * time.Millisecond
	h.start()
	h.take(h.a.Native(h.say()))
	unlock := h.lockDatabase()
	defer unlock()
	frames := []*carriertest.Injected{h.a.Native(h.say()), h.b.Native(h.say())}
	h.eventually("the store's trouble shows", func() bool { return h.StoreTrouble() != "" })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.stop()
	}()
	// Time passes for the gateway's clock only.
	h.eventually("it stops", func() bool {
		h.offset.Add(int64(time.Second))
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	for _, f := range frames {
		for _, s := range f.Learnt() {
			if s.Verdict == core.VerdictCommitted {
				t.Fatalf("acknowledged although nothing could be stored: %+v", s)
			}
		}
	}
}
