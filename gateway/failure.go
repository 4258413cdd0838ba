package gateway

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// abandon leaves a group unsettled at shutdown: nobody was told that it was
// taken, so its senders send it again.
func (c *committer) abandon(g group) {
	for _, o := range g.offers {
		o.settle(core.Settlement{Verdict: core.VerdictRetry, ID: offerID(o), RetryAfter: time.Second})
	}
	for _, ctl := range g.controls {
		ctl.done <- core.ErrStopping
	}
	g.forgetResults()
}

// forgetResults gives up outcomes that cannot be stored; their deliveries are
// sent again.
func (g group) forgetResults() {
	for _, r := range g.results {
		if r.after != nil {
			r.after()
		}
	}
}

// split finds the culprit of a failure that will not pass.
func (c *committer) split(g group, cause error) {
	offers, controls, results := len(g.offers), len(g.controls), len(g.results)
	switch {
	case results > 0 && offers+controls > 0:
		c.commit(group{results: g.results})
		c.commit(group{offers: g.offers, controls: g.controls})
	case offers > 1:
		c.commit(group{offers: g.offers[:offers/2]})
		c.commit(group{offers: g.offers[offers/2:]})
	case controls > 1:
		c.commit(group{controls: g.controls[:controls/2]})
		c.commit(group{controls: g.controls[controls/2:]})
	case results > 1:
		c.commit(group{results: g.results[:results/2]})
		c.commit(group{results: g.results[results/2:]})
	default:
		c.condemn(g, cause)
	}
}

// condemn ends the one item that the store will never take.
func (c *committer) condemn(g group, cause error) {
	c.log.Error("the store refuses this one for good", "error", cause)
	g.forgetResults()
	for _, ctl := range g.controls {
		ctl.done <- cause
	}
	for _, o := range g.offers {
		if o.refusal != nil && o.refusal.Reason == core.ReasonInternal {
			o.settle(core.Settlement{Verdict: core.VerdictRetry, ID: offerID(o), RetryAfter: time.Minute})
			continue
		}
		o.refusal = &core.Rejection{
			Step: core.StepParse, Reason: core.ReasonInternal,
			Detail: "the gateway could not store this message; its log says why",
		}
		c.commit(group{offers: []*offer{o}})
	}
}
