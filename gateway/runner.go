package gateway

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The pace of the runner.
const (
	// runnerPoll is how often the queue is looked at unasked.
	runnerPoll = 30 * time.Second
	// A wake that could not be handed over is tried again after wakeBackoff,
	// doubling, maxWakeAttempts times in all.
	wakeBackoff     = time.Second
	wakeBackoffCap  = 30 * time.Second
	maxWakeAttempts = 5
	// maxReruns is how often a wake is started again because the gateway had ended
	// under it: one that brings the gateway down must not do so for ever.
	maxReruns = 3
)

// runner starts the wakes that are queued in the database: when their window has
// ended, one at a time for each agent. It keeps nothing that a restart would
// miss.
type runner struct {
	gateway *Gateway
	wakeup  chan struct{}
	turns   sync.WaitGroup

	mu sync.Mutex
	// busy are the agents that have a turn, by recipient.
	busy map[int64]bool
}

func newRunner(g *Gateway) *runner {
	return &runner{gateway: g, wakeup: make(chan struct{}, 1), busy: map[int64]bool{}}
}

func (r *runner) poke() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// run starts what is ready until ctx ends; turns go on until life ends. It
// returns when all have ended.
func (r *runner) run(ctx, life context.Context) {
	defer r.turns.Wait()
	for ctx.Err() == nil {
		timer := time.NewTimer(r.startReady(ctx, life))
		select {
		case <-r.wakeup:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// startReady starts what is ready and tells how long to wait for the next.
func (r *runner) startReady(ctx, life context.Context) time.Duration {
	g := r.gateway
	if len(g.agents) == 0 || !g.config.Network.Enabled {
		return runnerPoll // Availability is off: what is queued stays queued.
	}
	open, err := g.store.OpenRuns(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("cannot read the queue of wakes; will try again", "error", err)
		}
		return time.Second
	}
	wait := runnerPoll
	now := g.now()
	for _, run := range open {
		h := g.dir.hostedAgent(run.Recipient)
		switch {
		case run.State != core.WakeQueued || h == nil || r.isBusy(run.Recipient):
		case run.Ready().After(now):
			wait = min(wait, run.Ready().Sub(now))
		default:
			r.setBusy(run.Recipient, true)
			r.turns.Go(func() {
				r.turn(life, h, run.ID)
				r.setBusy(run.Recipient, false)
				r.poke()
			})
		}
	}
	return max(wait, time.Millisecond)
}

func (r *runner) isBusy(recipient int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[recipient]
}

func (r *runner) setBusy(recipient int64, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.busy[recipient] = true
	} else {
		delete(r.busy, recipient)
	}
}

// turn brings one wake to its end: claimed, handed over, settled.
func (r *runner) turn(life context.Context, h *hosted, id int64) {
	g := r.gateway
	log := g.log.With("agent", h.fullName(), "wake", core.WakeID(id))
	c, err := g.claim(life, h, id)
	if err != nil {
		if life.Err() == nil {
			log.Warn("cannot start the wake; will try again", "error", err)
			pause(life, time.Second)
		}
		return
	}
	run, messages := c.run, c.messages
	if len(messages) == 0 {
		return
	}
	log.Info("wake started", "messages", len(messages), "root", run.Root, "depth", run.Depth)
	started := g.now()
	ctx, cancel := context.WithTimeout(life, run.Reserved.Wall)
	defer cancel()
	outcome, err := h.waker.Wake(ctx, core.WakeRequest{
		Agent: h.agent.Name, ID: core.WakeID(id), Deadline: g.now().Add(run.Reserved.Wall), Messages: messages,
		Wrote: func(i int, ack core.Ack) {
			if m := messages[i]; m.Raw == nil {
				if m.Bytes <= wakeBytes {
					return // It is unread, and comes along with the next wake.
				}
				ack.Detail = strings.TrimPrefix(ack.Detail+", by its id alone", ", ")
			}
			_ = g.committer.record(life, store.Result{ID: messages[i].Delivery, State: core.DeliveryAcked, Attempts: 1, Ack: ack}, nil)
		},
	})
	if life.Err() != nil {
		// Nobody knows how far the agent came. The run stays as it is, and the next
		// start reads the queue again.
		return
	}
	r.bringToEnd(life, run, outcome, err, g.now().Sub(started))
	if err != nil {
		// It may be tried again; inspection shows whether it is.
		log.Warn("wake not brought to an end", "error", err)
		return
	}
	log.Info("wake over", "state", outcome.State, "detail", outcome.Detail)
}

// bringToEnd settles a turn, however often that takes: an agent whose wake stays
// open is never woken again.
func (r *runner) bringToEnd(life context.Context, run *store.Run, outcome core.WakeOutcome, failure error, wall time.Duration) {
	again := backoff{base: wakeBackoff, cap: wakeBackoffCap}
	for life.Err() == nil {
		err := r.gateway.endTurn(life, run, outcome, failure, wall)
		if err == nil {
			return
		}
		wait := again.next()
		r.gateway.log.Warn("cannot settle the wake; will try again", "wake", core.WakeID(run.ID), "in", wait, "error", err)
		pause(life, wait)
	}
}
