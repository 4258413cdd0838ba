package gateway

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

func (h *house) direct(id, channel, to string) []byte {
	return fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":%q,"kind":"say","surface":"direct",`+
		`"direct_id":"direct_0123456789abcdef0123456789abcdef","from":"ann","to":%q,"ts":%d,"body":{"text":"x"}}`, id, channel, to, h.now().Unix())
}

// from is the message as another peer says it.
func from(peer string, payload []byte) []byte {
	return bytes.Replace(payload, []byte(`"from":"ann"`), []byte(`"from":"`+peer+`"`), 1)
}

func TestWhatWaitsForAPeerKeepsToTheScopesOfTheLinkWhereItIsHeard(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Scopes = Scopes{"b": {{Channels: []string{"ops"}}}} })
	h.start()
	h.take(h.a.Ingress(h.direct("hidden", "secret", "bob")))
	h.take(h.a.Ingress(h.direct("open", "ops", "bob")))
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("what may go out does", func() bool { return h.deliveryState("open", "carrier:b") == core.DeliveryAcked })
	if got := h.inspect("hidden").Deliveries; len(got) != 1 || got[0].Recipient != "peer:bob" || got[0].State != core.DeliveryPending {
		t.Fatalf("what may not go out there: %+v", got)
	}
	for _, o := range h.b.Sent() {
		if o.Envelope.Channel == "secret" {
			t.Fatalf("it went out: %s", o.Envelope.Raw)
		}
	}
}

func TestWhatWaitedGoesOutBeforeWhatComesWithItsPeer(t *testing.T) {
	h := newHouse(t)
	h.patience = 50 * time.Millisecond
	h.b.Cut()
	h.start()
	h.take(h.a.Native(h.direct("d1", "ops", "bob")))
	// One group holds the news of where bob is and a second message for him.
	unlock := h.lockDatabase()
	h.a.Native(h.say())
	h.eventually("the store is stuck", func() bool { return h.StoreTrouble() != "" })
	h.b.Restore()
	first := h.b.Native(from("bob", h.say()))
	h.eventually("bob is heard", func() bool { return first.Offers() == 1 })
	second := h.a.Native(h.direct("d2", "ops", "bob"))
	h.eventually("the second is offered", func() bool { return second.Offers() == 1 })
	unlock()
	h.take(second)
	var got []string
	h.eventually("both come out", func() bool {
		got = got[:0]
		for _, o := range h.b.Sent() {
			if o.To == "bob" {
				got = append(got, o.Envelope.ID)
			}
		}
		return len(got) == 2
	})
	if got[0] != "d1" {
		t.Fatalf("came out as %v", got)
	}
}

func TestAMovedDeliveryNoLongerFillsTheQueueItLeft(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Store.MaxPending = 2 })
	h.start()
	h.take(h.a.Native(h.direct("d1", "ops", "bob")))
	h.take(h.a.Native(h.direct("d2", "ops", "bob")))
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("both are moved", func() bool { return h.deliveryState("d2", "carrier:b") == core.DeliveryAcked })
	if err := h.a.Attach(h.context(), core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bob"}); err != nil {
		t.Fatal(err)
	}
	h.take(h.a.Native(h.direct("d3", "ops", "bob")))
	if state := h.deliveryState("d3", "peer:bob"); state != core.DeliveryPending {
		t.Fatalf("the first of an empty inbox is %s", state)
	}
}

