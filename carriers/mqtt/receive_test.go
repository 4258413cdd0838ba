package mqtt

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const broadcast = "compozy/network/v0/ws/lab/broadcast"

func idsOf(acks []ackSeen) []uint16 {
	var ids []uint16
	for _, a := range acks {
		ids = append(ids, a.id)
	}
	return ids
}

func TestPubAcksGoOutInTheOrderOfArrival(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := &recorder{}
	start(t, c, in)
	ready(t, c)
	for i := range 3 {
		b.deliver(broadcast, []byte(fmt.Sprint(i)), 1)
	}
	in.await(t, 3)
	offers := in.all()
	for _, i := range []int{2, 0, 1} {
		if i == 1 {
			never(t, 30*time.Millisecond, "a frame was acknowledged before one that arrived earlier", func() bool {
				return len(b.acks()) > 1
			})
		}
		offers[i].settle(core.Settlement{Verdict: core.VerdictCommitted})
	}
	until(t, "all are acknowledged", func() bool { return len(b.acks()) == 3 })
	if got := idsOf(b.acks()); !slices.Equal(got, []uint16{1, 2, 3}) {
		t.Errorf("the PUBACKs came for the packets %v, want 1 2 3", got)
	}
}

func TestAFrameOfALostConnectionIsAcknowledgedOnTheNext(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := &recorder{}
	start(t, c, in)
	ready(t, c)
	b.deliver(broadcast, []byte("x"), 1)
	first := in.await(t, 1)
	b.cut()
	again := in.await(t, 2)
	if !again.Redelivered || first.Redelivered {
		t.Errorf("redelivered: first %v, again %v, want false and true", first.Redelivered, again.Redelivered)
	}
	// The settlement of the copy that came on the old connection goes nowhere.
	first.settle(core.Settlement{Verdict: core.VerdictCommitted})
	never(t, 50*time.Millisecond, "a settlement of an old connection acknowledged something", func() bool { return len(b.acks()) > 0 })
	again.settle(core.Settlement{Verdict: core.VerdictCommitted, Duplicate: true})
	until(t, "the copy is acknowledged", func() bool { return len(b.acks()) == 1 })
}

func TestEveryVerdictIsAcknowledgedOrComesAgain(t *testing.T) {
	tests := []struct {
		name  string
		s     core.Settlement
		acked bool
	}{
		{"committed", core.Settlement{Verdict: core.VerdictCommitted}, true},
		{"parked", core.Settlement{Verdict: core.VerdictCommitted, Parked: true}, true},
		{"duplicate", core.Settlement{Verdict: core.VerdictCommitted, Duplicate: true}, true},
		{"echo", core.Settlement{Verdict: core.VerdictCommitted, Echo: true}, true},
		{"rejected", core.Settlement{Verdict: core.VerdictRejected}, true},
		{"retry", core.Settlement{Verdict: core.VerdictRetry, RetryAfter: 20 * time.Millisecond}, false},
		{"none", core.Settlement{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newFakeBroker(t)
			c := newCarrier(t, b)
			in := &recorder{}
			start(t, c, in)
			ready(t, c)
			b.deliver(broadcast, []byte("x"), 1)
			in.await(t, 1).settle(tt.s)
			if tt.acked {
				until(t, "the frame is acknowledged", func() bool { return len(b.acks()) == 1 })
				return
			}
			again := in.await(t, 2)
			if n := len(b.acks()); n != 0 || !again.Redelivered {
				t.Errorf("%d acknowledgements before the frame came again, redelivered %v", n, again.Redelivered)
			}
		})
	}
}

func TestAFrameThatCouldNotBeOfferedComesAgain(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := committing()
	in.err = core.ErrStopping
	start(t, c, in)
	ready(t, c)
	b.deliver(broadcast, []byte("x"), 1)
	never(t, 50*time.Millisecond, "a frame that nobody took was acknowledged", func() bool { return len(b.acks()) > 0 })
	in.mu.Lock()
	in.err = nil
	in.mu.Unlock()
	until(t, "it comes again and is acknowledged", func() bool { return len(b.acks()) == 1 })
}

func TestRefusedFiltersAreNamedAndAskedForAgain(t *testing.T) {
	wanted := filters(DefaultConfig().TopicPrefix)
	for _, tt := range []struct {
		name    string
		granted byte
		says    string
	}{
		{"refused", subscriptionFailure, "refuses the subscription"},
		{"QoS 0", 0, "only QoS 0"},
	} {
		for _, filter := range wanted {
			t.Run(tt.name+" "+filter, func(t *testing.T) {
				b := newFakeBroker(t)
				b.set(func() { b.grants[filter] = tt.granted })
				c := newCarrier(t, b)
				start(t, c, committing())
				until(t, "the status names the filter", func() bool {
					s := c.Status()
					return s.State == core.StateNotReady && strings.Contains(s.Why, filter) && strings.Contains(s.Why, tt.says)
				})
				b.set(func() { delete(b.grants, filter) })
				ready(t, c)
			})
		}
	}
}

