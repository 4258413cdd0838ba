package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The bounds of what waits and of what shares a commit.
const (
	queueRows      = 4096
	queueBytes     = 64 << 20
	groupRows      = 1024
	groupBytes     = 8 << 20
	groupResults   = 4096
	parkedSweep    = time.Second
	parkedSweepMax = 256
	// abandonAfter is how long a stopping gateway keeps trying a group that the
	// store does not take.
	abandonAfter = 5 * time.Second
)

// control is a change that does not come from an envelope: an attachment, a
// replay. It runs in the committer's order.
type control struct {
	// run makes the change; what it returns is applied to memory once the
	// transaction is committed.
	run  func(ctx context.Context, t *transaction) (apply func(), err error)
	done chan error
}

// outcome of a delivery on its way to a commit.
type recorded struct {
	result store.Result
	// after is called once the result is committed, or given up.
	after func()
}

// item is an offer or a control: exactly one of them.
type item struct {
	offer   *offer
	control *control
}

// committer is the one goroutine that writes: whatever waited during the last
// commit is the next group (section 6).
type committer struct {
	gateway *Gateway
	store   *store.Store
	dir     *directory
	log     *slog.Logger
	now     func() time.Time

	queue chan item
	bytes *semaphore.Weighted

	mu      sync.Mutex
	results []recorded
	// signal holds one token while results wait.
	signal chan struct{}

	// stopping ends when the gateway takes nothing more.
	stopping chan struct{}
	stopOnce sync.Once
	// open is a context that ends with the same, by shut.
	open context.Context
	shut context.CancelFunc
	// stoppedAt is set before stopping is closed.
	stoppedAt time.Time
	// offering counts those inside offer, so that a stop can wait for them.
	offering sync.WaitGroup
	gate     sync.RWMutex
	closed   bool

	// What follows belongs to the committer's goroutine.
	held    item
	lastSeq int64
	parked  *parkedCounts
	backoff backoff
}

func newCommitter(g *Gateway) *committer {
	open, shut := context.WithCancel(context.Background())
	return &committer{
		open: open, shut: shut,
		gateway: g, store: g.store, dir: g.dir, log: g.log, now: g.now,
		queue:    make(chan item, queueRows),
		bytes:    semaphore.NewWeighted(queueBytes),
		signal:   make(chan struct{}, 1),
		stopping: make(chan struct{}),
		parked:   newParkedCounts(),
		backoff:  backoff{base: 20 * time.Millisecond, cap: 2 * time.Second},
	}
}

// start reads what the committer keeps in memory.
func (c *committer) start(ctx context.Context) error {
	var err error
	if c.lastSeq, err = c.store.LastSeq(ctx); err != nil {
		return err
	}
	c.parked.total, c.parked.from, err = c.store.ParkedCounts(ctx)
	return err
}

// enter lets a caller in unless the gateway is stopping; leave must follow.
func (c *committer) enter() error {
	c.gate.RLock()
	defer c.gate.RUnlock()
	if c.closed {
		return core.ErrStopping
	}
	c.offering.Add(1)
	return nil
}

func (c *committer) leave() { c.offering.Done() }

// offer queues an envelope. It blocks while the queue is full.
func (c *committer) offer(ctx context.Context, o *offer) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	weight := min(int64(len(o.in.Payload))+1, queueBytes)
	if err := c.reserve(ctx, weight); err != nil {
		return err
	}
	settle := o.settle
	o.settle = func(s core.Settlement) {
		c.bytes.Release(weight)
		settle(s)
	}
	return c.push(ctx, item{offer: o}, func() { c.bytes.Release(weight) })
}

// reserve takes a share of the bytes that may wait, until ctx or the gateway
// ends.
func (c *committer) reserve(ctx context.Context, weight int64) error {
	if c.bytes.TryAcquire(weight) {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	if err := c.bytes.Acquire(waiting, weight); err != nil {
		if ctx.Err() == nil {
			return core.ErrStopping
		}
		return err
	}
	return nil
}

func (c *committer) push(ctx context.Context, it item, giveUp func()) error {
	select {
	case c.queue <- it:
		return nil
	case <-ctx.Done():
		giveUp()
		return ctx.Err()
	case <-c.stopping:
		giveUp()
		return core.ErrStopping
	}
}

// do runs a control in order and waits for its commit.
func (c *committer) do(ctx context.Context, run func(context.Context, *transaction) (func(), error)) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	ctl := &control{run: run, done: make(chan error, 1)}
	if err := c.push(ctx, item{control: ctl}, func() {}); err != nil {
		return err
	}
	select {
	case err := <-ctl.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record queues the outcome of a delivery. It never blocks: what is under way
// bounds it.
func (c *committer) record(_ context.Context, r store.Result, after func()) error {
	c.mu.Lock()
	c.results = append(c.results, recorded{result: r, after: after})
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
	return nil
}

func (c *committer) takeResults() []recorded {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.results), groupResults)
	taken := c.results[:n:n]
	c.results = c.results[n:]
	if len(c.results) > 0 {
		select {
		case c.signal <- struct{}{}:
		default:
		}
	} else {
		c.results = nil
	}
	return taken
}

