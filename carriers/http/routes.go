package http

import (
	nethttp "net/http"
	"path"
)

// handler is the interface of section "HTTP" of docs/api.md.
func (s *server) handler() nethttp.Handler {
	const (
		workspace = "/v0/workspaces/{ws}"
		channel   = workspace + "/channels/{ch}"
		peer      = channel + "/peers/{peer}"
	)
	mux := nethttp.NewServeMux()
	for pattern, h := range map[string]handlerFunc{
		"POST /v0/envelopes":                     s.postEnvelopes,
		"GET " + channel + "/messages":           s.getHistory,
		"GET " + channel + "/stream":             s.getStream,
		"GET " + workspace + "/messages/{id}":    s.getMessage,
		"GET " + workspace + "/peers":            s.getPeers,
		"GET " + workspace + "/threads":          s.getThreads,
		"GET " + workspace + "/work/{work}":      s.getWork,
		"PUT " + peer:                            s.putPeer,
		"DELETE " + peer:                         s.deletePeer,
		"GET " + peer + "/inbox":                 s.getInbox,
		"POST " + peer + "/inbox/ack":            s.postInboxAck,
		"GET /v0/deadletters":                    s.getDeadLetters,
		"POST /v0/deadletters/{delivery}/replay": s.postReplay,
		"DELETE /v0/deadletters/{delivery}":      s.deleteDeadLetter,
		"GET /v0/carriers":                       s.getCarriers,
		"GET /v0/agents":                         s.getAgents,
		"POST /v0/agents/{name}/renew":           s.postRenew,
	} {
		mux.Handle(pattern, s.wrap(true, h))
	}
	mux.Handle("GET /healthz", s.wrap(false, s.getHealth))
	mux.Handle("GET /readyz", s.wrap(false, s.getReady))
	// Where only this machine can listen, a scraper needs no token.
	mux.Handle("GET /metrics", s.wrap(!s.cfg.loopback(), s.getMetrics))
	return s.problems(mux)
}

// problems answers what no route takes with a problem, where net/http would
// answer with text, or with a redirect to a path that it finds nicer.
func (s *server) problems(mux *nethttp.ServeMux) nethttp.Handler {
	unrouted := s.wrap(false, func(_ nethttp.ResponseWriter, r *request) error {
		return unroutedProblem(mux, r.Request)
	})
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if _, pattern := mux.Handler(r); pattern == "" || !isClean(r.URL.EscapedPath()) {
			unrouted.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isClean reports whether the path is one that net/http takes as it is.
func isClean(escaped string) bool {
	clean := path.Clean(escaped)
	return clean == escaped || clean+"/" == escaped
}

func unroutedProblem(mux *nethttp.ServeMux, r *nethttp.Request) *problem {
	if isClean(r.URL.EscapedPath()) {
		h, _ := mux.Handler(r)
		var w headerOnly
		h.ServeHTTP(&w, r)
		if w.status == nethttp.StatusMethodNotAllowed {
			return methodNotAllowed(w.Header().Get("Allow"))
		}
	}
	return newProblem(nethttp.StatusNotFound, "there is no such call")
}

func methodNotAllowed(allow string) *problem {
	p := newProblem(nethttp.StatusMethodNotAllowed, "the call knows the methods "+allow)
	p.allow = allow
	return p
}

// headerOnly learns what net/http would answer, without answering.
type headerOnly struct {
	header nethttp.Header
	status int
}

func (w *headerOnly) Header() nethttp.Header {
	if w.header == nil {
		w.header = nethttp.Header{}
	}
	return w.header
}

func (w *headerOnly) WriteHeader(status int)      { w.status = status }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
