package nats

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestJetStreamConformance(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture { return newFarSide(t, ModeJetStream).fixture() })
}

func TestCoreConformance(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture { return newFarSide(t, ModeCore).fixture() })
}

const (
	conformanceUser   = "ada"
	conformanceSecret = "correct-horse-battery"
	maxEnvelope       = 1 << 20
	// foreignHeader marks what the far side published.
	foreignHeader = "Far-Side"
)

// farSide is a broker with a foreign client behind the carrier under test.
type farSide struct {
	t        *testing.T
	broker   *broker
	client   *natsgo.Conn
	js       jetstream.JetStream
	subjects subjects
	carrier  *Carrier
	logs     *logs
	acks     *ackWatcher

	mu       sync.Mutex
	keys     map[uint64]string
	received []carriertest.Received
}

func newFarSide(t *testing.T, mode Mode) *farSide {
	f := &farSide{t: t, logs: &logs{}, keys: map[uint64]string{}}
	f.broker = newBroker(t, func(o *server.Options) { o.Username, o.Password = conformanceUser, conformanceSecret })
	f.client = f.broker.client(natsgo.UserInfo(conformanceUser, conformanceSecret), natsgo.ReconnectBufSize(-1))
	f.js = stream(t, f.client)

	cfg := DefaultConfig()
	cfg.URL, cfg.Mode, cfg.AckWait = f.broker.url(), mode, minAckWait
	cfg.MaxPayload = maxEnvelope
	cfg.Username, cfg.PasswordFile = conformanceUser, filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(cfg.PasswordFile, []byte(conformanceSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	carrier, err := New(cfg, core.Host{
		Name: "nats", InstanceID: "0123456789abcdef", MaxEnvelopeBytes: maxEnvelope, Logger: f.logs.logger(), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.carrier, f.subjects = carrier, carrier.subjects
	f.listen()
	if mode == ModeJetStream {
		f.acks = watchAcks(t, f.client)
	}
	return f
}

func (f *farSide) fixture() carriertest.Fixture {
	fixture := carriertest.Fixture{
		Carrier:          f.carrier,
		Arrivals:         []core.Arrival{core.ArrivalNative, core.ArrivalIngress},
		Inject:           f.inject,
		Addressed:        true,
		MaxEnvelopeBytes: maxEnvelope,
		Recipients:       []core.Recipient{{Carrier: "nats"}},
		Received:         f.receivedList,
		Cut:              f.broker.stop,
		Restore:          f.restore,
		Secrets:          []string{conformanceSecret},
		Logs:             f.logs.String,
		Close:            f.close,
	}
	if f.acks != nil {
		fixture.Outcomes, fixture.SeesRefusals = f.outcomes, true
		fixture.RedeliversWithin = 2 * minAckWait
		fixture.Refuse = func(_ core.Recipient, on bool) { f.refuse(on) }
		fixture.Withhold = func(_ core.Recipient, on bool) { f.withhold(on) }
	}
	return fixture
}

// listen hears what the carrier publishes, and not what the far side itself does.
func (f *farSide) listen() {
	f.t.Helper()
	_, err := f.client.Subscribe(f.subjects.all(), func(msg *natsgo.Msg) {
		if msg.Header.Get(foreignHeader) != "" {
			return
		}
		address, _, _ := f.subjects.parse(msg.Subject)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.received = append(f.received, carriertest.Received{
			Recipient: core.Recipient{Carrier: "nats"},
			Address:   address,
			Token:     msg.Header.Get(jetstream.MsgIDHeader),
			Payload:   msg.Data,
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *farSide) inject(ctx context.Context, frame carriertest.Frame) error {
	a := frame.Address
	subject := f.subjects.prefix + "." + a.WorkspaceID + "." + a.Channel + "." + string(a.Class)
	if a.Class == core.AddressPeer {
		subject += "." + a.Token
	}
	msg := &natsgo.Msg{Subject: subject, Data: frame.Payload, Header: natsgo.Header{foreignHeader: []string{"yes"}}}
	if f.acks == nil {
		return f.client.PublishMsg(msg)
	}
	ack, err := f.js.PublishMsg(ctx, msg)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys[ack.Sequence] = frame.Key
	return nil
}

func (f *farSide) outcomes() []carriertest.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []carriertest.Outcome
	for _, a := range f.acks.seen() {
		result := map[string]carriertest.Result{
			"+ACK": carriertest.Acked, "+TERM": carriertest.Refused, "-NAK": carriertest.Later,
		}[a.word]
		if key := f.keys[a.sequence]; key != "" && result != "" {
			list = append(list, carriertest.Outcome{Key: key, Result: result})
		}
	}
	return list
}

func (f *farSide) receivedList() []carriertest.Received {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.received)
}

// withhold makes the stream store without a PubAck.
func (f *farSide) withhold(on bool) { f.change(func(c *jetstream.StreamConfig) { c.NoAck = on }) }

// refuse makes the stream refuse what the carrier publishes, by a bound on the
// size.
func (f *farSide) refuse(on bool) {
	f.change(func(c *jetstream.StreamConfig) {
		c.MaxMsgSize = -1
		if on {
			c.MaxMsgSize = 1
		}
	})
}

func (f *farSide) change(change func(*jetstream.StreamConfig)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := f.js.Stream(ctx, f.carrier.cfg.Stream)
	if err != nil {
		f.t.Errorf("find the stream: %v", err)
		return
	}
	config := s.CachedInfo().Config
	change(&config)
	if _, err := f.js.UpdateStream(ctx, config); err != nil {
		f.t.Errorf("change the stream: %v", err)
	}
}

// restore starts the broker and waits until the far side is back, for what it
// does not hear in between it would take for not sent.
func (f *farSide) restore() {
	f.broker.start()
	eventually(f.t, "the far side is connected again", func() bool { return f.client.IsConnected() && f.client.Flush() == nil })
}

func (f *farSide) close() {
	f.client.Close()
	f.broker.stop()
}
