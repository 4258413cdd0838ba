package gateway

import (
	"slices"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// target is one deliver decision.
type target struct {
	recipient *recipient
	// absent names the peer when it is located nowhere and has no row yet.
	absent core.Recipient
	// to is the peer whose address it goes to, empty for broadcast.
	to string
}

// routes are the decisions for one message.
type routes struct {
	targets []target
	ignored []store.Ignored
	// attached are the attached peers of the channel, whatever was decided.
	attached []routedPeer
}

// routedPeer is an attached peer with its decision; no reason means that it
// receives the message.
type routedPeer struct {
	recipient *recipient
	why       core.Ignore
}

func (r *routes) deliver(to *recipient, peer string) {
	r.targets = append(r.targets, target{recipient: to, to: peer})
}

func (r *routes) ignore(who *recipient, why core.Ignore) {
	r.ignored = append(r.ignored, store.Ignored{Recipient: who.id, Reason: why})
}

// route decides for every known recipient whether it gets the message (section
// 5: observing is not receiving).
func (d *decider) route(m *message) routes {
	addressee := m.env.To
	if m.env.Surface == core.SurfaceDirect {
		addressee = m.other
	}
	var r routes
	located := d.locate(m, addressee)
	for _, link := range d.dir.links {
		if why, deliver := d.routeLink(m, link, addressee, located); deliver {
			r.deliver(link, addressee)
		} else if why != "" {
			r.ignore(link, why)
		}
	}
	for _, peer := range d.dir.attachedIn(m.env.WorkspaceID, m.env.Channel) {
		why := d.routePeer(m, peer, addressee)
		r.attached = append(r.attached, routedPeer{peer, why})
		if why == "" {
			r.deliver(peer, peer.Peer)
		} else {
			r.ignore(peer, why)
		}
	}
	if m.env.Surface == core.SurfaceDirect && located.nowhere {
		r.targets = append(r.targets, target{
			absent: core.Recipient{WorkspaceID: m.env.WorkspaceID, Channel: m.env.Channel, Peer: addressee},
			to:     addressee,
		})
	}
	return r
}

// whereabouts says where an addressee is.
type whereabouts struct {
	attached bool
	link     int64
	nowhere  bool
}

func (d *decider) locate(m *message, addressee string) whereabouts {
	if addressee == "" {
		return whereabouts{}
	}
	if d.dir.attachedPeer(m.env.WorkspaceID, m.env.Channel, addressee) != nil {
		return whereabouts{attached: true}
	}
	p := d.state.Peers[store.PeerKey{WorkspaceID: m.env.WorkspaceID, Peer: addressee}]
	if p == nil || p.Link == 0 || !d.dir.isLink(p.Link) {
		return whereabouts{nowhere: true}
	}
	return whereabouts{link: p.Link}
}

// routeLink decides for a link. No reason and no delivery means that the
// decision stands with the peer itself, which is located nowhere yet.
func (d *decider) routeLink(m *message, link *recipient, addressee string, at whereabouts) (core.Ignore, bool) {
	direct := m.env.Surface == core.SurfaceDirect
	switch {
	case m.arrival == core.ArrivalNative && link.id == m.origin.row:
		return core.IgnoreOrigin, false
	case !link.allows(m.env.WorkspaceID, m.env.Channel, addressee):
		return core.IgnoreOutOfScope, false
	case link.webhook():
		if direct {
			return core.IgnoreNotParticipant, false
		}
		return "", true
	case addressee == "":
		return "", true
	case at.nowhere:
		return "", !direct
	case at.link == link.id:
		return "", true
	default:
		return core.IgnoreLocatedElsewhere, false
	}
}

// routePeer decides for an attached peer of the channel; no reason means that
// it receives the message.
func (d *decider) routePeer(m *message, r *recipient, addressee string) core.Ignore {
	env := m.env
	switch {
	case r.Peer == env.From:
		return core.IgnoreOrigin
	case !r.allows(env.WorkspaceID, env.Channel, r.Peer):
		return core.IgnoreOutOfScope
	case env.Surface == core.SurfaceDirect:
		if r.Peer != addressee {
			return core.IgnoreNotParticipant
		}
		return ""
	case r.Peer == addressee || slices.Contains(env.Mentions, r.Peer):
		return ""
	case addressee != "":
		return core.IgnoreNotAddressed
	case env.Surface == "" || !d.hasParticipants(env):
		return ""
	case d.state.Members[store.Member{Container: containerKeyOf(env), Peer: r.Peer}]:
		return ""
	default:
		return core.IgnoreNotParticipant
	}
}

// hasParticipants reports whether the thread had participants before this
// message, its sender left out.
func (d *decider) hasParticipants(env *core.Envelope) bool {
	c := d.state.Containers[containerKeyOf(env)]
	if c == nil {
		return false
	}
	others := c.Participants
	if d.state.Members[store.Member{Container: c.Key, Peer: env.From}] {
		others--
	}
	return others > 0
}
