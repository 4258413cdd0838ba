package gateway

import (
	"fmt"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
)

// What a destination is handed and what it reads from the outbox are one queue:
// bursts that are too many to be handed over, a trickle, replays and cuts leave
// every message sent in order.
func TestHandedAndReadDeliveriesAreOneQueue(t *testing.T) {
	h := newHouse(t)
	h.start()
	total := 0
	send := func(n int) {
		var last *carriertest.Injected
		for range n {
			last = h.a.Native(h.say())
		}
		total += n
		h.take(last)
	}
	for round := range 3 {
		send(1)
		h.sent(h.b, total)
		h.b.Withhold(true)
		send(handoffRows + 500)
		h.b.Withhold(false)
		for range 20 {
			send(1 + round)
		}
		h.sent(h.b, total)
	}
	checkOrder(t, h.b, total)
}

// A delivery that was handed over is dropped with the queue it is in when the
// outbox changes under it: what was given up is not sent.
func TestWhatIsGivenUpIsNotHandedOver(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Store.MaxPending = 100 })
	h.start()
	h.take(h.a.Native(h.say()))
	h.sent(h.b, 1)
	h.b.Withhold(true)
	for range 64 {
		h.take(h.a.Native(h.say()))
	}
	h.eventually("the window is full", func() bool { return h.b.Peak(h.b.Link()) == 64 })
	for range 300 {
		h.take(h.a.Native(h.say()))
	}
	h.b.Withhold(false)
	h.eventually("nothing waits", func() bool { return pendingFor(h, "carrier:b") == 0 })
	// Beside the newest 100, those that were under way are sent, and the one that
	// waited for its place in the window.
	if n, most := len(h.b.Sent()), 1+64+1+100; n > most {
		t.Fatalf("%d of 365 were sent, want at most %d", n, most)
	}
}

// checkOrder checks that the ids come out once each and in order.
func checkOrder(t *testing.T, m *carriertest.Memory, n int) {
	t.Helper()
	sent := m.Sent()
	if len(sent) != n {
		t.Fatalf("%d were sent, want %d", len(sent), n)
	}
	for i, o := range sent {
		if want := fmt.Sprintf("id-%d", i+1); o.Envelope.ID != want {
			t.Fatalf("%s was sent in place %d, want %s", o.Envelope.ID, i, want)
		}
	}
}

func pendingFor(h *house, recipient string) int64 {
	h.Gateway.dir.mu.RLock()
	defer h.Gateway.dir.mu.RUnlock()
	for _, r := range h.Gateway.dir.byID {
		if r.String() == recipient {
			return r.pending
		}
	}
	return -1
}
