package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/compozy-gateway/gateway/core"
)

// TestResultsFollowTheirRules compares the bulk statement with the rules told
// one result at a time, over groups of every size and repetition.
func TestResultsFollowTheirRules(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	seq := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		first, n := seq+1, rapid.Int64Range(1, 12).Draw(rt, "deliveries")
		var c Changes
		model := map[int64]*core.Delivery{}
		for range n {
			seq++
			c.Messages = append(c.Messages, say(seq, fmt.Sprintf("m%d", seq), ""))
			c.Deliveries = append(c.Deliveries, deliverTo(seq, link)...)
			model[seq] = &core.Delivery{State: core.DeliveryPending}
		}
		apply(t, s, &c)
		var group Changes
		for range rapid.IntRange(0, 60).Draw(rt, "results") {
			r := Result{
				ID:    core.DeliveryID{Seq: rapid.Int64Range(first, seq+1).Draw(rt, "seq"), Recipient: link},
				State: rapid.SampledFrom([]core.DeliveryState{core.DeliveryPending, core.DeliveryAcked, core.DeliveryExpired, core.DeliveryDead}).Draw(rt, "state"),
			}
			r.Attempts = rapid.IntRange(0, 9).Draw(rt, "attempts")
			switch r.State {
			case core.DeliveryDead:
				r.Reason = rapid.SampledFrom([]string{OutboxFull, "refused"}).Draw(rt, "reason")
			case core.DeliveryAcked:
				r.Ack = core.Ack{Kind: core.AckNATSFlush, At: noon.Add(time.Second), Detail: "flushed"}
			default:
				r.LastError = "no answer"
			}
			group.Results = append(group.Results, r)
			follow(model[r.ID.Seq], r)
		}
		apply(t, s, &group)
		var waiting []int64
		for i := first; i <= seq; i++ {
			got, want := delivery(t, s, fmt.Sprintf("m%d", i), link), *model[i]
			if got.State == core.DeliveryPending {
				waiting = append(waiting, i)
			}
			if got.State != want.State || got.Attempts != want.Attempts || got.Reason != want.Reason ||
				got.LastError != want.LastError || (got.Ack == nil) != (want.Ack == nil) {
				rt.Fatalf("delivery %d of %v:\n  %+v\n  want %+v", i, group.Results, got, want)
			}
		}
		page, err := s.Pending(t.Context(), link, first-1, noon, 100, 1<<20)
		if err != nil || !slices.Equal(seqs(page), waiting) {
			rt.Fatalf("pending %v, want %v, %v", seqs(page), waiting, err)
		}
	})
}

// follow is the rule for one result.
func follow(d *core.Delivery, r Result) {
	overruled := d != nil && d.State == core.DeliveryDead && d.Reason == OutboxFull && r.State == core.DeliveryAcked
	if d == nil || (d.State != core.DeliveryPending && !overruled) {
		return
	}
	d.State, d.Attempts, d.Reason, d.LastError = r.State, max(d.Attempts, r.Attempts), r.Reason, r.LastError
	if r.State == core.DeliveryAcked {
		d.Ack = &core.AckView{}
	}
}
