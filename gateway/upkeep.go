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
// counts every queue afresh, and forgets whom nothing has waited for since the
// last time.
func (g *Gateway) expireUnclaimed(ctx context.Context) {
	err := g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		now := t.committer.now()
		var idle []int64
		for _, r := range g.dir.snapshot() {
			if r.pending == 0 {
				idle = append(idle, r.id)
			}
			if r.pending == 0 || g.dispatcher.find(r.id) != nil {
				continue
			}
			n, err := t.tx.ExpirePending(ctx, r.id, now, expireRows)
			if err != nil {
				return nil, err
			}
			t.end(r.id, core.DeliveryExpired, "", n)
		}
		counts, err := t.tx.PendingCounts(ctx)
		if err != nil {
			return nil, err
		}
		return func() {
			g.dir.recount(counts)
			g.dir.forget(idle)
		}, nil
	})
	if err != nil && ctx.Err() == nil {
		g.log.Warn("cannot end late deliveries; will try again", "error", err)
	}
}
