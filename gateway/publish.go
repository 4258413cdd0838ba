package gateway

import (
	"github.com/compozy-gateway/gateway/core"
)

// publish tells everybody what was committed: memory first, then the carriers
// in order of arrival, then those who deliver and those who watch. Nothing of
// it happens before the commit.
func (c *committer) publish(g group, t *transaction) {
	c.lastSeq = t.lastSeq
	c.parked.merge(t.parked)
	for _, row := range t.rows {
		c.dir.put(row, nil)
	}
	c.dir.addPending(t.pending)
	for i, o := range g.offers {
		c.gateway.metrics.settled(o.origin.name, t.settlements[i])
		o.settle(t.settlements[i])
		if fresh(t.settlements[i]) {
			c.gateway.discovery.heard(o.env)
		}
	}
	for i, ctl := range g.controls {
		if apply := t.controls[i].apply; apply != nil {
			apply()
		}
		ctl.done <- t.controls[i].err
	}
	for _, r := range g.results {
		c.gateway.noteResult(r.result)
		if r.after != nil {
			r.after()
		}
	}
	c.gateway.metrics.gaveUp(t.givenUp)
	for _, e := range t.ended {
		c.gateway.noteEnding(e)
	}
	for id := range t.moved {
		c.gateway.dispatcher.wake(id)
	}
	for id := range t.woken {
		c.gateway.dispatcher.hand(id, t.fresh[id], !t.moved[id])
	}
	if t.wakes {
		c.gateway.runner.poke()
	}
	if t.messages > 0 || len(g.controls) > 0 {
		c.gateway.watch.announce()
	}
}

// fresh reports whether the settlement took something in that was not there.
func fresh(s core.Settlement) bool {
	return s.Verdict == core.VerdictCommitted && !s.Duplicate && !s.Echo
}
