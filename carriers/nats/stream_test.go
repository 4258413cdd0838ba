package nats

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats.go/jetstream"
)

func TestStreamAndConsumerAreCreated(t *testing.T) {
	b := newBroker(t)
	r := ready(t, testConfig(b), committing())
	js := stream(t, b.client())
	s, err := js.Stream(within(t), "COMPOZY_NETWORK_V0")
	if err != nil {
		t.Fatal(err)
	}
	got := s.CachedInfo().Config
	if len(got.Subjects) != 1 || got.Subjects[0] != "compozy.network.v0.>" || got.MaxAge != 72*time.Hour || got.Storage != jetstream.FileStorage {
		t.Errorf("the stream is %+v", got)
	}
	c, err := s.Consumer(within(t), r.consumer)
	if err != nil {
		t.Fatal(err)
	}
	if conf := c.CachedInfo().Config; conf.DeliverPolicy != jetstream.DeliverAllPolicy || conf.MaxDeliver != -1 ||
		!strings.Contains(conf.Durable, "0123456789abcdef") {
		t.Errorf("the consumer is %+v", conf)
	}
}

func TestShortStreamAgeBoundsTheDedupWindow(t *testing.T) {
	b := newBroker(t)
	cfg := testConfig(b)
	cfg.StreamMaxAge = time.Minute
	ready(t, cfg, committing())
	s, err := stream(t, b.client()).Stream(within(t), cfg.Stream)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config; got.MaxAge != time.Minute || got.Duplicates != time.Minute {
		t.Errorf("the stream is %+v", got)
	}
}

func TestConsumerNamesDiffer(t *testing.T) {
	names := map[string]bool{}
	for _, host := range []core.Host{
		{Name: "a", InstanceID: "one"},
		{Name: "b", InstanceID: "one"},
		{Name: "a", InstanceID: "two"},
		{Name: "a", InstanceID: "o.n e"},
		{Name: "a.*", InstanceID: "one"},
		{Name: "a_*", InstanceID: "one"},
	} {
		name := consumerName(host)
		if !legalName(name) || names[name] {
			t.Errorf("%+v has the consumer name %q", host, name)
		}
		if name != consumerName(host) {
			t.Errorf("the name of %+v is not constant", host)
		}
		names[name] = true
	}
}

func TestExistingStreamIsTakenAsItIs(t *testing.T) {
	for name, subjects := range map[string][]string{
		"wider": {"compozy.>"},
		"finer": {"compozy.network.v0.*.*.broadcast", "compozy.network.v0.*.*.peer.*", "compozy.network.v0.*.*.ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t)
			js := stream(t, b.client())
			_, err := js.CreateStream(within(t), jetstream.StreamConfig{
				Name: "COMPOZY_NETWORK_V0", Subjects: subjects, MaxAge: time.Hour, Retention: jetstream.WorkQueuePolicy,
			})
			if err != nil {
				t.Fatal(err)
			}
			in := committing()
			r := ready(t, testConfig(b), in)
			if o := r.send(message("t1", "x")); o.err != nil {
				t.Fatal(o.err)
			}
			eventually(t, "the message comes back", func() bool { return in.count("x") >= 1 })
			s, err := js.Stream(within(t), "COMPOZY_NETWORK_V0")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.CachedInfo().Config; got.MaxAge != time.Hour || got.Retention != jetstream.WorkQueuePolicy {
				t.Errorf("the stream was changed to %+v", got)
			}
		})
	}
}

// The reason names both, and the carrier
// comes up once the other stream is gone.
func TestOverlappingStreamIsNamed(t *testing.T) {
	b := newBroker(t)
	js := stream(t, b.client())
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "FOREIGN", Subjects: []string{"compozy.network.v0.acme.>"}}); err != nil {
		t.Fatal(err)
	}
	r := run(t, testConfig(b), committing())
	eventually(t, "the reason names both streams", func() bool {
		s := r.Status()
		return s.State == core.StateNotReady && strings.Contains(s.Why, "COMPOZY_NETWORK_V0") &&
			strings.Contains(s.Why, "FOREIGN") && strings.Contains(s.Why, "compozy.network.v0.acme.>")
	})
	if err := js.DeleteStream(within(t), "FOREIGN"); err != nil {
		t.Fatal(err)
	}
	r.awaitReady()
}