func TestWhomNothingWaitsForIsForgottenInMemory(t *testing.T) {
	h := newHouse(t)
	h.start()
	known := func() bool {
		return slices.ContainsFunc(h.Gateway.dir.snapshot(), func(r recipient) bool { return r.Peer == "bob" })
	}
	tick := func() { h.expireUnclaimed(h.context()) }
	h.take(h.a.Native(h.direct("d1", "ops", "bob")))
	tick()
	tick()
	if !known() {
		t.Fatal("forgotten while a message waits")
	}
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("it is moved", func() bool { return h.deliveryState("d1", "carrier:b") == core.DeliveryAcked })
	tick()
	tick()
	if known() || len(h.Gateway.dir.peers) != 0 {
		t.Fatalf("still known: %+v, %v", h.Gateway.dir.snapshot(), h.Gateway.dir.peers)
	}
	at := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bob"}
	if err := h.a.Attach(h.context(), at); err != nil {
		t.Fatal(err)
	}
	tick()
	tick()
	h.take(h.a.Native(h.direct("d2", "ops", "bob")))
	if state := h.deliveryState("d2", "peer:bob"); state != core.DeliveryPending {
		t.Fatalf("what comes after is %s", state)
	}
	if err := h.a.Detach(h.context(), at); err != nil {
		t.Fatal(err)
	}
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("it is moved too", func() bool { return h.deliveryState("d2", "carrier:b") == core.DeliveryAcked })
}

func TestAReplayBringsAForgottenPeerBack(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Store.MaxPending = 1 })
	h.start()
	h.take(h.a.Native(h.direct("d1", "ops", "bob")))
	h.take(h.a.Native(h.direct("d2", "ops", "bob")))
	if state := h.deliveryState("d1", "peer:bob"); state != core.DeliveryDead {
		t.Fatalf("the first of two is %s", state)
	}
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("the second is moved", func() bool { return h.deliveryState("d2", "carrier:b") == core.DeliveryAcked })
	h.expireUnclaimed(h.context())
	h.expireUnclaimed(h.context())
	if len(h.Gateway.dir.peers) != 0 {
		t.Fatalf("still known: %v", h.Gateway.dir.peers)
	}
	dead, err := h.View("a").DeadLetters(h.context(), "", 10)
	if err != nil || len(dead) != 1 {
		t.Fatalf("dead letters: %+v, %v", dead, err)
	}
	id, err := core.ParseDeliveryID(dead[0].Delivery)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.View("a").Replay(h.context(), id); err != nil {
		t.Fatal(err)
	}
	h.take(h.b.Native(from("bob", h.say())))
	h.eventually("it is moved too", func() bool { return h.deliveryState("d1", "carrier:b") == core.DeliveryAcked })
}

func TestWhatNobodyClaimedEndsHoweverManyItWasFor(t *testing.T) {
	h := newHouse(t)
	h.start()
	var last *carriertest.Injected
	for i := range expireRows + 100 {
		last = h.a.Native(bytes.Replace(h.direct(fmt.Sprintf("m-%d", i), "ops", fmt.Sprintf("peer-%d", i)),
			[]byte("0123456789abcdef0123456789abcdef"), fmt.Appendf(nil, "%032x", i), 1))
	}
	h.take(last)
	h.offset.Store(int64(DefaultConfig().Protocol.MaxDeliveryAge + time.Second))
	h.expireUnclaimed(h.context())
	for _, r := range h.Gateway.dir.snapshot() {
		if r.pending != 0 {
			t.Fatalf("something still waits for %s", r.Recipient)
		}
	}
	if state := h.deliveryState("m-0", "peer:peer-0"); state != core.DeliveryExpired {
		t.Fatalf("the first is %s", state)
	}
}

