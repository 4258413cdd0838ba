package gateway

import (
	"context"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// quiescing is a ward that, told of the stop, still offers something.
type quiescing struct {
	*ward
	running  chan core.Intake
	settled  chan core.Settlement
	quiesced int
	failed   error
}

func (q *quiescing) Run(ctx context.Context, in core.Intake) error {
	q.running <- in
	<-ctx.Done()
	return nil
}

func (q *quiescing) Quiesce() {
	q.quiesced++
	q.failed = (<-q.running).Offer(context.Background(), core.Inbound{Payload: []byte("{}")}, func(s core.Settlement) { q.settled <- s })
}

func TestACarrierIsToldOfTheStopWhileTheGatewayStillTakesWhatItHas(t *testing.T) {
	q := &quiescing{ward: &ward{}, running: make(chan core.Intake, 1), settled: make(chan core.Settlement, 1)}
	h := newHouse(t)
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("q", "quiescing", q); err != nil {
			t.Fatal(err)
		}
	})
	h.stop()
	if q.quiesced != 1 || q.failed != nil {
		t.Fatalf("told %d times, and the offer that followed failed with %v", q.quiesced, q.failed)
	}
	if s := <-q.settled; s.Verdict != core.VerdictRejected {
		t.Errorf("what was offered before the end is settled as %+v", s)
	}
}
