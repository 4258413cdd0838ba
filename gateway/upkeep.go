package gateway

import (
	"context"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The pace and bounds of the upkeep.
const (
	pruneEvery         = time.Minute
	expireEvery        = 15 * time.Second
	pruneRows          = 2000
	expireRows         = 1000
	rejectionRetention = 30 * 24 * time.Hour
	maxRejections      = 100_000
)

// keepUp ends what nobody claims any more and forgets what is old, in small
// steps, until ctx ends.
func (g *Gateway) keepUp(ctx context.Context) {
	prune, expire := time.NewTicker(pruneEvery), time.NewTicker(expireEvery)
	defer prune.Stop()
	defer expire.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-prune.C:
			g.prune(ctx)
		case <-expire.C:
			g.expireUnclaimed(ctx)
		}
	}
}

func (g *Gateway) prune(ctx context.Context) {
	done, err := g.store.Prune(ctx, store.PruneOptions{
		Now: g.now(), Retention: g.config.Store.Retention, DedupRetention: g.config.Protocol.DedupRetention,
		RejectionRetention: rejectionRetention, MaxRejections: maxRejections, BatchRows: pruneRows,
	})
	if err != nil && ctx.Err() == nil {
		g.log.Warn("cannot forget what is older than the retention; will try again", "error", err)
		return
	}
	g.log.Debug("forgot what is older than the retention", "result", done)
}

// expireUnclaimed ends late deliveries of recipients that no destination serves:
// inboxes, peers that are located nowhere, carriers that are gone. It also
// counts every queue afresh, and forgets whom nothing waits for.
func (g *Gateway) expireUnclaimed(ctx context.Context) {
	// In steps, so that those who commit in between hardly wait.
	for more := true; more; {
		err := g.committer.do(ctx, func(ctx context.Context, t *transaction) (apply func(), err error) {
			apply, more, err = g.expireSome(ctx, t)
			return apply, err
		})
		if err != nil {
			if ctx.Err() == nil {
				g.log.Warn("cannot end late deliveries; will try again", "error", err)
			}
			return
		}
	}
}

func (g *Gateway) expireSome(ctx context.Context, t *transaction) (apply func(), more bool, err error) {
	now := t.committer.now()
	queues, err := t.tx.Queues(ctx, now)
	if err != nil {
		return nil, false, err
	}
	room := expireRows
	counts := make(map[int64]int64, len(queues))
	for _, q := range queues {
		counts[q.Recipient] = q.Pending
		if q.Late == 0 || g.dispatcher.find(q.Recipient) != nil {
			continue
		}
		if room == 0 {
			more = true
			continue
		}
		n, err := t.tx.ExpirePending(ctx, q.Recipient, now, room)
		if err != nil {
			return nil, false, err
		}
		room -= n
		counts[q.Recipient] -= int64(n)
		more = more || room == 0
		t.end(q.Recipient, core.DeliveryExpired, "", n)
	}
	return func() {
		g.dir.recount(counts)
		g.dir.forgetIdle(t.pending)
	}, more, nil
}
