package gateway

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// queued gives a house with one wake of the agent bot, whose window is open.
func queued(t *testing.T) (*house, *store.Run) {
	t.Helper()
	h := newHouse(t)
	h.patience = 50 * time.Millisecond
	h.freeze()
	h.hostAgents(&ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{CoalesceWindow: span(5 * time.Second)})}, turn: succeed})
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
	open, err := h.store.OpenRuns(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("%d wakes are open: %v", len(open), err)
	}
	return h, open[0]
}

// stall keeps the committer busy with a locked database, so that what is queued
// from now on shares a commit.
func (h *house) stall() (unlock func()) {
	h.t.Helper()
	unlock = h.lockDatabase()
	done := make(chan error, 1)
	go func() {
		done <- h.committer.do(context.Background(), func(context.Context, *transaction) (func(), error) { return nil, nil })
	}()
	h.t.Cleanup(func() { <-done })
	h.eventually("the committer tries", func() bool { return h.StoreTrouble() != "" })
	return unlock
}

func TestAClaimThatNobodyWaitsForAnyMoreGivesNothing(t *testing.T) {
	h, run := queued(t)
	unlock := h.stall()
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		claimed
		err error
	}
	over := make(chan result, 1)
	go func() {
		c, err := h.claim(ctx, h.Gateway.dir.hostedAgent(run.Recipient), run.ID)
		over <- result{c, err}
	}()
	h.eventually("the claim waits", func() bool { return len(h.committer.queue) == 1 })
	cancel()
	got := <-over
	unlock()
	if !errors.Is(got.err, context.Canceled) || got.run != nil || got.messages != nil {
		t.Errorf("the claim gave %+v", got)
	}
	h.eventually("it is committed nevertheless", func() bool { return h.agent("bot").Wakes[0].State == core.WakeRunning })
}

func TestAWakeIsCountedOnceHoweverOftenItsEndIsTried(t *testing.T) {
	h, run := queued(t)
	unlock := h.stall()
	settled, refused := make(chan error, 1), make(chan error, 1)
	go func() { settled <- h.settleWake(context.Background(), run.ID, ending{state: core.WakeFailed}) }()
	h.eventually("the end waits", func() bool { return len(h.committer.queue) == 1 })
	broken := errors.New("this one fails its group")
	go func() {
		refused <- h.committer.do(context.Background(), func(context.Context, *transaction) (func(), error) { return nil, broken })
	}()
	h.eventually("both wait", func() bool { return len(h.committer.queue) == 2 })
	unlock()
	if err := <-refused; !errors.Is(err, broken) {
		t.Errorf("the one that fails gave %v", err)
	}
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if err := h.settleWake(t.Context(), run.ID, ending{state: core.WakeFailed}); err != nil {
		t.Error(err)
	}
	if n := h.counted(t, "gateway_wakes_total"); n != 1 {
		t.Errorf("counted as %v wakes", n)
	}
}

// counted is the sum of a counter over all its labels.
func (h *house) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := h.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestTheLogTellsOfAnErrorOnlyWhereThereIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		want  string
		state core.WakeState
	}{
		"a wake that succeeds": {nil, `msg="wake over"`, core.WakeSucceeded},
		"one that fails": {
			&core.SendError{Code: core.CodeBadAddress, Detail: "nobody is there"}, `msg="wake not brought to an end"`, core.WakeFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
			w.turn = func(context.Context, core.WakeRequest, func([]byte) core.Settlement) (core.WakeOutcome, error) {
				return core.WakeOutcome{State: core.WakeSucceeded}, c.err
			}
			h := newHouse(t)
			h.hostAgents(w, func(g *Gateway) { g.log = slog.New(slog.NewTextHandler(&log, nil)) })
			h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
			h.allOver("bot", 1)
			if got := h.agent("bot").Wakes[0].State; got != c.state {
				t.Errorf("it is %s", got)
			}
			h.stop()
			var told string
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, c.want) {
					told = line
				}
			}
			if told == "" || strings.Contains(told, "error=") != (c.err != nil) {
				t.Errorf("the log is\n%s", log.String())
			}
		})
	}
}

func TestWhatAWakeParkedLeavesNothingBehindWhenItIsGivenUp(t *testing.T) {
	for name, during := range map[string]bool{"while the wake runs": true, "when it is over": false} {
		t.Run(name, func(t *testing.T) {
			parked, done := make(chan struct{}), make(chan struct{})
			w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
			h := newHouse(t)
			w.turn = func(_ context.Context, _ core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
				trace := strings.NewReplacer(`"kind":"say"`, `"kind":"trace"`, `"from":"ann"`, `"from":"bot"`, `"body":{"text":"x"}`, `"body":{"state":"working"}`)
				if s := say([]byte(trace.Replace(string(h.sayAs("early", "x", `"to":"ann"`, `"work_id":"w"`))))); !s.Parked {
					t.Errorf("the trace is settled as %+v (%v)", s, s.Rejection)
				}
				close(parked)
				<-done
				return core.WakeOutcome{State: core.WakeSucceeded}, nil
			}
			h.hostAgents(w)
			h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
			<-parked
			end := func() { close(done); h.allOver("bot", 1) }
			if !during {
				end()
			}
			h.offset.Add(int64(10 * time.Minute))
			h.eventually("the trace is given up", func() bool {
				_, err := h.View("a").Inspect(t.Context(), "ws", "early")
				return errors.Is(err, core.ErrNotFound)
			})
			if n := h.rows("wake_products"); during != (n == 1) {
				t.Errorf("%d rows tell of it", n)
			}
			if during {
				end()
			}
			if n := h.rows("wake_products"); n != 0 {
				t.Errorf("%d rows tell of it at the end", n)
			}
		})
	}
}

// rows counts the rows of a table.
func (h *house) rows(table string) (n int) {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "gateway.db")+"?_query_only=1&_busy_timeout=5000")
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestAWakeThatIsRunAgainHandsOverNothingStale(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	w.turn = func(ctx context.Context, _ core.WakeRequest, _ func([]byte) core.Settlement) (core.WakeOutcome, error) {
		<-ctx.Done()
		return core.WakeOutcome{}, ctx.Err()
	}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`, fmt.Sprintf(`"expires_at":%d`, h.now().Unix()+60))))
	h.eventually("it is handed over", func() bool { return h.deliveryState("q", "peer:bot") == core.DeliveryAcked })
	h.stop()
	h.offset.Add(int64(2 * time.Minute))
	after := &ward{agents: w.agents, turn: succeed}
	h.hostAgents(after)
	h.allOver("bot", 1)
	if got := h.agent("bot").Wakes[0]; got.State != core.WakeCanceled || len(after.given()) != 0 {
		t.Errorf("the wake is %+v, and %d were given", got, len(after.given()))
	}
}
