package nats

import (
	"fmt"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats.go/jetstream"
)

const labBroadcast = "compozy.network.v0.ws.lab.broadcast"

// publish stores n messages with the payloads prefix-0 to prefix-(n-1).
func publish(t testing.TB, js jetstream.JetStream, prefix string, n int) {
	t.Helper()
	for i := range n {
		if _, err := js.PublishAsync(labBroadcast, fmt.Appendf(nil, "%s-%d", prefix, i)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("the messages were not stored")
	}
}

func TestWhatStoodInTheStreamBeforeIsOffered(t *testing.T) {
	b := newBroker(t)
	js := stream(t, b.client())
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "COMPOZY_NETWORK_V0", Subjects: []string{"compozy.network.v0.>"}}); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "old", 3)
	in := committing()
	ready(t, testConfig(b), in)
	eventually(t, "the old messages are offered", func() bool { return len(in.seen()) == 3 })
	if in.seen()[0].Redelivered {
		t.Error("the first delivery is marked as redelivered")
	}
}

func TestSubjectThatIsNoAddressIsToldToTheGateway(t *testing.T) {
	b := newBroker(t)
	in := committing()
	ready(t, testConfig(b), in)
	js := stream(t, b.client())
	if _, err := js.Publish(within(t), "compozy.network.v0.ws.lab.shout", []byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the frame is offered", func() bool { return len(in.seen()) == 1 })
	if got := in.seen()[0]; got.Address != nil || got.BadAddress == "" {
		t.Errorf("the frame is offered as %+v", got.Inbound)
	}
}

// A commit may take several times ack_wait.
func TestSlowCommitIsNotRedelivered(t *testing.T) {
	b := newBroker(t)
	in := committing()
	in.delay = 3 * minAckWait
	r := ready(t, testConfig(b), in)
	nc := b.client()
	acks := watchAcks(t, nc)
	publish(t, stream(t, nc), "slow", 5)
	eventually(t, "all are acknowledged", func() bool { return acks.count("+ACK") == 5 })
	if n := len(in.seen()); n != 5 {
		t.Errorf("5 messages were offered %d times", n)
	}
	if acks.count("+WPI") == 0 {
		t.Error("the server was never asked for patience")
	}
	r.stop()
	in.work.Wait()
}

// TestStalledGatewayIsNotFloodedWithCopies blocks the intake for longer than
// ack_wait: what waits in the carrier's queue is not sent again either.
func TestStalledGatewayIsNotFloodedWithCopies(t *testing.T) {
	b := newBroker(t)
	in := committing()
	in.closed = make(chan struct{})
	ready(t, testConfig(b), in)
	nc := b.client()
	acks := watchAcks(t, nc)
	publish(t, stream(t, nc), "m", 200)
	eventually(t, "the server was asked for patience several times", func() bool { return acks.count("+WPI") > 3*199 })
	close(in.closed)
	eventually(t, "all are acknowledged", func() bool { return acks.count("+ACK") == 200 })
	if n := len(in.seen()); n != 200 {
		t.Errorf("200 messages were offered %d times", n)
	}
}

// Stop comes straight after the
// commit, and the acknowledgement still reaches the server.
func TestCommitRightBeforeTheEndIsAcknowledged(t *testing.T) {
	b := newBroker(t)
	nc := b.client()
	js := stream(t, nc)
	for round := range 5 {
		in := &intake{}
		r := ready(t, testConfig(b), in)
		publish(t, js, fmt.Sprintf("round-%d", round), 20)
		eventually(t, "all are offered", func() bool { return len(in.seen()) == 20 })
		r.cancel()
		for _, o := range in.seen() {
			o.settle(core.Settlement{Verdict: core.VerdictCommitted})
		}
		r.stop()
		// The server has the acknowledgements by now, and works them off by itself.
		eventually(t, "nothing is unacknowledged or undelivered", func() bool {
			c, err := js.Consumer(within(t), "COMPOZY_NETWORK_V0", r.consumer)
			if err != nil {
				t.Fatal(err)
			}
			got := c.CachedInfo()
			return got.NumAckPending == 0 && got.NumPending == 0
		})
	}
}

// TestWhatWasNotOfferedGoesBackAtOnce: a carrier that stops leaves nothing to wait
// for ack_wait that the gateway never saw.
func TestWhatWasNotOfferedGoesBackAtOnce(t *testing.T) {
	b := newBroker(t)
	cfg := testConfig(b)
	cfg.AckWait = time.Hour
	stalled := &intake{closed: make(chan struct{})}
	first := ready(t, cfg, stalled)
	publish(t, stream(t, b.client()), "m", 100)
	eventually(t, "messages wait in the carrier", func() bool { return pendingAcks(t, b, first.consumer) == 100 })
	first.stop()
	in := committing()
	ready(t, cfg, in)
	eventually(t, "all are offered", func() bool { return len(in.seen()) == 100 })
}

func pendingAcks(t testing.TB, b *broker, consumer string) int {
	t.Helper()
	return consumerInfo(t, b, consumer).NumAckPending
}

func consumerInfo(t testing.TB, b *broker, consumer string) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := stream(t, b.client()).Consumer(within(t), "COMPOZY_NETWORK_V0", consumer)
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo()
}

