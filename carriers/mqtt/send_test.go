package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func codeOf(err error) core.SendCode {
	var failed *core.SendError
	if errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

func newCarrier(t *testing.T, b *fakeBroker, change ...func(*Config)) *Carrier {
	t.Helper()
	cfg := testConfig(b.url())
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg, testHost("mqtt"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASendIsAcknowledgedOnlyByItsOwnPubAck(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)

	// The broker takes the packet and closes without PUBACK; on the next
	// connection it is silent.
	b.set(func() { b.dropPublishes, b.silent = 1, true })
	lost := result(t, send(c, patience, "one"))
	if codeOf(lost.err) != core.CodeTimeout {
		t.Fatalf("a publish whose connection broke: %v, want %s", lost.err, core.CodeTimeout)
	}
	ready(t, c)
	again := send(c, 300*time.Millisecond, "one")
	until(t, "the message is written again", func() bool { return len(b.publishes()) == 1 })
	if got := result(t, again); codeOf(got.err) != core.CodeTimeout {
		t.Fatalf("a publish that nobody acknowledged: %+v, want %s", got, core.CodeTimeout)
	}
	b.set(func() { b.silent = false })
	if got := result(t, send(c, patience, "one")); got.err != nil || got.ack.Kind != core.AckMQTTPubAck {
		t.Fatalf("a publish that was acknowledged: %+v", got)
	}
}

func TestEveryWaitingSendEndsWhenTheConnectionBreaks(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)
	b.set(func() { b.withhold = true })
	var waiting []<-chan outcome
	for i := range 64 {
		waiting = append(waiting, send(c, time.Minute, fmt.Sprint(i)))
	}
	until(t, "all are written", func() bool { return len(b.publishes()) == 64 })
	b.cut()
	begin := time.Now()
	for _, w := range waiting {
		if got := result(t, w); codeOf(got.err) != core.CodeTimeout {
			t.Fatalf("a send whose connection broke: %+v, want %s", got, core.CodeTimeout)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the sends ended %s after the connection", took)
	}
}

func TestAnAcknowledgementOfAnotherConnectionCountsForNothing(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)
	b.set(func() { b.withhold = true })
	first := send(c, time.Minute, "first")
	until(t, "the message is written", func() bool { return len(b.publishes()) == 1 })
	b.cut()
	result(t, first)
	ready(t, c)
	// The second connection counts its packet ids anew. A PUBACK for an id that
	// was never used must settle nothing, one for the used id its own message.
	second := send(c, time.Minute, "second")
	until(t, "the message is written", func() bool { return len(b.publishes()) == 2 })
	seen := b.publishes()[1]
	b.acknowledge(seen.clientID, seen.packet.PacketID+7)
	never(t, 50*time.Millisecond, "a PUBACK with a foreign packet id settled a send", func() bool { return len(second) > 0 })
	b.acknowledge(seen.clientID, seen.packet.PacketID)
	if got := result(t, second); got.err != nil {
		t.Fatalf("the send that was acknowledged: %v", got.err)
	}
}

func TestASendOverASizeLimitFailsForGoodAndTheNextPasses(t *testing.T) {
	b := newFakeBroker(t)
	b.set(func() { b.tooLarge = 1000 })
	c := newCarrier(t, b, func(cfg *Config) { cfg.MaxPayload = 1000 })
	start(t, c, committing())
	ready(t, c)
	got := result(t, send(c, patience, strings.Repeat("x", 1001)))
	if codeOf(got.err) != core.CodeTooLarge || !codeOf(got.err).Permanent() {
		t.Fatalf("a payload over the limit: %v, want %s", got.err, core.CodeTooLarge)
	}
	if got := result(t, send(c, patience, strings.Repeat("x", 1000))); got.err != nil {
		t.Fatalf("a payload at the limit: %v", got.err)
	}
	if n := len(b.connections()); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}

func TestASendAgainstASilentPeerEndsInTime(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b, func(cfg *Config) { cfg.Keepalive = time.Second })
	start(t, c, committing())
	ready(t, c)
	// The peer stops reading: small packets vanish in buffers, large ones block
	// the socket. Nothing answers, not even pings.
	b.hear(false)
	result(t, send(c, 100*time.Millisecond, "the read that was under way"))
	big := strings.Repeat("x", 1<<20)
	var waiting []<-chan outcome
	begin := time.Now()
	for range 40 {
		waiting = append(waiting, send(c, 500*time.Millisecond, big))
	}
	for _, w := range waiting {
		if got := result(t, w); got.err == nil {
			t.Fatal("a send that nobody can have received was acknowledged")
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the sends took %s to end", took)
	}
	until(t, "the keepalive finds out", func() bool { return c.Status().State != core.StateReady })
	b.hear(true)
	ready(t, c)
	if got := result(t, send(c, patience, "small")); got.err != nil {
		t.Fatalf("a send after the recovery: %v", got.err)
	}
}

func TestABrokerThatNeverAcknowledgesIsConnectedToAnew(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b, func(cfg *Config) { cfg.InFlight = 2 })
	start(t, c, committing())
	ready(t, c)
	b.set(func() { b.withhold = true })
	before := len(b.connections())
	for range 3 {
		result(t, send(c, 20*time.Millisecond, "x"))
	}
	until(t, "the connection is made anew", func() bool { return len(b.connections()) > before })
}

