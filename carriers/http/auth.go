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
	pins     Pins
}

// authenticate tells who sent the request.
func (s *server) authenticate(r *nethttp.Request) (*caller, error) {
	if len(s.cfg.Tokens) == 0 {
		// Without tokens everything on the listener is a claim. Dead letters
		// still need a caller on this machine, where an insecure listener has others.
		return &caller{operator: loopbackAddress(r.RemoteAddr), pins: s.backend.Pins}, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(r.Header.Values("Authorization")) > 1 {
		return nil, newProblem(nethttp.StatusUnauthorized, "one bearer token is needed")
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
		pins:     s.backend.Pins,
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

// mayUse checks the workspace and the channel of a request; an empty channel is
// not asked for.
func (c *caller) mayUse(workspace, channel string) error {
	return c.inScope(workspace, channel, "")
}

// mayReadAs checks the peer as which a request reads. Without tokens it is a
// claim, and an admin may see all that the peer may.
func (c *caller) mayReadAs(workspace, channel, peer string) error {
	if c.cred == nil || c.admin {
		return c.inScope(workspace, channel, peer)
	}
	return c.mayActAs(workspace, channel, peer)
}

// mayActAs checks the peer for which a request acts. Whoever reserved its id, on
// this carrier or on another, it is theirs alone.
func (c *caller) mayActAs(workspace, channel, peer string) error {
	if err := c.inScope(workspace, channel, peer); err != nil {
		return err
	}
	name := ""
	if c.cred != nil {
		name = c.cred.name
	}
	if !c.pins.MaySpeakFor(workspace, peer, name) {
		if c.pins.IsAgent(workspace, peer) {
			return forbidden("the peer id is that of an agent which the gateway hosts: choose another")
		}
		return forbidden("the peer is reserved for another sender, or out of scope")
	}
	return nil
}

func (c *caller) inScope(workspace, channel, peer string) error {
	scope := c.scope
	if channel == "" {
		scope.Channels = nil
	}
	if !scope.Allows(workspace, channel, peer) {
		return forbidden("the token's scope does not reach this workspace, channel or peer")
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