// More rejected messages than may be
// unacknowledged, then a good one.
func TestManyRejectionsDoNotStopTheConsumer(t *testing.T) {
	b := newBroker(t)
	const bad = 2000
	cfg := testConfig(b)
	cfg.MaxAckPending = 100
	in := &intake{verdict: func(n int, _ core.Inbound) core.Settlement {
		if n < bad {
			return core.Settlement{Verdict: core.VerdictRejected, Rejection: &core.Rejection{Reason: core.ReasonMalformed}}
		}
		return core.Settlement{Verdict: core.VerdictCommitted}
	}}
	ready(t, cfg, in)
	nc := b.client()
	acks := watchAcks(t, nc)
	js := stream(t, nc)
	publish(t, js, "{bad", bad)
	publish(t, js, "good", 1)
	eventually(t, "the good one is acknowledged", func() bool { return acks.count("+ACK") == 1 })
	if n := acks.count("+TERM"); n != bad {
		t.Errorf("%d of %d rejected messages were ended", n, bad)
	}
	if in.count("good-0") != 1 {
		t.Error("the good message was not offered once")
	}
}

// Each tenth message asks for two
// retries. Order may suffer, nothing else.
func TestRetriedMessagesAreNotLost(t *testing.T) {
	b := newBroker(t)
	tries := map[string]int{}
	in := &intake{verdict: func(_ int, frame core.Inbound) core.Settlement {
		tries[string(frame.Payload)]++
		if n := tries[string(frame.Payload)]; n <= 2 && frame.Payload[len(frame.Payload)-1] == '0' {
			return core.Settlement{Verdict: core.VerdictRetry, RetryAfter: 20 * time.Millisecond}
		}
		return core.Settlement{Verdict: core.VerdictCommitted}
	}}
	ready(t, testConfig(b), in)
	nc := b.client()
	acks := watchAcks(t, nc)
	publish(t, stream(t, nc), "m", 100)
	eventually(t, "all are acknowledged", func() bool { return acks.count("+ACK") == 100 })
	for i := range 100 {
		payload, want := fmt.Sprintf("m-%d", i), 1
		if i%10 == 0 {
			want = 3
		}
		if n := in.count(payload); n != want {
			t.Errorf("%s was offered %d times, want %d", payload, n, want)
		}
	}
}

// TestSettlementOfAnEndedSessionIsNotSaid: the server lost its state, and another
// message bears the number of the one that is settled late.
func TestSettlementOfAnEndedSessionIsNotSaid(t *testing.T) {
	b := newBroker(t)
	in := &intake{}
	r := ready(t, testConfig(b), in)
	nc := b.client()
	js := stream(t, nc)
	publish(t, js, "before", 1)
	eventually(t, "the message is offered", func() bool { return in.count("before-0") == 1 })
	b.stop()
	b.wipe()
	eventually(t, "the carrier notices", func() bool { return r.Status().State == core.StateNotReady })
	b.start()
	r.awaitReady()
	acks := watchAcks(t, b.client())
	publish(t, stream(t, b.client()), "after", 1)
	eventually(t, "the new message is offered", func() bool { return in.count("after-0") == 1 })
	in.seen()[0].settle(core.Settlement{Verdict: core.VerdictCommitted})
	eventually(t, "the new message is still open", func() bool { return acks.count("+WPI") >= 2 })
	if n := acks.count("+ACK"); n != 0 {
		t.Fatal("the settlement of the old message acknowledged the new one")
	}
}

// The carrier hides no echo, for the
// gateway knows one when it sees it.
func TestOwnPublishesComeBackAsNative(t *testing.T) {
	b := newBroker(t)
	in := committing()
	r := ready(t, testConfig(b), in)
	if o := r.send(message("t1", "mine")); o.err != nil {
		t.Fatal(o.err)
	}
	eventually(t, "it is offered", func() bool { return in.count("mine") == 1 })
	if got := in.seen()[0]; got.Arrival != core.ArrivalNative {
		t.Errorf("it is offered as %v", got.Arrival)
	}
}

// Whatever a client writes into the header,
// each message that the stream takes is offered.
func TestForeignMessageIDsHaveNoSay(t *testing.T) {
	b := newBroker(t)
	in := committing()
	r := ready(t, testConfig(b), in)
	js := stream(t, b.client())
	if _, err := js.Publish(within(t), labBroadcast, []byte("theirs"), jetstream.WithMsgID("envelope-1")); err != nil {
		t.Fatal(err)
	}
	out := message("5f0c8ae2d3b14f6f9a0d6c1e2b3a4958", "ours")
	out.Envelope.ID = "envelope-1"
	if o := r.send(out); o.err != nil {
		t.Fatal(o.err)
	}
	eventually(t, "both are offered", func() bool { return in.count("theirs") == 1 && in.count("ours") == 1 })
}
