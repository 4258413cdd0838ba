package gateway

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a gateway over a real store with two buses in memory, a and b.
type house struct {
	t      *testing.T
	dir    string
	config Config
	a, b   *carriertest.Memory
	// offset is what the clock is fast by; frozen is where it stands still, in
	// nanoseconds, and 0 while it goes.
	offset, frozen atomic.Int64
	*Gateway
	stop func()
	// patience is how long the store waits for a foreign lock; zero is its default.
	patience time.Duration
	count    atomic.Int64
}

func newHouse(t *testing.T, change ...func(*Config)) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), config: DefaultConfig()}
	for _, c := range change {
		c(&h.config)
	}
	h.a = carriertest.NewMemory("a", carriertest.MemoryConfig{})
	h.b = carriertest.NewMemory("b", carriertest.MemoryConfig{})
	t.Cleanup(func() {
		if h.stop != nil {
			h.stop()
		}
	})
	return h
}

func (h *house) now() time.Time {
	now := time.Now()
	if at := h.frozen.Load(); at != 0 {
		now = time.Unix(0, at)
	}
	return now.Add(time.Duration(h.offset.Load()))
}

// freeze stops the clock, so that what a test does in between takes no time.
func (h *house) freeze() { h.frozen.Store(time.Now().UnixNano()) }

func (h *house) thaw() { h.frozen.Store(0) }

// start opens the store and runs the gateway; stop waits for its end.
func (h *house) start(more ...func(*Gateway)) {
	h.t.Helper()
	s, err := store.Open(h.t.Context(), store.Options{Dir: h.dir, Now: h.now, BusyTimeout: h.patience})
	if err != nil {
		h.t.Fatal(err)
	}
	g, err := New(Options{Config: h.config, Store: s, Logger: slog.New(slog.DiscardHandler), Now: h.now})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		m    *carriertest.Memory
	}{{"a", h.a}, {"b", h.b}} {
		if err := g.AddCarrier(c.name, "memory", c.m); err != nil {
			h.t.Fatal(err)
		}
	}
	for _, add := range more {
		add(g)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	h.Gateway = g
	h.eventually("the carriers run", func() bool {
		return h.a.Status().State != core.StateStarting && h.b.Status().State != core.StateStarting
	})
	h.stop = func() {
		h.stop = nil
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the gateway ended with %v", err)
		}
		if err := s.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

func (h *house) context() context.Context {
	ctx, cancel := context.WithTimeout(h.t.Context(), 40*time.Second)
	h.t.Cleanup(cancel)
	return ctx
}

// say makes an envelope in a public thread; more are further members.
func (h *house) say(more ...string) []byte {
	n := h.count.Add(1)
	return h.sayAs(fmt.Sprintf("id-%d", n), fmt.Sprintf("text %d", n), more...)
}

func (h *house) sayAs(id, text string, more ...string) []byte {
	extra := ""
	for _, m := range more {
		extra += "," + m
	}
	return fmt.Appendf(nil, `{ "protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":"say",`+
		`"surface":"thread","thread_id":"thread_one","from":"ann","ts":%d,"body":{"text":%q},"ext":{"n":1.10,"big":1e400}%s}`,
		id, h.now().Unix(), text, extra)
}

func (h *house) settled(f *carriertest.Injected) core.Settlement {
	h.t.Helper()
	s, err := f.Wait(h.context())
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) take(f *carriertest.Injected) core.Settlement {
	h.t.Helper()
	s := h.settled(f)
	if s.Verdict != core.VerdictCommitted {
		h.t.Fatalf("settled %+v (%v), want committed", s, s.Rejection)
	}
	return s
}

func (h *house) sent(m *carriertest.Memory, n int) []core.Outbound {
	h.t.Helper()
	out, err := m.AwaitSent(h.context(), n)
	if err != nil {
		h.t.Fatalf("%d of %d came out: %v", len(m.Sent()), n, err)
	}
	return out
}

// eventually polls until ok, or fails the test.
func (h *house) eventually(what string, ok func() bool) {
	h.t.Helper()
	ctx := h.context()
	for !ok() {
		select {
		case <-ctx.Done():
			h.t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (h *house) inspect(id string) *core.Inspection {
	h.t.Helper()
	found, err := h.View("a").Inspect(h.t.Context(), "ws", id)
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func (h *house) deliveryState(id string, m string) core.DeliveryState {
	for _, d := range h.inspect(id).Deliveries {
		if d.Recipient == m {
			return d.State
		}
	}
	return ""
}

// lockDatabase holds the database as another process could.
func (h *house) lockDatabase() (unlock func()) {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "gateway.db")+"?_txlock=exclusive")
	if err != nil {
		h.t.Fatal(err)
	}
	var tx *sql.Tx
	h.eventually("the lock is free", func() bool { tx, err = db.Begin(); return err == nil })
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}