func TestStreamThatDoesNotCoverIsNamed(t *testing.T) {
	b := newBroker(t)
	js := stream(t, b.client())
	config := jetstream.StreamConfig{Name: "COMPOZY_NETWORK_V0", Subjects: []string{"compozy.network.v0.*.*.broadcast"}}
	if _, err := js.CreateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
	r := run(t, testConfig(b), committing())
	eventually(t, "the reason names what is missing", func() bool {
		return strings.Contains(r.Status().Why, "do not take in compozy.network.v0.*.*.ingress")
	})
	config.Subjects = []string{"compozy.network.v0.>"}
	if _, err := js.UpdateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
	r.awaitReady()
}

func TestStreamDeletedWhileConnectedIsCreatedAgain(t *testing.T) {
	b := newBroker(t)
	in := committing()
	r := ready(t, testConfig(b), in)
	js := stream(t, b.client())
	if err := js.DeleteStream(within(t), "COMPOZY_NETWORK_V0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is there again", func() bool {
		_, err := js.Stream(within(t), "COMPOZY_NETWORK_V0")
		return err == nil
	})
	r.awaitReady()
	eventually(t, "a message passes", func() bool { return r.send(message("t1", "x")).err == nil })
	eventually(t, "the message comes back", func() bool { return in.count("x") >= 1 })
}

func TestConsumerDeletedWhileConnectedIsCreatedAgain(t *testing.T) {
	b := newBroker(t)
	in := committing()
	r := ready(t, testConfig(b), in)
	js := stream(t, b.client())
	if err := js.DeleteConsumer(within(t), "COMPOZY_NETWORK_V0", r.consumer); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(within(t), "compozy.network.v0.ws.lab.broadcast", []byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message is offered", func() bool { return in.count("x") == 1 })
}

// TestBrokerComesBackEmpty is the restart with a wiped store: stream and consumer
// are created again, and messages pass both ways within seconds.
func TestBrokerComesBackEmpty(t *testing.T) {
	b := newBroker(t)
	in := committing()
	r := ready(t, testConfig(b), in)
	if o := r.send(message("t1", "before")); o.err != nil {
		t.Fatal(o.err)
	}
	b.stop()
	eventually(t, "the carrier notices", func() bool { return r.Status().State == core.StateNotReady })
	b.wipe()
	b.start()
	r.awaitReady()
	if o := r.send(message("t2", "after")); o.err != nil {
		t.Fatal(o.err)
	}
	eventually(t, "the message comes back", func() bool { return in.count("after") >= 1 })
}

func TestBrokerAbsentAtTheStartIsWaitedFor(t *testing.T) {
	b := newBroker(t)
	b.stop()
	r := run(t, testConfig(b), committing())
	eventually(t, "the carrier says what it waits for", func() bool {
		s := r.Status()
		return s.State == core.StateNotReady && strings.Contains(s.Why, b.url())
	})
	if o := r.send(message("t1", "x")); sendCode(t, o.err) != core.CodeUnavailable {
		t.Errorf("a send without a connection: %v", o.err)
	}
	b.start()
	r.awaitReady()
}

func TestServerWithoutJetStreamIsNamed(t *testing.T) {
	b := newBroker(t, noJetStream)
	r := run(t, testConfig(b), committing())
	eventually(t, "the carrier says that JetStream is missing", func() bool {
		return strings.Contains(r.Status().Why, "has no JetStream")
	})
	b.stop()
	b.tune = nil
	b.start()
	r.awaitReady()
}