func TestFramesAreReadWithTheirAddress(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := committing()
	start(t, c, in)
	ready(t, c)
	b.deliver("compozy/network/v0/a%2Fb/lab/ingress", []byte("good"), 1)
	b.deliver("compozy/network/v0/a%2/lab/broadcast", []byte("bad"), 0)
	in.await(t, 2)
	good, bad := in.all()[0], in.all()[1]
	want := core.Address{WorkspaceID: "a/b", Channel: "lab", Class: core.AddressIngress}
	if good.Arrival != core.ArrivalIngress || good.Address == nil || *good.Address != want || good.BadAddress != "" {
		t.Errorf("arrival %s, address %+v, bad %q", good.Arrival, good.Address, good.BadAddress)
	}
	if bad.Address != nil || bad.BadAddress == "" {
		t.Errorf("a topic with a broken escape: address %+v, bad %q", bad.Address, bad.BadAddress)
	}
	until(t, "the QoS 1 frame is acknowledged", func() bool { return len(b.acks()) == 1 })
	never(t, 30*time.Millisecond, "a QoS 0 frame was acknowledged", func() bool { return len(b.acks()) > 1 })
}

// wrongTopics lie below the prefix and are no addresses.
func wrongTopics() []string {
	return []string{
		"compozy/network/v0", "compozy/network/v0/", "compozy/network/v0/ws", "compozy/network/v0/ws/lab", "compozy/network/v0/ws/br/foo",
		"compozy/network/v0/ws/lab/peer", "compozy/network/v0/ws/lab/peer/", "compozy/network/v0/ws/lab/peer/a/b/c",
		"compozy/network/v0/ws/lab/broadcast/", "compozy/network/v0/a/b/lab/broadcast", "compozy/network/v0//lab/broadcast",
		"compozy/network/v0/%64emo/lab/broadcast", "compozy/network/v0/a%2fb/lab/broadcast", "compozy/network/v0/a%2/lab/broadcast",
	}
}

func TestWhatStandsBelowThePrefixIsOfferedOnceAndNeverWithAWrongAddress(t *testing.T) {
	for _, topic := range wrongTopics() {
		t.Run(topic, func(t *testing.T) {
			b := newFakeBroker(t)
			c := newCarrier(t, b)
			in := settling(refusal)
			start(t, c, in)
			ready(t, c)
			b.deliver(topic, []byte("x"), 1)
			if o := in.await(t, 1); o.Address != nil || o.BadAddress == "" || o.Arrival != core.ArrivalNative {
				t.Errorf("offered with the address %+v, bad %q, %s", o.Address, o.BadAddress, o.Arrival)
			}
			until(t, "the frame is acknowledged", func() bool { return len(b.acks()) == 1 })
		})
	}
}

func TestNoTwoFiltersOverlap(t *testing.T) {
	if got := filters("p"); len(got) != 1 || got[0] != "p/#" {
		t.Errorf("the filters are %v: a broker may send once for each filter that matches", got)
	}
}

func TestOfAFrameOverTheEnvelopeLimitTheGatewayGetsTheHead(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := settling(refusal)
	start(t, c, in)
	ready(t, c)
	b.deliver(broadcast, make([]byte, 3<<20), 1)
	if o := in.await(t, 1); o.Size != 3<<20 || len(o.Payload) > 4<<10 {
		t.Errorf("%d bytes were offered with the size %d", len(o.Payload), o.Size)
	}
	until(t, "the frame is acknowledged", func() bool { return len(b.acks()) == 1 })
}

func TestABrokerThatLostItsStateIsSubscribedToAgain(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := committing()
	start(t, c, in)
	ready(t, c)
	b.setDown(true)
	until(t, "the loss is seen", func() bool { return c.Status().State != core.StateReady })
	b.wipe()
	b.setDown(false)
	ready(t, c)
	b.deliver(broadcast, []byte("after"), 1)
	until(t, "it arrives", func() bool { return slices.Equal(in.payloads(), []string{"after"}) })
}

func TestTheLinkOutlivesAGatewayThatIsStuck(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b, func(cfg *Config) { cfg.Keepalive = time.Second })
	in := committing()
	open := in.shut()
	defer open()
	start(t, c, in)
	ready(t, c)
	const frames = 100
	for i := range frames {
		b.deliver(broadcast, []byte(fmt.Sprint(i)), 1)
	}
	never(t, 2500*time.Millisecond, "the link was lost while the gateway was stuck", func() bool {
		return c.Status().State != core.StateReady
	})
	if n := len(b.acks()); n != 0 {
		t.Fatalf("%d frames were acknowledged before they were taken", n)
	}
	open()
	until(t, "everything is acknowledged", func() bool { return len(b.acks()) == frames })
	if n := len(b.connections()); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}

