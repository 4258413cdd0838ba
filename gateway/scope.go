package gateway

import (
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
