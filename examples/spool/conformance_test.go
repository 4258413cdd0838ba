package spool

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

const testLimit = 1 << 20

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture { return newFarSide(t).fixture() })
}

// farSide is the program that shares the directory with the carrier. It learns
// what became of its files by looking whether they are still there.
type farSide struct {
	carrier *Carrier
	dir     string
	self    core.Recipient
	ctx     context.Context
	cancel  context.CancelFunc
	watcher sync.WaitGroup

	// mu is held while files are looked at or moved, so that the directory does
	// not move meanwhile.
	mu       sync.Mutex
	written  []string
	outcomes []carriertest.Outcome
}

func newFarSide(t *testing.T) *farSide {
	far := &farSide{dir: filepath.Join(t.TempDir(), "spool"), self: core.Recipient{Carrier: "spool"}}
	for _, sub := range []string{"in", "out", "refused", "draft"} {
		if err := os.MkdirAll(filepath.Join(far.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	host := core.Host{Name: "spool", MaxEnvelopeBytes: testLimit, Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	far.carrier, err = New(Config{Dir: far.dir, Poll: 5 * time.Millisecond}, host)
	if err != nil {
		t.Fatal(err)
	}
	far.ctx, far.cancel = context.WithCancel(context.Background())
	far.watcher.Go(far.watch)
	return far
}

func (far *farSide) fixture() carriertest.Fixture {
	return carriertest.Fixture{
		Carrier:          far.carrier,
		Arrivals:         []core.Arrival{core.ArrivalIngress},
		Inject:           far.inject,
		Outcomes:         far.learnt,
		SeesRefusals:     true,
		MaxEnvelopeBytes: testLimit,
		Recipients:       []core.Recipient{far.self},
		Received:         far.received,
		Cut:              func() { far.move(far.dir, far.dir+".away") },
		Restore:          func() { far.move(far.dir+".away", far.dir) },
		RedeliversWithin: 50 * time.Millisecond,
		Close:            func() { far.cancel(); far.watcher.Wait() },
	}
}

// move moves the directory, which is this transport's cut.
func (far *farSide) move(from, to string) {
	far.mu.Lock()
	defer far.mu.Unlock()
	_ = os.Rename(from, to) // A cut may be restored twice.
}

func (far *farSide) inject(_ context.Context, f carriertest.Frame) error {
	far.mu.Lock()
	defer far.mu.Unlock()
	draft := filepath.Join(far.dir, "draft", f.Key)
	if err := os.WriteFile(draft, f.Payload, 0o600); err != nil {
		return err
	}
	far.written = append(far.written, f.Key)
	return os.Rename(draft, filepath.Join(far.dir, "in", f.Key))
}

func (far *farSide) watch() {
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-tick.C:
			far.look()
		case <-far.ctx.Done():
			tick.Stop()
			return
		}
	}
}

func (far *farSide) look() {
	far.mu.Lock()
	defer far.mu.Unlock()
	// One listing, so that what is still there and what is not belong together.
	files, err := os.ReadDir(filepath.Join(far.dir, "in"))
	if err != nil {
		return
	}
	far.written = slices.DeleteFunc(far.written, func(key string) bool {
		if slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() == key }) {
			return false
		}
		result := carriertest.Acked
		if _, err := os.Stat(filepath.Join(far.dir, "refused", key)); err == nil {
			result = carriertest.Refused
		}
		far.outcomes = append(far.outcomes, carriertest.Outcome{Key: key, Result: result})
		return true
	})
}

func (far *farSide) learnt() []carriertest.Outcome {
	far.mu.Lock()
	defer far.mu.Unlock()
	return slices.Clone(far.outcomes)
}

func (far *farSide) received() []carriertest.Received {
	far.mu.Lock()
	defer far.mu.Unlock()
	var list []carriertest.Received
	files, _ := filepath.Glob(filepath.Join(far.dir, "out", "[0-9]*"))
	for _, file := range files {
		payload, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, token, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
		list = append(list, carriertest.Received{Recipient: far.self, Token: token, Payload: payload})
	}
	return list
}
