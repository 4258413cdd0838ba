package http

import (
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one call of the interface.
type route struct {
	method string
	// path is its segments; a segment {name} takes any value but the empty one.
	path []string
	// open calls need no caller.
	open   bool
	handle handlerFunc
}

// routes are the calls of docs/api.md.
func (s *server) routes() []route {
	const (
		workspace = "/v0/workspaces/{ws}"
		channel   = workspace + "/channels/{ch}"
		peer      = channel + "/peers/{peer}"
	)
	call := func(method, path string, h handlerFunc, params ...string) route {
		return route{method: method, path: segments(path), handle: checked(params, h)}
	}
	// Probes and scrapers may send any query.
	probe := func(path string, open bool, h handlerFunc) route {
		return route{method: nethttp.MethodGet, path: segments(path), open: open, handle: h}
	}
	return []route{
		call("POST", "/v0/envelopes", s.postEnvelopes),
		call("GET", channel+"/messages", s.getHistory, "after", "limit", "kind", "thread_id", "work_id", "peer"),
		call("GET", channel+"/stream", s.getStream, "after", "peer"),
		call("GET", workspace+"/messages/{id}", s.getMessage, "peer"),
		call("GET", workspace+"/peers", s.getPeers),
		call("GET", workspace+"/threads", s.getThreads, "channel", "limit"),
		call("GET", workspace+"/work/{work}", s.getWork, "peer"),
		call("PUT", peer, s.putPeer),
		call("DELETE", peer, s.deletePeer),
		call("GET", peer+"/inbox", s.getInbox, "after", "wait", "limit"),
		call("POST", peer+"/inbox/ack", s.postInboxAck),
		call("GET", "/v0/deadletters", s.getDeadLetters, "after", "limit"),
		call("POST", "/v0/deadletters/{delivery}/replay", s.postReplay),
		call("DELETE", "/v0/deadletters/{delivery}", s.deleteDeadLetter),
		call("GET", "/v0/rejections", s.getRejections, "after", "limit"),
		call("GET", "/v0/carriers", s.getCarriers),
		call("GET", "/v0/agents", s.getAgents),
		call("POST", "/v0/agents/{name}/renew", s.postRenew),
		probe("/healthz", true, s.getHealth),
		probe("/readyz", true, s.getReady),
		// Where only this machine can listen, a scraper needs no token.
		probe("/metrics", s.cfg.loopback(), s.getMetrics),
	}
}

// handler finds the route of each request. It does by itself what a ServeMux
// does, because that one takes the segment %2F, which is a workspace, for the end
// of a path, and answers with redirects and text.
func (s *server) handler() nethttp.Handler {
	routes := s.routes()
	handlers := make([]nethttp.Handler, len(routes))
	for i, rt := range routes {
		handlers[i] = s.wrap(!rt.open, rt.handle)
	}
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		i, values, allow := find(routes, r)
		if i < 0 {
			s.wrap(false, func(nethttp.ResponseWriter, *request) error { return unrouted(allow) }).ServeHTTP(w, r)
			return
		}
		for name, value := range values {
			r.SetPathValue(name, value)
		}
		handlers[i].ServeHTTP(w, r)
	})
}

// find gives the place of the request's route and the values of its path, or -1
// and the methods that the path knows.
func find(routes []route, r *nethttp.Request) (place int, values map[string]string, allow []string) {
	asked := segments(r.URL.EscapedPath())
	for i, rt := range routes {
		values, ok := match(rt.path, asked)
		switch {
		case !ok:
		case rt.method == r.Method || (rt.method == nethttp.MethodGet && r.Method == nethttp.MethodHead):
			return i, values, nil
		case rt.method == nethttp.MethodGet:
			allow = append(allow, nethttp.MethodGet, nethttp.MethodHead)
		default:
			allow = append(allow, rt.method)
		}
	}
	return -1, nil, allow
}

// segments cuts a path, as it is escaped, at its slashes. What does not begin
// with one has none.
func segments(path string) []string {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil
	}
	return strings.Split(rest, "/")
}

// match compares a path with a route's. Every segment is unescaped by itself, so
// that a value may hold a slash or a dot.
func match(pattern, asked []string) (values map[string]string, ok bool) {
	if len(pattern) != len(asked) {
		return nil, false
	}
	values = map[string]string{}
	for i, want := range pattern {
		got, err := url.PathUnescape(asked[i])
		name, isValue := strings.CutPrefix(want, "{")
		switch {
		case err != nil || got == "", !isValue && got != want:
			return nil, false
		case isValue:
			values[strings.TrimSuffix(name, "}")] = got
		}
	}
	return values, true
}

// unrouted says what is wrong with a request that no route takes.
func unrouted(allow []string) *problem {
	if len(allow) > 0 {
		slices.Sort(allow)
		return methodNotAllowed(strings.Join(allow, ", "))
	}
	return newProblem(nethttp.StatusNotFound, "there is no such call")
}

func methodNotAllowed(allow string) *problem {
	p := newProblem(nethttp.StatusMethodNotAllowed, "the call knows the methods "+allow)
	p.allow = allow
	return p
}
