package gateway

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Carriers tells how every carrier stands, in the order of configuration. A
// store that cannot write shows as a carrier of its own kind of trouble: no
// carrier is ready then.
func (g *Gateway) Carriers() []core.CarrierView {
	views := make([]core.CarrierView, 0, len(g.order))
	trouble := g.StoreTrouble() != ""
	for _, name := range g.order {
		c := g.carriers[name]
		status, limits := c.impl.Status(), c.impl.Limits()
		view := core.CarrierView{
			Name: name, Type: c.typ, State: status.State, Why: status.Why,
			LastReceive: timeOrNil(status.LastReceive), LastSend: timeOrNil(status.LastSend),
			Dropped: status.Dropped, MaxPayload: limits.MaxPayload, InFlight: limits.InFlight,
			Redelivers: limits.Redelivers, Ordered: limits.Ordered, AckKind: limits.AckKind,
			Guarantee: limits.Guarantee, Detail: status.Detail,
		}
		switch {
		case trouble && view.State == core.StateReady:
			// The cause, which may name files, is in the log.
			view.State, view.Why = core.StateNotReady, "the store cannot write now (see the log)"
			view.Trouble = core.TroubleStore
		case view.State == core.StateNotReady:
			view.Trouble = core.TroubleLink
			if _, hosts := c.impl.(core.Waker); hosts {
				view.Trouble = core.TroubleAgents
			}
		}
		views = append(views, view)
	}
	return views
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// markSending shows which deliveries are under way right now, which only memory
// knows.
func (g *Gateway) markSending(found *core.Inspection) {
	for i := range found.Deliveries {
		view := &found.Deliveries[i]
		if view.State != core.DeliveryPending {
			continue
		}
		id, err := core.ParseDeliveryID(view.ID)
		if err != nil {
			continue
		}
		if dest := g.dispatcher.find(id.Recipient); dest != nil && dest.isUnderway(id) {
			view.State = core.DeliverySending
		}
	}
}