func TestFirstDeliveriesKeepTheirOrderAcrossCuts(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)

	const total = 200
	var cuts sync.WaitGroup
	for _, after := range []int{50, 120} {
		cuts.Go(func() {
			for end := time.Now().Add(patience); len(b.publishes()) < after && time.Now().Before(end); {
				time.Sleep(100 * time.Microsecond)
			}
			b.cut()
		})
	}
	deliverAll(t, c, total)
	cuts.Wait()

	var firsts []string
	for _, p := range b.publishes() {
		if s := string(p.packet.Payload); !slices.Contains(firsts, s) {
			firsts = append(firsts, s)
		}
	}
	if len(firsts) != total || !slices.IsSorted(firsts) {
		t.Errorf("%d of %d messages came out, in the order %v", len(firsts), total, firsts)
	}
}

// deliverAll sends numbered messages as the gateway's dispatch does: a window in
// flight, and after a failure everything from the first failed one on again.
func deliverAll(t *testing.T, c *Carrier, total int) {
	t.Helper()
	for next := 0; next < total; {
		var window []<-chan outcome
		for i := next; i < min(next+16, total); i++ {
			window = append(window, send(c, 5*time.Second, fmt.Sprintf("%04d", i)))
		}
		failed := false
		for _, w := range window {
			if got := result(t, w); got.err != nil {
				failed = true
			} else if !failed {
				next++
			}
		}
		if failed {
			ready(t, c)
		}
	}
}

func TestASendIsNotAddressedByWhatBrokersRefuse(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)
	for _, workspace := range []string{"", "a\x00b", "a\nb", "\xff"} {
		var got error
		out := core.Outbound{Envelope: &core.Envelope{WorkspaceID: workspace, Channel: "lab", Raw: []byte("{}")}}
		c.Send(context.Background(), out, func(_ core.Ack, err error) { got = err })
		if codeOf(got) != core.CodeBadAddress {
			t.Errorf("workspace %q: %v, want %s", workspace, got, core.CodeBadAddress)
		}
	}
	if n := len(b.publishes()); n != 0 {
		t.Errorf("%d messages were published", n)
	}
}

func TestWorkspacesOfAnyCharactersAreReached(t *testing.T) {
	for _, workspace := range []string{"工作", "a\u0085b", "a\ufdd0b", "a/+#%$b", strings.Repeat("\u009f", 128)} {
		in := committing()
		b, c := embedded(t, in)
		watcher := watching(t, b)
		out := core.Outbound{Envelope: &core.Envelope{WorkspaceID: workspace, Channel: "lab", Raw: []byte("out")}}
		got := make(chan error, 1)
		c.Send(t.Context(), out, func(_ core.Ack, err error) { got <- err })
		if err := <-got; err != nil {
			t.Errorf("workspace %q: %v", workspace, err)
			continue
		}
		until(t, "it is shown", func() bool { return len(watcher.received()) == 1 })
		device := dialDevice(t, b, "device")
		device.publish(watcher.received()[0].TopicName, []byte("in"), 1)
		if o := in.await(t, 1); o.Address == nil || o.Address.WorkspaceID != workspace {
			t.Errorf("workspace %q comes back as %+v, %s", workspace, o.Address, o.BadAddress)
		}
	}
}

func TestASendWithoutAConnectionFailsAtOnce(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := socket.Addr().String()
	_ = socket.Close()
	c, err := New(testConfig("tcp://"+address), testHost("mqtt"))
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, committing())
	until(t, "the status says what is missing", func() bool { return strings.Contains(c.Status().Why, "refused") })
	if got := result(t, send(c, time.Minute, "x")); codeOf(got.err) != core.CodeUnavailable {
		t.Errorf("a send without a connection: %v, want %s", got.err, core.CodeUnavailable)
	}
	if why := c.Status().Why; !strings.Contains(why, address) {
		t.Errorf("the status %q does not name the broker", why)
	}
}