// stop closes the intake: nothing new is taken, what was taken is still
// committed.
func (c *committer) stop() {
	c.gate.Lock()
	c.closed = true
	c.gate.Unlock()
	c.stopOnce.Do(func() {
		c.stoppedAt = c.now()
		close(c.stopping)
		c.shut()
	})
}

// settleAll returns when everything that was taken before stop is settled. It
// fails when the store could not write to the end.
func (c *committer) settleAll() error {
	c.offering.Wait()
	barrier := &control{
		run:  func(context.Context, *transaction) (func(), error) { return nil, nil },
		done: make(chan error, 1),
	}
	c.queue <- item{control: barrier}
	return <-barrier.done
}

// run commits groups until quit is closed and everything that waits is written.
func (c *committer) run(quit <-chan struct{}) {
	sweep := time.NewTicker(parkedSweep)
	defer sweep.Stop()
	for {
		if c.held != (item{}) {
			c.commit(c.gather(item{}))
			continue
		}
		select {
		case it := <-c.queue:
			c.commit(c.gather(it))
		case <-c.signal:
			c.commit(c.gather(item{}))
		case <-sweep.C:
			c.sweepParked()
		case <-quit:
			c.drain()
			return
		}
	}
}

// drain commits what still waits, results included.
func (c *committer) drain() {
	for {
		g := c.gather(item{})
		if g.empty() {
			return
		}
		c.commit(g)
	}
}

// commit brings a group to its end: committed, or split until the culprit
// stands alone. While the store cannot write for a reason that passes, it keeps
// the group and tries again.
func (c *committer) commit(g group) {
	started := c.now()
	c.backoff.reset()
	for {
		err := c.try(g)
		if err == nil {
			c.gateway.metrics.commit(len(g.offers), c.now().Sub(started))
			c.gateway.setStoreTrouble("")
			return
		}
		if !store.Passing(err) {
			c.split(g, err)
			return
		}
		c.gateway.setStoreTrouble(err.Error())
		c.log.Warn("the store cannot write now; nothing is acknowledged until it can", "waiting", len(g.offers), "error", err)
		if c.tooLateToWait() {
			c.abandon(g)
			return
		}
		time.Sleep(c.backoff.next())
	}
}

// tooLateToWait reports whether the gateway has been stopping for so long that a
// store which cannot write is waited for no more.
func (c *committer) tooLateToWait() bool {
	select {
	case <-c.stopping:
		return c.now().Sub(c.stoppedAt) > abandonAfter
	default:
		return false
	}
}

// sweepParked ends what waited for an opener until it was stale.
func (c *committer) sweepParked() {
	if c.parked.total == 0 {
		return
	}
	var delta *parkedCounts
	var ended []store.Rejection
	err := c.store.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		now := c.now()
		stale, err := tx.StaleParked(ctx, now, parkedSweepMax)
		if err != nil || len(stale) == 0 {
			return err
		}
		d := newDecider(c.gateway.policy, now, &store.State{Keys: map[store.Key]*store.Known{}}, c.dir, c.lastSeq, c.parked)
		for _, p := range stale {
			d.unpark(p)
			d.giveUp(p, parkedTooLong())
		}
		delta, ended = d.parkedDelta, d.givenUp
		return tx.Apply(ctx, d.finish())
	})
	if err != nil {
		c.log.Warn("cannot end what was parked too long; will try again", "error", err)
		return
	}
	if delta != nil {
		c.parked.merge(delta)
		c.gateway.metrics.gaveUp(ended)
	}
}

func offerID(o *offer) string {
	if o.env == nil {
		return ""
	}
	return o.env.ID
}
