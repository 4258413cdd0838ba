package gateway

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// ordeal drives the steps of wakes one by one, over a real store: a crash is
// possible between any two, because nothing but the store outlives one.
type ordeal struct {
	t   *rapid.T
	dir string
	// clock is in nanoseconds; the committer reads it too.
	clock atomic.Int64

	g         *Gateway
	store     *store.Store
	in        *intake
	quit      chan struct{}
	committer sync.WaitGroup
	ids       int
	sent      []string
	// running are the turns of this process: what a crash forgets.
	running map[string]*store.Run
	// final holds what every ended wake was; it must stay so.
	final map[int64]string
}

func (o *ordeal) agents() []core.HostedAgent {
	wakes, depth, tokens := 4, 2, 100
	b := core.BoundsRequest{
		MaxWakes: &wakes, MaxWakeDepth: &depth, MaxInputTokens: &tokens, MaxOutputTokens: &tokens,
		MaxWakeWallTime: span(10 * time.Second), MaxTotalWallTime: span(25 * time.Second), CoalesceWindow: span(time.Second),
	}
	return []core.HostedAgent{liveAgent("one", b), liveAgent("two", b)}
}

func (o *ordeal) now() time.Time { return time.Unix(0, o.clock.Load()) }

func (o *ordeal) open() {
	o.t.Helper()
	var err error
	if o.store, err = store.Open(context.Background(), store.Options{Dir: o.dir, Synchronous: "normal", Now: o.now}); err != nil {
		o.t.Fatal(err)
	}
	o.g, err = New(Options{Config: DefaultConfig(), Store: o.store, Logger: slog.New(slog.DiscardHandler), Now: o.now})
	if err != nil {
		o.t.Fatal(err)
	}
	w := &ward{agents: o.agents(), turn: succeed}
	if err := o.g.AddCarrier("agents", "ward", w); err != nil {
		o.t.Fatal(err)
	}
	rows, err := o.store.Recipients(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	for _, row := range rows {
		o.g.dir.put(row, nil)
	}
	if err := o.g.enrol(context.Background()); err != nil {
		o.t.Fatal(err)
	}
	quit := make(chan struct{})
	o.quit, o.running = quit, map[string]*store.Run{}
	o.committer.Go(func() { o.g.committer.run(quit) })
	if err := o.g.recoverWakes(context.Background()); err != nil {
		o.t.Fatal(err)
	}
	o.in = &intake{gateway: o.g, carrier: o.g.carriers["agents"]}
	for _, a := range w.agents {
		if err := o.in.Attach(context.Background(), core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: a.Peer, Push: true}); err != nil {
			o.t.Fatal(err)
		}
	}
}

// crash forgets everything but the store.
func (o *ordeal) crash() {
	close(o.quit)
	o.committer.Wait()
	if err := o.store.Close(); err != nil {
		o.t.Fatal(err)
	}
}

// say offers some envelopes at once, so that they share a group where they can.
func (o *ordeal) say(from, wake string) {
	n := rapid.IntRange(1, 3).Draw(o.t, "messages")
	var settled sync.WaitGroup
	for range n {
		o.ids++
		id := fmt.Sprintf("m-%d", o.ids)
		more := ""
		if to := rapid.SampledFrom([]string{"one", "two", ""}).Draw(o.t, "to"); to != "" && to != from {
			more += fmt.Sprintf(`,"to":%q`, to)
		}
		if cause := rapid.SampledFrom(append([]string{"", "unknown"}, o.sent...)).Draw(o.t, "cause"); cause != "" {
			more += fmt.Sprintf(`,"causation_id":%q`, cause)
		}
		raw := fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":"say",`+
			`"surface":"thread","thread_id":"thread_one","from":%q,"ts":%d,"body":{"text":"x"}%s}`, id, from, o.now().Unix(), more)
		settled.Add(1)
		err := o.in.Offer(context.Background(), core.Inbound{Payload: raw, Wake: wake}, func(s core.Settlement) {
			if s.Verdict != core.VerdictCommitted {
				o.t.Errorf("%s settled as %+v (%v)", raw, s, s.Rejection)
			}
			settled.Done()
		})
		if err != nil {
			o.t.Fatal(err)
		}
		o.sent = append(o.sent, id)
	}
	settled.Wait()
}

