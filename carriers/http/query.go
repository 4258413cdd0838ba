package http

import (
	"fmt"
	"maps"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	maxWait      = time.Minute
	// pageBudget is how many bytes of envelopes one answer holds before it ends
	// early, with the position to go on from.
	pageBudget = 16 << 20
)

// checked refuses a query that could be read in two ways, or that asks for what
// the call does not know: neither is what the caller meant.
func checked(params []string, h handlerFunc) handlerFunc {
	return func(w nethttp.ResponseWriter, r *request) error {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return badRequest("the query string cannot be read")
		}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			switch {
			case !slices.Contains(params, name):
				return badRequest(fmt.Sprintf("the call knows no parameter %.64q", name))
			case len(query[name]) > 1:
				return badRequest(fmt.Sprintf("the parameter %s is there twice", name))
			}
		}
		r.query = query
		return h(w, r)
	}
}

// workspace is the request's workspace, which the caller may use.
func (r *request) workspace() (string, error) {
	ws := r.PathValue("ws")
	if !core.ValidWorkspaceID(ws) {
		return "", badRequest("the workspace id is not " + core.WorkspaceGrammar)
	}
	return ws, r.caller.mayUse(ws, "")
}

// channel is the request's workspace and channel, which the caller may use.
func (r *request) channel() (workspace, channel string, err error) {
	workspace, channel = r.PathValue("ws"), r.PathValue("ch")
	if !core.ValidWorkspaceID(workspace) {
		return "", "", badRequest("the workspace id is not " + core.WorkspaceGrammar)
	}
	if !core.ValidChannel(channel) {
		return "", "", badRequest("the channel is not " + core.ChannelGrammar)
	}
	return workspace, channel, r.caller.mayUse(workspace, channel)
}

// attachment is the peer that the request's path names.
func (r *request) attachment() (core.Attachment, error) {
	workspace, channel, err := r.channel()
	if err != nil {
		return core.Attachment{}, err
	}
	peer := r.PathValue("peer")
	if !core.ValidPeerID(peer) {
		return core.Attachment{}, badRequest("the peer id is not " + core.PeerGrammar)
	}
	at := core.Attachment{WorkspaceID: workspace, Channel: channel, Peer: peer}
	if p := r.caller.principal(); p != nil {
		at.Principal = p.Name
	}
	return at, r.caller.mayActAs(workspace, channel, peer)
}

// readingPeer is the peer as which the caller reads; empty is nobody in
// particular.
func (r *request) readingPeer(workspace, channel string) (string, error) {
	peer := r.query.Get("peer")
	if peer == "" {
		return "", nil
	}
	if !core.ValidPeerID(peer) {
		return "", badRequest("peer is not " + core.PeerGrammar)
	}
	return peer, r.caller.mayReadAs(workspace, channel, peer)
}

// limit is the most entries that the caller wants.
func (r *request) limit() (int, error) {
	raw := r.query.Get("limit")
	if raw == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 {
		return 0, badRequest("limit is not a positive number")
	}
	return min(n, maxLimit), nil
}

// after is the position behind which to start, and whether there is one.
func (r *request) after() (position int64, set bool, err error) {
	raw := r.query.Get("after")
	if raw == "" {
		return 0, false, nil
	}
	position, err = strconv.ParseInt(raw, 10, 64)
	if err != nil || position < 0 {
		return 0, false, badRequest("after is not a position")
	}
	return position, true, nil
}

// wait is how long a poll may take: a duration such as 30s, or seconds.
func (r *request) wait() (time.Duration, error) {
	raw := r.query.Get("wait")
	if raw == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(raw)
	if seconds, numErr := strconv.ParseUint(raw, 10, 31); numErr == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, badRequest("wait is not a duration")
	}
	return min(d, maxWait), nil
}

// optional is a query parameter that must pass the check when it is there; what
// says in a few words what passes.
func (r *request) optional(name string, valid func(string) bool, what string) (string, error) {
	value := r.query.Get(name)
	if value != "" && !valid(value) {
		return "", badRequest(name + " is not " + what)
	}
	return value, nil
}
