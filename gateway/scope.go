package gateway

import (
	"fmt"
	"maps"
	"slices"

	"github.com/compozy-gateway/gateway/core"
)

// pins knows which peer ids are reserved, and for whom.
type pins struct {
	// own is the gateway's own peer id, which no carrier may use.
	own string
	// carriers are those that reserve ids; what they reserve may change while
	// they run (tokens come and go).
	carriers map[string]core.Pinner
}

// allow reports whether the principal of a carrier may use the peer id.
func (p *pins) allow(workspace, peer, carrier, principal string) bool {
	if peer == p.own {
		return false
	}
	reserved := false
	for name, pinner := range p.carriers {
		for _, pin := range pinner.Pins() {
			if pin.Peer != peer || !(core.Scope{Workspaces: pin.Workspaces}).Allows(workspace, "", "") {
				continue
			}
			if name == carrier && pin.Principal == principal {
				return true
			}
			reserved = true
		}
	}
	return !reserved
}

// reserved says for whom a peer id is kept that the pins do not allow to whoever
// asked.
func (g *Gateway) reserved(workspace, peer string) string {
	if peer == g.pins.own {
		return "is the gateway's own peer id"
	}
	for _, h := range g.agents {
		if h.agent.WorkspaceID == workspace && h.agent.Peer == peer && h.asked.Live() {
			return fmt.Sprintf("is the peer id of the hosted agent %s of carrier %s, and of nobody else", h.agent.Name, h.carrier.name)
		}
	}
	return "is reserved for another sender"
}

// ValidateSeats reports each agent that has the peer id of another carrier's
// agent in the same workspace: neither could be told from the other. The agents
// are given by carrier; what is there twice in one carrier, that reports itself.
//
// That a token names the peer id of an agent is no such conflict: it is how
// somebody is let read as the agent.
func ValidateSeats(agents map[string][]core.HostedAgent) []error {
	type seat struct{ workspace, peer string }
	type owner struct{ carrier, key string }
	var problems []error
	taken := map[seat]owner{}
	for _, carrier := range slices.Sorted(maps.Keys(agents)) {
		for _, a := range agents[carrier] {
			if a.Peer == "" || a.WorkspaceID == "" {
				continue
			}
			at := seat{a.WorkspaceID, a.Peer}
			key := fmt.Sprintf("carriers.%s.agents.%s.peer_id", carrier, a.Name)
			switch other, there := taken[at]; {
			case !there:
				taken[at] = owner{carrier, key}
			case other.carrier != carrier:
				problems = append(problems, fmt.Errorf("%s: %s is the peer id of %s too, in workspace %s: give one of them another",
					key, a.Peer, other.key, a.WorkspaceID))
			}
		}
	}
	return problems
}
