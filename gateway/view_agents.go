package gateway

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// latestWakes is how many wakes of an agent are listed.
const latestWakes = 10

// Agents lists the hosted agents with their participations, what counts against
// their bounds, and their latest wakes.
func (v *View) Agents(ctx context.Context) ([]core.AgentView, error) {
	list := []core.AgentView{}
	for _, h := range v.gateway.agents {
		if h.agent.WorkspaceID != "" && !v.allowed(h.agent.WorkspaceID, h.agent.Channel) {
			continue
		}
		view, err := v.gateway.agentView(ctx, h)
		if err != nil {
			return nil, err
		}
		list = append(list, view)
	}
	return list, nil
}

// RenewAgent gives a live agent, by its name or CARRIER.NAME, a new
// participation and with it a new budget. ErrNotFound when there is no such
// agent, ErrForbidden when it is local, or availability is off.
func (v *View) RenewAgent(ctx context.Context, name string) error {
	h, err := v.gateway.findAgent(name)
	if err != nil {
		return err
	}
	if h.agent.WorkspaceID != "" && !v.allowed(h.agent.WorkspaceID, h.agent.Channel) {
		return core.ErrNotFound
	}
	return v.gateway.renew(ctx, name)
}

func (g *Gateway) agentView(ctx context.Context, h *hosted) (core.AgentView, error) {
	row := g.dir.participationOf(h)
	view := core.AgentView{
		Name: h.agent.Name, Carrier: h.carrier.name, Peer: h.agent.Peer, Resident: h.agent.Resident, Wakes: []core.WakeView{},
	}
	if reporter, ok := h.waker.(core.AgentReporter); ok {
		view.State, view.Why = reporter.AgentState(h.agent.Name)
	}
	if row.ID == 0 {
		view.Note = "network.enabled is false, which enrols nobody"
		return view, nil
	}
	view.ResolvedNetworkParticipation, view.ResolvedAt = &row.Resolved, timeOrNil(row.CreatedAt)
	if !row.Resolved.Live() {
		return view, nil
	}
	now := hosted{agent: h.agent, asked: h.asked, participation: row}
	view.Note = now.note()
	used, wakes, unread, err := g.store.AgentState(ctx, store.OwnerKey{Recipient: h.recipient, Participation: row.ID}, latestWakes)
	if err != nil {
		return view, err
	}
	view.Used = &core.BudgetView{Wakes: used.Wakes, WallTime: used.Wall.String(), InputTokens: used.Input, OutputTokens: used.Output}
	view.Wakes, view.Unread = wakes, unread
	return view, nil
}
