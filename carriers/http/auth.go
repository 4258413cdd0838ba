package http

import (
	"context"
	"maps"
	nethttp "net/http"
	"slices"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// caller is who sent a request, and what it may see and do.
type caller struct {
	// cred is nil on a listener without tokens.
	cred  *credential
	scope core.Scope
	// admin reads every direct room in its scope.
	admin bool
	// operator handles dead letters.
	operator bool
	// tokens are all tokens, to tell whose a peer id is.
	tokens map[string]TokenConfig
}

// authenticate tells who sent the request.
func (s *server) authenticate(r *nethttp.Request) (*caller, error) {
	if len(s.cfg.Tokens) == 0 {
		// Without tokens everything on the listener is a claim. Dead letters
		// still need a caller on this machine, where an insecure listener has others.
		return &caller{operator: loopbackAddress(r.RemoteAddr)}, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil, newProblem(nethttp.StatusUnauthorized, "a bearer token is needed")
	}
	cred := s.keys.find(token)
	if cred == nil {
		return nil, newProblem(nethttp.StatusUnauthorized, "the bearer token is not known")
	}
	return &caller{
		cred:     cred,
		scope:    cred.config.Scope,
		admin:    cred.config.Admin,
		operator: cred.config.Admin,
		tokens:   s.cfg.Tokens,
	}, nil
}

// principal is how the port names the caller; nil without tokens.
func (c *caller) principal() *core.Principal {
	if c.cred == nil {
		return nil
	}
	return &core.Principal{Name: c.cred.name, Scope: c.scope}
}

// revocation ends once the caller's token is revoked.
func (c *caller) revocation() context.Context {
	if c.cred == nil {
		return context.Background()
	}
	return c.cred.revoked
}

// mayUse checks the workspace, the channel and the peer of a request; an empty
// channel or peer is not asked for.
func (c *caller) mayUse(workspace, channel, peer string) error {
	scope := c.scope
	if channel == "" {
		scope.Channels = nil
	}
	if !scope.Allows(workspace, channel, peer) {
		return forbidden("the token's scope does not reach this workspace, channel or peer")
	}
	if c.belongsToAnother(workspace, peer) {
		return forbidden("the peer belongs to another token")
	}
	return nil
}

// seesChannel reports whether something of the channel may be shown.
func (c *caller) seesChannel(workspace, channel string) bool {
	return c.scope.Allows(workspace, channel, "")
}

// mayReadRoom reports whether the caller, reading as peer, may see something
// that only the two parties may; two empty parties mean everybody.
func (c *caller) mayReadRoom(peer string, parties [2]string) bool {
	if c.admin || parties == [2]string{} {
		return true
	}
	return peer != "" && slices.Contains(parties[:], peer)
}

// belongsToAnother reports whether the peer id is bound, in this workspace, to
// other tokens and not to the caller's.
func (c *caller) belongsToAnother(workspace, peer string) bool {
	if c.cred == nil || c.admin || c.cred.config.binds(workspace, peer) {
		return false
	}
	return ownerOf(c.tokens, workspace, peer) != ""
}

// ownerOf is the first token to which the peer id is bound in this workspace,
// or "".
func ownerOf(tokens map[string]TokenConfig, workspace, peer string) string {
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		if tokens[name].binds(workspace, peer) {
			return name
		}
	}
	return ""
}

// binds reports whether the token names the peer id itself, for this workspace.
func (t TokenConfig) binds(workspace, peer string) bool {
	return core.Scope{Workspaces: t.Workspaces}.Allows(workspace, "", "") && slices.Contains(exactPeers(t.Scope), peer)
}

// exactPeers are the peers of a scope that are named without a pattern.
func exactPeers(scope core.Scope) []string {
	var out []string
	for _, peer := range scope.Peers {
		if !strings.Contains(peer, "*") {
			out = append(out, peer)
		}
	}
	return out
}