func TestAParkedMessageDoesNotSayWhereItsSenderIsNow(t *testing.T) {
	w := newWorld(t)
	w.arrive(w.nats, w.trace("bob", "ann", "w1", "working"))
	w.now = w.now.Add(time.Second)
	w.arrive(w.mqtt, w.say("bob", inThread("thread_two")))
	w.now = w.now.Add(time.Second)
	w.accepted(w.arrive(w.http, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
	if len(w.located) != 0 || w.state.Peers[store.PeerKey{WorkspaceID: "ws", Peer: "bob"}].Link != w.mqtt.row {
		t.Fatalf("located %+v, %+v", w.located, w.state.Peers[store.PeerKey{WorkspaceID: "ws", Peer: "bob"}])
	}
}

func TestAFrameLargerThanTheQueueIsRefusedAndTheNextGoesOn(t *testing.T) {
	h := newHouse(t)
	h.start()
	huge := h.a.Native(bytes.Repeat([]byte("x"), queueBytes+1))
	next := h.a.Native(h.say())
	if s := h.settled(huge); s.Verdict != core.VerdictRejected || !s.Rejection.TooLarge {
		t.Fatalf("settled %+v", s)
	}
	h.take(next)
}

func TestAReceiptOfTheGatewayWakesThoseWhoWatch(t *testing.T) {
	h := newHouse(t)
	h.start()
	h.take(h.a.Native(h.say(`"to":"bob"`, `"work_id":"w1"`)))
	h.eventually("all is quiet", func() bool { return h.deliveryState("id-1", "carrier:b") == core.DeliveryAcked })
	committed := h.View("a").Committed()
	elsewhere := bytes.Replace(h.say(`"to":"bob"`, `"work_id":"w1"`), []byte(`"thread_one"`), []byte(`"thread_two"`), 1)
	if s := h.settled(h.a.Native(elsewhere)); s.Verdict != core.VerdictRejected {
		t.Fatalf("settled %+v", s)
	}
	h.sent(h.a, 1)
	select {
	case <-committed:
	default:
		t.Fatal("the receipt is in the history, and nobody was told")
	}
}

func TestWhatWasFreshWhenItCameIsTakenHoweverLongTheStoreWasStuck(t *testing.T) {
	h := newHouse(t)
	h.patience = 50 * time.Millisecond
	h.start()
	h.take(h.a.Native(h.say()))
	unlock := h.lockDatabase()
	plain := h.a.Native(h.say())
	limited := h.a.Native(h.say(fmt.Sprintf(`"expires_at":%d`, h.now().Unix()+60)))
	h.eventually("the trouble shows", func() bool { return h.StoreTrouble() != "" && limited.Offers() == 1 })
	h.offset.Add(int64(6 * time.Minute))
	unlock()
	h.take(plain)
	if s := h.settled(limited); s.Verdict != core.VerdictRejected || s.Rejection.Reason != core.ReasonExpired {
		t.Fatalf("what says itself that its time is over: %+v", s)
	}
}

func TestACursorAcknowledgesNothingThatWasNotServed(t *testing.T) {
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
	entries, err := v.Inbox(t.Context(), at, 2, 10)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries behind 2, %v", len(entries), err)
	}
	if err := v.Served(t.Context(), at, entries[0].Position); err != nil {
		t.Fatal(err)
	}
	n, err := v.AckThrough(t.Context(), at, entries[0].Position, core.Ack{Kind: core.AckHTTPCursor, At: h.now()})
	if err != nil || n != 1 || h.deliveryState("id-1", "peer:bob") != core.DeliveryPending {
		t.Fatalf("acknowledged %d, %v; the first is %s", n, err, h.deliveryState("id-1", "peer:bob"))
	}
}

func TestAnAcknowledgementOfNoDeliveryIsNotFound(t *testing.T) {
	h := newHouse(t)
	h.start()
	if err := h.a.Acked(h.context(), core.DeliveryID{Seq: 9, Recipient: 9}, core.Ack{Kind: core.AckStdioAck}); err == nil {
		t.Fatal("an unknown delivery was acknowledged")
	}
}

func TestWhoMayNotSpeakLearnsNothingOfWhatIsKnown(t *testing.T) {
	w := newWorld(t)
	f := w.say("ann")
	w.accepted(w.arrive(w.http, f))
	w.now = w.now.Add(time.Hour)
	stranger := func(o *offer) { o.fromAllowed = false }
	w.refused(w.arrive(w.http, f, stranger), core.ReasonExpired)
	f["body"] = fields{"text": "other"}
	w.refused(w.arrive(w.http, f, stranger), core.ReasonExpired)
}