func TestAFullQueuePushesBackAndLosesNothing(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b, func(cfg *Config) { cfg.ReceiveQueue, cfg.Keepalive = 4, time.Second })
	in := committing()
	open := in.shut()
	defer open()
	start(t, c, in)
	ready(t, c)
	const frames = 200
	for i := range frames {
		b.deliver(broadcast, []byte(fmt.Sprint(i)), 1)
	}
	until(t, "the connection is lost for want of reading", func() bool { return len(b.connections()) > 2 })
	open()
	until(t, "everything is acknowledged", func() bool {
		seen := map[string]bool{}
		for _, a := range b.acks() {
			seen[string(a.answer)] = true
		}
		return len(seen) == frames
	})
}

func TestTheCarrierRecoversFromManyCutsAndLeavesNothingRunning(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	in := committing()
	start(t, c, in)
	ready(t, c)
	before := runtime.NumGoroutine()
	const frames = 300
	var outcomes []<-chan outcome
	for i := range frames {
		b.deliver(broadcast, []byte(fmt.Sprint(i)), 1)
		outcomes = append(outcomes, send(c, time.Second, "out"))
		if i%30 == 29 {
			b.cut()
			until(t, "the loss is seen", func() bool { return c.Status().State != core.StateReady })
			ready(t, c)
		}
	}
	for _, o := range outcomes {
		result(t, o)
	}
	until(t, "every frame is taken", func() bool {
		taken := in.payloads()
		slices.Sort(taken)
		return len(slices.Compact(taken)) == frames
	})
	until(t, "the goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= before+4 })
}

func TestABrokerThatAppearsLateIsConnectedTo(t *testing.T) {
	b := newFakeBroker(t)
	b.setDown(true)
	c := newCarrier(t, b, func(cfg *Config) { cfg.ReconnectMax = 100 * time.Millisecond })
	start(t, c, committing())
	until(t, "the status says that the link is down", func() bool { return c.Status().State == core.StateNotReady })
	never(t, time.Second, "the carrier says that it is ready", func() bool { return c.Status().State == core.StateReady })
	b.setDown(false)
	// Many times the longest pause, for a busy machine.
	within(t, 5*time.Second, "the carrier is ready", func() bool { return c.Status().State == core.StateReady })
}

func TestTwinsSlowEachOtherDown(t *testing.T) {
	b := newFakeBroker(t)
	var log logBuffer
	host := testHost("mqtt")
	host.Logger = log.logger()
	for range 2 {
		cfg := testConfig(b.url())
		cfg.ReconnectMax = time.Second
		c, err := New(cfg, host)
		if err != nil {
			t.Fatal(err)
		}
		start(t, c, committing())
	}
	begin := time.Now()
	until(t, "the twins have pushed each other out", func() bool { return len(b.connections()) > 8 })
	seen := len(b.connections())
	never(t, 2*time.Second, "the twins reconnect without end", func() bool { return len(b.connections()) > seen+16 })
	if !strings.Contains(log.String(), "another client may be using the client id") {
		t.Errorf("the log of %s does not say what is wrong", time.Since(begin))
	}
}

func TestTheTwoConnectionsHaveTheirOwnClientIDs(t *testing.T) {
	b := newFakeBroker(t)
	c := newCarrier(t, b)
	start(t, c, committing())
	ready(t, c)
	clean := map[string]bool{}
	for _, seen := range b.connections() {
		clean[seen.clientID] = seen.clean
	}
	want := map[string]bool{"gateway-0123456789abcdef-mqtt-in": false, "gateway-0123456789abcdef-mqtt-out": true}
	if fmt.Sprint(clean) != fmt.Sprint(want) {
		t.Errorf("client id and clean session are %v, want %v", clean, want)
	}
}

func TestASilentPeerIsNotWaitedForLongerThanTheTimeout(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	cfg := testConfig("tcp://" + socket.Addr().String())
	cfg.ConnectTimeout = 100 * time.Millisecond
	c, err := New(cfg, testHost("mqtt"))
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, committing())
	until(t, "the status says that nobody answers", func() bool {
		return strings.Contains(c.Status().Why, "the broker does not answer")
	})
}

func TestErrorsAreDescribedForPeople(t *testing.T) {
	if got := describe(errors.New("something else")); got != "something else" {
		t.Errorf("describe = %q", got)
	}
	if bytes.Contains([]byte(describe(nil)), []byte("nil")) {
		t.Errorf("describe(nil) = %q", describe(nil))
	}
}
