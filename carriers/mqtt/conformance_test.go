package mqtt

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/mochi-mqtt/server/v2/packets"
)

func TestConformance(t *testing.T) {
	t.Run("on a broker", func(t *testing.T) {
		carriertest.Run(t, foreignFixture)
	})
	t.Run("on the embedded broker", func(t *testing.T) {
		carriertest.Run(t, embeddedFixture)
	})
}

const secretPassword = "hunter2-hunter2"

// logBuffer keeps the log of a carrier.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// foreignFixture is the carrier on a broker that a test scripts.
func foreignFixture(t *testing.T) carriertest.Fixture {
	t.Helper()
	b := startFakeBroker(t)
	var log logBuffer
	cfg := testConfig(strings.Replace(b.url(), "tcp://", "tcp://ada:"+secretPassword+"@", 1))
	cfg.MaxPayload = 2 << 20
	host := testHost("mqtt")
	host.Logger = log.logger()
	c, err := New(cfg, host)
	if err != nil {
		t.Fatal(err)
	}
	prefix := cfg.TopicPrefix
	return carriertest.Fixture{
		Carrier:  c,
		Arrivals: []core.Arrival{core.ArrivalNative, core.ArrivalIngress},
		Inject: func(_ context.Context, f carriertest.Frame) error {
			b.deliver(addressTopic(prefix, f.Address), f.Payload, 1)
			return nil
		},
		Outcomes: func() []carriertest.Outcome {
			var list []carriertest.Outcome
			for _, a := range b.acks() {
				list = append(list, carriertest.Outcome{Key: keyOf(a.answer), Result: carriertest.Acked})
			}
			return list
		},
		Addressed:        true,
		MaxEnvelopeBytes: host.MaxEnvelopeBytes,
		Recipients:       []core.Recipient{{Carrier: "mqtt"}},
		Received: func() []carriertest.Received {
			var list []carriertest.Received
			for _, p := range b.publishes() {
				list = append(list, receivedFrom(prefix, p.packet))
			}
			return list
		},
		Withhold:              func(_ core.Recipient, on bool) { b.set(func() { b.withhold = on }) },
		Stall:                 func(on bool) { b.hear(!on) },
		Cut:                   func() { b.setDown(true) },
		Restore:               func() { b.setDown(false) },
		RedeliversOnReconnect: true,
		Secrets:               []string{secretPassword},
		Logs:                  log.String,
		Close:                 b.close,
		Patience:              patience,
	}
}

// addressTopic spells an address as a foreign peer does.
func addressTopic(prefix string, a core.Address) string {
	workspace := strings.NewReplacer("%", "%25", "/", "%2F", "+", "%2B", "#", "%23", "$", "%24").Replace(a.WorkspaceID)
	topic := prefix + "/" + workspace + "/" + a.Channel + "/" + string(a.Class)
	if a.Token != "" {
		topic += "/" + a.Token
	}
	return topic
}

func receivedFrom(prefix string, pk packets.Packet) carriertest.Received {
	got := carriertest.Received{Recipient: core.Recipient{Carrier: "mqtt"}, Payload: pk.Payload}
	if at, ok := locate(prefix, pk.TopicName); ok {
		got.Address = at.address
	}
	return got
}

// keyOf finds the id in the payload of one of the suite's frames.
func keyOf(payload []byte) string {
	_, rest, ok := bytes.Cut(payload, []byte(`"id":"`))
	if !ok {
		return ""
	}
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

// embeddedFixture is the carrier on the embedded broker, with one device that
// publishes and one that subscribes.
func embeddedFixture(t *testing.T) carriertest.Fixture {
	t.Helper()
	cfg := DefaultBrokerConfig()
	cfg.Listen = "127.0.0.1:0"
	var log logBuffer
	b, err := NewBroker(cfg, log.logger())
	if err != nil {
		t.Fatal(err)
	}
	host := testHost("mqtt")
	host.Logger = log.logger()
	carrierConfig := testConfig("")
	c, err := New(carrierConfig, host, WithBroker(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Serve(); err != nil {
		t.Fatal(err)
	}
	prefix := carrierConfig.TopicPrefix
	device := dialDevice(t, b, "device")
	listening := dialDevice(t, b, "listener")
	listening.subscribe(t, filters(prefix)...)
	return carriertest.Fixture{
		Carrier:  c,
		Arrivals: []core.Arrival{core.ArrivalNative, core.ArrivalIngress},
		Inject: func(_ context.Context, f carriertest.Frame) error {
			device.publish(addressTopic(prefix, f.Address), f.Payload, 1)
			return nil
		},
		Outcomes: func() []carriertest.Outcome {
			var list []carriertest.Outcome
			for _, payload := range device.acknowledged() {
				list = append(list, carriertest.Outcome{Key: keyOf(payload), Result: carriertest.Acked})
			}
			return list
		},
		Addressed:        true,
		MaxEnvelopeBytes: host.MaxEnvelopeBytes,
		Recipients:       []core.Recipient{{Carrier: "mqtt"}},
		Received: func() []carriertest.Received {
			var list []carriertest.Received
			for _, p := range listening.received() {
				list = append(list, receivedFrom(prefix, p))
			}
			return list
		},
		Secrets: []string{b.secret},
		Logs:    log.String,
		Close: func() {
			device.close()
			listening.close()
			if err := b.Close(); err != nil {
				t.Errorf("close the broker: %v", err)
			}
		},
		Patience: patience,
	}
}

// settledOf lists what a device was told, for tests that look for one payload.
func settledOf(d *testDevice, payload string) bool {
	return slices.ContainsFunc(d.acknowledged(), func(p []byte) bool { return string(p) == payload })
}
