package nats

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const patience = 30 * time.Second

// broker is a real server in this process that can be stopped, started again on
// its port, and robbed of its state.
type broker struct {
	t    testing.TB
	port int
	dir  string
	// tune changes the options of the next start.
	tune func(*server.Options)

	mu  sync.Mutex
	srv *server.Server
}

func newBroker(t testing.TB, tune ...func(*server.Options)) *broker {
	t.Helper()
	b := &broker{t: t, port: server.RANDOM_PORT, dir: t.TempDir()}
	if len(tune) > 0 {
		b.tune = tune[0]
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	options := &server.Options{
		Host: "127.0.0.1", Port: b.port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: b.dir, MaxPayload: 2 << 20,
	}
	if b.tune != nil {
		b.tune(options)
	}
	srv, err := server.NewServer(options)
	if err != nil {
		b.t.Fatalf("configure the broker: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		srv.Shutdown()
		b.t.Fatal("the broker does not listen")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.srv = srv
	if tcp, ok := srv.Addr().(*net.TCPAddr); ok {
		b.port = tcp.Port
	}
}

func (b *broker) stop() {
	b.mu.Lock()
	srv := b.srv
	b.srv = nil
	b.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// wipe removes everything that the stopped broker has stored.
func (b *broker) wipe() {
	b.t.Helper()
	if err := os.RemoveAll(b.dir); err != nil {
		b.t.Fatalf("wipe the broker: %v", err)
	}
}

func (b *broker) url() string { return "nats://127.0.0.1:" + strconv.Itoa(b.port) }

// client connects a foreign client.
func (b *broker) client(options ...natsgo.Option) *natsgo.Conn {
	b.t.Helper()
	options = append(options, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(20*time.Millisecond))
	nc, err := natsgo.Connect(b.url(), options...)
	if err != nil {
		b.t.Fatalf("connect a foreign client: %v", err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*natsgo.Conn) { close(closed) })
	b.t.Cleanup(func() { nc.Close(); <-closed })
	return nc
}

func stream(t testing.TB, nc *natsgo.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatalf("use JetStream: %v", err)
	}
	return js
}

// hear subscribes, and returns once the server knows of it.
func hear(t testing.TB, nc *natsgo.Conn, subject string) *natsgo.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatalf("subscribe to %s: %v", subject, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatalf("subscribe to %s: %v", subject, err)
	}
	return sub
}

// within is a context for one call of a test.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// logs is a log that tests can search.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// ackWatcher sees what consumers tell the server.
type ackWatcher struct {
	mu   sync.Mutex
	acks []ackSeen
}

type ackSeen struct {
	sequence uint64
	word     string
}

// watchAcks subscribes beside the server to the subjects of acknowledgements.
func watchAcks(t testing.TB, nc *natsgo.Conn) *ackWatcher {
	t.Helper()
	w := &ackWatcher{}
	_, err := nc.Subscribe("$JS.ACK.>", func(msg *natsgo.Msg) {
		tokens := strings.Split(msg.Subject, ".")
		at := 5
		if len(tokens) > 9 {
			at = 7
		}
		sequence, err := strconv.ParseUint(tokens[at], 10, 64)
		if err != nil {
			t.Errorf("the acknowledgement %s has no stream sequence", msg.Subject)
			return
		}
		word, _, _ := strings.Cut(string(msg.Data), " ")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acks = append(w.acks, ackSeen{sequence, word})
	})
	if err != nil {
		t.Fatalf("watch acknowledgements: %v", err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatalf("watch acknowledgements: %v", err)
	}
	return w
}

func (w *ackWatcher) seen() []ackSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ackSeen(nil), w.acks...)
}

// count is how often the word was said.
func (w *ackWatcher) count(word string) int {
	n := 0
	for _, a := range w.seen() {
		if a.word == word {
			n++
		}
	}
	return n
}
