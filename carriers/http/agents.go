package http

import (
	"errors"
	nethttp "net/http"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// getAgents lists the agents that the gateway hosts.
func (s *server) getAgents(w nethttp.ResponseWriter, r *request) error {
	agents, err := s.reachableAgents(r)
	if err != nil {
		return err
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"agents": agents})
}

// postRenew gives an agent a new participation, and with it a new budget.
func (s *server) postRenew(w nethttp.ResponseWriter, r *request) error {
	agents, err := s.reachableAgents(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	for _, a := range agents {
		if a.Name != name && a.Carrier+"."+a.Name != name {
			continue
		}
		ctx, cancel := s.reader(r)
		defer cancel()
		switch err := s.backend.Agents.RenewAgent(ctx, name); {
		case errors.Is(err, core.ErrForbidden):
			return forbidden(strings.TrimSuffix(err.Error(), ": "+core.ErrForbidden.Error()))
		case err != nil:
			return err
		}
		w.WriteHeader(nethttp.StatusNoContent)
		return nil
	}
	return newProblem(nethttp.StatusNotFound, "no agent has that name here")
}

// reachableAgents lists the agents of the caller's workspaces and channels, for
// operators alone.
func (s *server) reachableAgents(r *request) ([]core.AgentView, error) {
	if err := r.mustOperate("agents"); err != nil {
		return nil, err
	}
	if s.backend.Agents == nil {
		return []core.AgentView{}, nil
	}
	ctx, cancel := s.reader(r)
	defer cancel()
	all, err := s.backend.Agents.Agents(ctx)
	if err != nil {
		return nil, err
	}
	visible := make([]core.AgentView, 0, len(all))
	for _, a := range all {
		p, scope := a.ResolvedNetworkParticipation, r.caller.scope
		if (scope.Workspaces != nil || scope.Channels != nil) &&
			(p == nil || p.WorkspaceID == "" || !r.caller.seesChannel(p.WorkspaceID, p.ChannelID)) {
			continue
		}
		a.Wakes = r.caller.wakes("", a.Wakes, "")
		visible = append(visible, a)
	}
	return visible, nil
}
