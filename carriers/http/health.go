package http

import (
	nethttp "net/http"

	"github.com/compozy-gateway/gateway/core"
)

// carrierState is a carrier's part of the answer about readiness.
type carrierState struct {
	Name    string       `json:"name"`
	Type    string       `json:"type"`
	State   core.State   `json:"state"`
	Trouble core.Trouble `json:"trouble,omitempty"`
	// Why is told to who operates a gateway without tokens.
	Why string `json:"why,omitempty"`
}

// getHealth says that the process answers.
func (s *server) getHealth(w nethttp.ResponseWriter, _ *request) error {
	return writeJSON(w, nethttp.StatusOK, map[string]string{"status": "ok"})
}

// getReady says whether every carrier is ready, and what kind of thing is
// missing where not. Nobody needs a token for it, so nobody is taken for an admin:
// where there are tokens, what is missing is told by getCarriers alone.
func (s *server) getReady(w nethttp.ResponseWriter, r *request) error {
	open := len(s.cfg.Tokens) == 0 && loopbackAddress(r.RemoteAddr)
	states, ready := []carrierState{}, true
	for _, c := range s.backend.Fleet.Carriers() {
		state := carrierState{Name: c.Name, Type: c.Type, State: c.State, Trouble: c.Trouble}
		if open {
			state.Why = c.Why
		}
		states = append(states, state)
		ready = ready && c.State == core.StateReady
	}
	if !ready {
		p := newProblem(nethttp.StatusServiceUnavailable, "not every carrier is ready")
		p.Carriers = states
		return p
	}
	return writeJSON(w, nethttp.StatusOK, map[string]any{"status": "ready", "carriers": states})
}

// getMetrics gives the metrics of the whole gateway.
func (s *server) getMetrics(w nethttp.ResponseWriter, r *request) error {
	if s.backend.Metrics == nil {
		return newProblem(nethttp.StatusNotFound, "there are no metrics")
	}
	s.backend.Metrics.ServeHTTP(w, r.Request)
	return nil
}
