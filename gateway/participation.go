package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// hosted is an agent of one of our carriers. Its participation belongs to the
// committer, and to the directory's lock.
type hosted struct {
	carrier *carrier
	waker   core.Waker
	agent   core.HostedAgent
	// asked is what the configuration asks for now.
	asked core.Participation
	// recipient is the agent's peer, 0 for a local agent that names none.
	recipient int64
	// participation is the one that counts. Its id is 0 while network.enabled:
	// false keeps the agent from its first one.
	participation store.ParticipationRow
}

func (h *hosted) live() bool { return h.participation.ID != 0 && h.participation.Resolved.Live() }

// name is how commands call the agent: by its name, where that is unique.
func (h *hosted) fullName() string { return h.carrier.name + "." + h.agent.Name }

// askedFor resolves what the configuration asks for. It reports every problem.
func (c Config) askedFor(key string, a core.HostedAgent) (core.Participation, []error) {
	if a.Mode != core.ModeLive {
		return core.LocalParticipation(), nil
	}
	bounds, problems := core.ResolveBounds(key+".participation.bounds", a.Bounds, c.Participation.Defaults, c.Participation.Limits)
	return core.LiveParticipation(a.WorkspaceID, a.Channel, bounds), problems
}

// addAgents takes in the agents that a carrier hosts.
func (g *Gateway) addAgents(c *carrier, w core.Waker) error {
	var problems []error
	for _, a := range w.Agents() {
		asked, found := g.config.askedFor("carriers."+c.name+".agents."+a.Name, a)
		problems = append(problems, found...)
		g.agents = append(g.agents, &hosted{carrier: c, waker: w, agent: a, asked: asked})
	}
	all := map[string][]core.HostedAgent{}
	for _, h := range g.agents {
		all[h.carrier.name] = append(all[h.carrier.name], h.agent)
	}
	return errors.Join(append(problems, ValidateSeats(all)...)...)
}

// enrol gives every agent its participation before it runs: the one that it has,
// as long as that says who takes part and where, else a new one. Wakes of agents
// that are gone are canceled.
func (g *Gateway) enrol(ctx context.Context) error {
	known, err := g.store.Participations(ctx)
	if err != nil {
		return err
	}
	return g.store.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, h := range g.agents {
			if err := g.enrolOne(ctx, tx, h, known); err != nil {
				return err
			}
		}
		return g.detachGone(ctx, tx, known)
	})
}

// detachGone ends the attachments of agents that had a participation and are not
// hosted any more, or not there.
func (g *Gateway) detachGone(ctx context.Context, tx *store.Tx, known []store.ParticipationRow) error {
	for _, p := range known {
		r := g.dir.byID[p.Recipient]
		if r == nil || !r.attached || g.dir.hosted[p.Recipient] != nil || r.Carrier != p.Carrier {
			continue
		}
		if err := tx.Detach(ctx, r.id); err != nil {
			return err
		}
		row := rowOf(*r)
		row.Attached = false
		g.dir.put(row, nil)
	}
	return nil
}

func (g *Gateway) enrolOne(ctx context.Context, tx *store.Tx, h *hosted, known []store.ParticipationRow) error {
	a := h.agent
	if a.WorkspaceID != "" && a.Channel != "" && a.Peer != "" {
		row, err := tx.EnsureRecipient(ctx, core.Recipient{
			Carrier: h.carrier.name, WorkspaceID: a.WorkspaceID, Channel: a.Channel, Peer: a.Peer,
		})
		if err != nil {
			return err
		}
		h.recipient = row.ID
		g.dir.put(row, h.carrier.scopes)
	}
	i := slices.IndexFunc(known, func(p store.ParticipationRow) bool {
		return p.Carrier == h.carrier.name && p.Agent == a.Name
	})
	switch {
	case i >= 0 && known[i].Recipient == h.recipient && known[i].Resolved.Mode == h.asked.Mode:
		h.participation = known[i]
	case h.asked.Live() && !g.config.Network.Enabled:
		g.log.Warn("the agent takes no part: network.enabled is false, which enrols nobody", "agent", h.fullName())
	default:
		row := g.newParticipation(h)
		if err := tx.AddParticipation(ctx, &row); err != nil {
			return err
		}
		h.participation = row
	}
	if note := h.note(); note != "" {
		g.log.Warn("the agent keeps its participation", "agent", h.fullName(), "why", note)
	}
	g.dir.host(h)
	return nil
}

func (g *Gateway) newParticipation(h *hosted) store.ParticipationRow {
	return store.ParticipationRow{
		Carrier: h.carrier.name, Agent: h.agent.Name, Recipient: h.recipient, Resolved: h.asked, CreatedAt: g.now().Truncate(time.Millisecond),
	}
}

// note says what the configuration asks for that the participation does not have.
func (h *hosted) note() string {
	has, asked := h.participation.Resolved.Bounds, h.asked.Bounds
	if h.participation.ID == 0 || has == nil || asked == nil || *has == *asked {
		return ""
	}
	return "the configuration asks for other bounds; gateway agents renew " + h.agent.Name + " takes them over"
}

// renew gives a live agent a new participation, and with it a new budget. An
// open wake stays on the old one's account.
func (g *Gateway) renew(ctx context.Context, name string) error {
	h, err := g.findAgent(name)
	switch {
	case err != nil:
		return err
	case !h.asked.Live():
		return fmt.Errorf("agent %s is local and has nothing to renew (set its participation.mode to live): %w", name, core.ErrForbidden)
	case !g.config.Network.Enabled:
		return fmt.Errorf("agent %s cannot get a new participation: %w", name, core.ErrNetworkOff)
	}
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		row := g.newParticipation(h)
		if err := t.tx.AddParticipation(ctx, &row); err != nil {
			return nil, err
		}
		return func() { g.dir.setParticipation(h, row) }, nil
	})
}

// findAgent looks an agent up by its name, or by CARRIER.NAME.
func (g *Gateway) findAgent(name string) (*hosted, error) {
	var found *hosted
	for _, h := range g.agents {
		switch {
		case h.fullName() == name:
			return h, nil
		case h.agent.Name != name:
		case found != nil:
			return nil, fmt.Errorf("agent %s is there twice: name it %s or %s: %w", name, found.fullName(), h.fullName(), core.ErrForbidden)
		default:
			found = h
		}
	}
	if found == nil {
		return nil, fmt.Errorf("agent %s: %w", name, core.ErrNotFound)
	}
	return found, nil
}

// mayAttach refuses the peer of an agent that has no live participation, and that
// of a live agent to every other carrier: whoever may speak as the agent may still
// not take its messages away from it.
func (g *Gateway) mayAttach(c *carrier, at core.Attachment) error {
	for _, h := range g.agents {
		a := h.agent
		switch {
		case a.WorkspaceID != at.WorkspaceID || a.Channel != at.Channel || a.Peer != at.Peer:
		case h.carrier == c && !g.dir.participationOf(h).Resolved.Live():
			return fmt.Errorf("agent %s has no live participation: %w", a.Name, core.ErrNetworkOff)
		case h.carrier != c && h.asked.Live():
			return fmt.Errorf("peer %s %s: %w", at.Peer, g.reserved(at.WorkspaceID, at.Peer), core.ErrForbidden)
		}
	}
	return nil
}
