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
	Why     string       `json:"why,omitempty"`
}

// getHealth says that the process answers.
func (s *server) getHealth(w nethttp.ResponseWriter, _ *request) error {
	return writeJSON(w, nethttp.StatusOK, map[string]string{"status": "ok"})
}

// getReady says whether every carrier is ready, and why not. Anybody may ask.
func (s *server) getReady(w nethttp.ResponseWriter, _ *request) error {
	states, ready := []carrierState{}, true
	for _, c := range s.backend.Fleet.Carriers() {
		states = append(states, carrierState{Name: c.Name, Type: c.Type, State: c.State, Trouble: c.Trouble, Why: c.Why})
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
