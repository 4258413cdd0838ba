package gateway

import "github.com/compozy-gateway/gateway/store"

// host takes in an agent with its participation. All agents are taken in before
// the committer runs.
func (d *directory) host(h *hosted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.recipient == 0 {
		return
	}
	if h.live() {
		d.hosted[h.recipient] = h
		return
	}
	key := channelKey{h.agent.WorkspaceID, h.agent.Channel}
	d.dormant[key] = append(d.dormant[key], h)
}

// dormantIn lists the agents that are configured for a channel and take no part
// in it. Nobody changes the slice.
func (d *directory) dormantIn(workspace, channel string) []*hosted {
	return d.dormant[channelKey{workspace, channel}]
}

// hostedAgent is the live agent of the recipient, nil if it is none.
func (d *directory) hostedAgent(recipient int64) *hosted {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hosted[recipient]
}

func (d *directory) setParticipation(h *hosted, row store.ParticipationRow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.participation = row
}

func (d *directory) participationOf(h *hosted) store.ParticipationRow {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return h.participation
}