// claim starts whatever is ready.
func (o *ordeal) claim() {
	open, err := o.store.OpenRuns(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	for _, r := range open {
		h := o.g.dir.hosted[r.Recipient]
		if r.State != core.WakeQueued || r.Ready().After(o.now()) || o.running[h.agent.Name] != nil {
			continue
		}
		c, err := o.g.claim(context.Background(), h, r.ID)
		if err != nil {
			o.t.Fatal(err)
		}
		if len(c.messages) == 0 {
			o.t.Fatalf("%s was claimed without a message", core.WakeID(r.ID))
		}
		o.running[h.agent.Name] = c.run
	}
}

// end settles a turn, twice: the second time must change nothing.
func (o *ordeal) end(agent string) {
	run := o.running[agent]
	if run == nil {
		return
	}
	delete(o.running, agent)
	outcome := core.WakeOutcome{State: rapid.SampledFrom([]core.WakeState{
		core.WakeSucceeded, core.WakeFailed, core.WakeDeadlineExceeded,
	}).Draw(o.t, "state")}
	if rapid.Bool().Draw(o.t, "reports") {
		outcome.Usage = &core.Usage{InputTokens: rapid.Int64Range(0, 200).Draw(o.t, "in"), OutputTokens: rapid.Int64Range(0, 200).Draw(o.t, "out")}
	}
	var failure error
	if rapid.IntRange(0, 4).Draw(o.t, "unavailable") == 0 {
		failure = &core.SendError{Code: core.CodeUnavailable, Detail: "not running"}
	}
	wall := time.Duration(rapid.IntRange(0, 20).Draw(o.t, "seconds")) * time.Second
	if err := o.g.endTurn(context.Background(), run, outcome, failure, wall); err != nil {
		o.t.Fatal(err)
	}
	if failure == nil {
		if err := o.g.endTurn(context.Background(), run, core.WakeOutcome{State: core.WakeFailed}, nil, time.Hour); err != nil {
			o.t.Fatal(err)
		}
	}
}

// check looks at the rows themselves.
func (o *ordeal) check() {
	o.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(o.dir, "gateway.db")+"?_query_only=1&_busy_timeout=5000")
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close()
	for what, query := range map[string]string{
		"a wake without its ledger row":           "SELECT COUNT(*) FROM task_runs r LEFT JOIN wake_ledger l ON l.run_id = r.id WHERE l.run_id IS NULL",
		"a ledger row without its task run":       "SELECT COUNT(*) FROM wake_ledger l LEFT JOIN task_runs r ON r.id = l.run_id WHERE r.id IS NULL",
		"a wake without a committed message":      "SELECT COUNT(*) FROM task_runs r WHERE NOT EXISTS (SELECT 1 FROM wake_sources s JOIN messages m ON m.seq = s.seq WHERE s.run_id = r.id)",
		"two open wakes of one agent":             "SELECT COUNT(*) FROM (SELECT 1 FROM task_runs WHERE state < 2 GROUP BY recipient_id HAVING COUNT(*) > 1)",
		"an open wake that is charged already":    "SELECT COUNT(*) FROM task_runs r JOIN wake_ledger l ON l.run_id = r.id WHERE (r.state < 2) <> (l.usage = 0)",
		"an open wake that does not count":        "SELECT COUNT(*) FROM wake_ledger WHERE usage = 0 AND (wall < reserved_wall OR input < reserved_input OR output < reserved_output)",
		"an open wake that counts twice":          "SELECT COUNT(*) FROM wake_ledger l JOIN task_runs r ON r.id = l.run_id WHERE l.usage = 0 AND r.reruns = 0 AND (l.wall, l.input, l.output) <> (l.reserved_wall, l.reserved_input, l.reserved_output)",
		"a wake that gives more than it may":      "SELECT COUNT(*) FROM (SELECT 1 FROM wake_handed GROUP BY run_id HAVING COUNT(*) > 32)",
		"a wake that is too deep":                 "SELECT COUNT(*) FROM task_runs WHERE depth >= 2",
		"too many wakes":                          "SELECT COUNT(*) FROM (SELECT 1 FROM wake_ledger WHERE usage <> 1 OR reported_input IS NOT NULL GROUP BY participation_id HAVING COUNT(*) > 4)",
		"too much wall time":                      "SELECT COUNT(*) FROM (SELECT 1 FROM wake_ledger GROUP BY participation_id HAVING SUM(wall) > 25000)",
		"too many tokens":                         "SELECT COUNT(*) FROM (SELECT 1 FROM wake_ledger GROUP BY participation_id HAVING SUM(input) > 100 OR SUM(output) > 100)",
		"a message that waits, but for no wake":   "SELECT COUNT(*) FROM wake_waiting w WHERE NOT EXISTS (SELECT 1 FROM task_runs r WHERE r.recipient_id = w.recipient_id AND r.state < 2)",
		"a wake of which nothing says what it is": "SELECT COUNT(*) FROM task_runs WHERE kind <> 'network_wake' OR state NOT BETWEEN 0 AND 5",
	} {
		var n int
		if err := db.QueryRow(query).Scan(&n); err != nil {
			o.t.Fatalf("%s: %v", what, err)
		}
		if n != 0 {
			o.t.Fatalf("%s (%d times)", what, n)
		}
	}
	rows, err := db.Query("SELECT r.id, printf('%d %d %d %d %d %d', r.state, l.usage, l.wall, l.input, l.output, r.ended_at) FROM task_runs r" +
		" JOIN wake_ledger l ON l.run_id = r.id WHERE r.state >= 2")
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var now string
		if err := rows.Scan(&id, &now); err != nil {
			o.t.Fatal(err)
		}
		if before := o.final[id]; before != "" && before != now {
			o.t.Fatalf("%s had ended as %q and is %q now", core.WakeID(id), before, now)
		}
		o.final[id] = now
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	for id := range o.final {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM task_runs WHERE id = ?", id).Scan(&n); err != nil || n != 1 {
			o.t.Fatalf("%s is gone: %v", core.WakeID(id), err)
		}
	}
}

