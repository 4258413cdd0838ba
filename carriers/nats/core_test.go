package nats

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func coreConfig(b *broker) Config {
	cfg := testConfig(b)
	cfg.Mode = ModeCore
	return cfg
}

// Another client publishes into a stream on a
// subject that the carrier hears, and gets the stream's PubAck and nothing else.
func TestCoreModeNeverAnswers(t *testing.T) {
	b := newBroker(t)
	nc := b.client()
	js := stream(t, nc)
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "THEIRS", Subjects: []string{"compozy.network.v0.>"}}); err != nil {
		t.Fatal(err)
	}
	in := committing()
	ready(t, coreConfig(b), in)
	answers := hear(t, nc, "answers")
	for i := range 5 {
		if err := nc.PublishRequest(labBroadcast, "answers", fmt.Appendf(nil, "m-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are offered", func() bool { return len(in.seen()) == 5 })
	if _, err := js.Publish(within(t), labBroadcast, []byte("last")); err != nil {
		t.Errorf("another client's publish: %v", err)
	}
	eventually(t, "the last is offered", func() bool { return in.count("last") == 1 })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := answers.Pending(); err != nil || n != 5 {
		t.Errorf("5 messages were answered %d times (%v)", n, err)
	}
}

// Acceptance stalls while messages flood in.
func TestCoreModeCountsWhatIsDropped(t *testing.T) {
	b := newBroker(t)
	in := committing()
	in.closed = make(chan struct{})
	r := ready(t, coreConfig(b), in)
	nc := b.client()
	const sent = coreBacklog + 1000
	for range sent {
		if err := nc.Publish(labBroadcast, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the drops are counted", func() bool { return r.Status().Dropped >= 999 })
	if r.Status().State != core.StateReady {
		t.Errorf("the carrier is %q: %s", r.Status().State, r.Status().Why)
	}
	close(in.closed)
	eventually(t, "what was not dropped is offered", func() bool {
		return uint64(len(in.seen()))+r.Status().Dropped == sent
	})
	dropped := r.Status().Dropped
	r.stop()
	if got := r.Status().Dropped; got != dropped {
		t.Errorf("the count went from %d to %d at the end", dropped, got)
	}
}

func TestCoreModeCountsWhatItStillHeldAtTheEnd(t *testing.T) {
	b := newBroker(t)
	in := &intake{closed: make(chan struct{})}
	r := ready(t, coreConfig(b), in)
	nc := b.client()
	for range 10 {
		if err := nc.Publish(labBroadcast, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an offer stands blocked", func() bool { return !r.Status().LastReceive.IsZero() })
	r.stop()
	if got := r.Status().Dropped; got == 0 || got > 10 {
		t.Errorf("%d frames are counted as dropped", got)
	}
}

func TestCoreModeSendIsFlushed(t *testing.T) {
	b := newBroker(t)
	r := ready(t, coreConfig(b), committing())
	heard := hear(t, b.client(), "compozy.network.v0.é.lab.broadcast")
	out := message("t1", "x")
	out.Envelope.WorkspaceID = "é"
	o := r.send(out)
	if o.err != nil || o.ack.Kind != core.AckNATSFlush {
		t.Fatalf("the outcome is %+v, %v", o.ack, o.err)
	}
	msg, err := heard.NextMsgWithContext(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if string(msg.Data) != "x" || msg.Reply != "" || len(msg.Header) != 0 {
		t.Errorf("published %q with reply %q and %v", msg.Data, msg.Reply, msg.Header)
	}
}

func TestRefusedSubscriptionIsNamed(t *testing.T) {
	b := newBroker(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "ada", Password: "s3cret", Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Deny: []string{"compozy.>"}},
		}}}
	})
	cfg := coreConfig(b)
	cfg.URL = strings.Replace(b.url(), "nats://", "nats://ada:s3cret@", 1)
	r := run(t, cfg, committing())
	eventually(t, "the filter is named", func() bool {
		s := r.Status()
		return s.State == core.StateNotReady && strings.Contains(s.Why, "subscription to compozy.network.v0.> is refused")
	})
	if strings.Contains(r.Status().Why, "s3cret") {
		t.Error("the password is shown")
	}
}

func TestWrongPasswordIsNamedAndNotShown(t *testing.T) {
	b := newBroker(t, func(o *server.Options) { o.Username, o.Password = "ada", "right" })
	cfg := testConfig(b)
	cfg.URL = strings.Replace(b.url(), "nats://", "nats://ada:wr0ng@", 1)
	log := &logs{}
	c, err := New(cfg, testHost(log))
	if err != nil {
		t.Fatal(err)
	}
	r := runCarrier(t, c, committing())
	eventually(t, "the reason is told", func() bool { return strings.Contains(r.Status().Why, "uthorization") })
	r.stop()
	if strings.Contains(log.String()+r.Status().Why, "wr0ng") {
		t.Error("the password is shown")
	}
}

// A server that refuses every
// connection is asked a few times, not all the time.
func TestReconnectsAreNotHurried(t *testing.T) {
	b := newBroker(t, func(o *server.Options) { o.Username, o.Password = "ada", "right" })
	log := &logs{}
	cfg := testConfig(b)
	c, err := New(cfg, testHost(log))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	r := runCarrier(t, c, committing())
	eventually(t, "several connections were refused", func() bool { return time.Since(begin) > time.Second })
	if v, err := b.srv.Varz(nil); err != nil || v.TotalConnections > 10 {
		t.Errorf("%d connections in %v (%v)", v.TotalConnections, time.Since(begin), err)
	}
	r.stop()
	if n := strings.Count(log.String(), "is not ready"); n != 1 {
		t.Errorf("the same reason was logged %d times", n)
	}
}

// TestALongAbsenceIsNeverGivenUp: however long the server was away, the next try
// is a few seconds off, and there were not many.
func TestALongAbsenceIsNeverGivenUp(t *testing.T) {
	for _, away := range []time.Duration{5 * time.Minute, 24 * time.Hour} {
		var wait pauses
		var waited time.Duration
		tries := 0
		for ; waited < away; tries++ {
			pause := jitter(wait.next())
			if pause <= 0 || pause > longestPause {
				t.Fatalf("after %v the next try is %v away", waited, pause)
			}
			waited += pause
		}
		if most := int(away/(longestPause/2)) + 10; tries > most {
			t.Errorf("%d tries in %v, want at most %d", tries, away, most)
		}
		wait.reset()
		if pause := wait.next(); pause != firstPause {
			t.Errorf("after a session that was ready the next try is %v away", pause)
		}
	}
}