func TestWhateverHappensEveryWakeEndsOnceWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "ordeal")
		if err != nil {
			rt.Fatal(err)
		}
		o := &ordeal{t: rt, dir: dir, final: map[int64]string{}}
		o.clock.Store(time.Unix(1_800_000_000, 0).UnixNano())
		o.open()
		defer func() { o.crash() }()
		agent := rapid.SampledFrom([]string{"one", "two"})
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"say", "answer", "pass", "claim", "claim", "end", "end", "crash", "renew"}).Draw(rt, "step") {
			case "say":
				o.say("ann", "")
			case "answer":
				name := agent.Draw(rt, "agent")
				if run := o.running[name]; run != nil {
					o.say(name, core.WakeID(run.ID))
				}
			case "pass":
				o.clock.Add(int64(time.Duration(rapid.IntRange(100, 5000).Draw(rt, "ms")) * time.Millisecond))
			case "claim":
				o.claim()
			case "end":
				o.end(agent.Draw(rt, "agent"))
			case "crash":
				o.crash()
				o.open()
			case "renew":
				if rapid.IntRange(0, 3).Draw(rt, "rarely") == 0 {
					if err := o.g.renew(context.Background(), agent.Draw(rt, "agent")); err != nil {
						rt.Fatal(err)
					}
				}
			}
			o.check()
		}
		o.finish()
	})
}

// finish lets everything come to its end.
func (o *ordeal) finish() {
	for range 100 {
		open, err := o.store.OpenRuns(context.Background())
		if err != nil {
			o.t.Fatal(err)
		}
		if len(open) == 0 {
			return
		}
		o.clock.Add(int64(time.Minute))
		o.claim()
		o.end("one")
		o.end("two")
		o.check()
	}
	o.t.Fatal("some wakes never end")
}
