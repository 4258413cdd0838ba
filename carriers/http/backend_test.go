package http

import (
	"context"
	"slices"

	"github.com/compozy-gateway/gateway/core"
)

// The reading side of memory.

func (m *memory) History(_ context.Context, q core.HistoryQuery) ([]core.Message, *int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readErr != nil {
		return nil, nil, m.readErr
	}
	var page []core.Message
	for i := range m.messages {
		msg := m.messages[i]
		if msg.WorkspaceID != q.WorkspaceID || msg.Channel != q.Channel || msg.Seq <= q.After {
			continue
		}
		if !q.Admin && !msg.MayRead(q.Peer) {
			continue
		}
		if len(page) == q.Limit {
			next := page[len(page)-1].Seq
			return page, &next, nil
		}
		page = append(page, msg)
	}
	return page, nil, nil
}

func (m *memory) MessagesAfter(_ context.Context, workspace, channel string, after int64, limit int) ([]core.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.readErr != nil {
		return nil, m.readErr
	}
	from, _ := slices.BinarySearchFunc(m.messages, after+1, func(msg core.Message, seq int64) int { return int(msg.Seq - seq) })
	var page []core.Message
	for _, msg := range m.messages[from:] {
		if msg.WorkspaceID == workspace && msg.Channel == channel && msg.Seq >= m.oldest && len(page) < limit {
			page = append(page, msg)
		}
	}
	return page, nil
}

func (m *memory) Inspect(_ context.Context, _, id string) (*core.Inspection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.inspections[id]; found != nil {
		return found, nil
	}
	return nil, core.ErrNotFound
}

func (m *memory) Work(_ context.Context, _, id string) (*core.WorkView, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.works[id]; found != nil {
		return found, nil
	}
	return nil, core.ErrNotFound
}

func (m *memory) Threads(_ context.Context, _ string, limit int, visible func(string) bool) ([]core.ThreadView, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := slices.DeleteFunc(slices.Clone(m.threads), func(t core.ThreadView) bool { return !visible(t.Channel) })
	return seen[:min(limit, len(seen))], m.readErr
}

func (m *memory) Peers(context.Context, string) ([]core.PeerView, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.peers), m.readErr
}

func (m *memory) SeqRange(context.Context) (oldest, newest int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.messages) == 0 {
		return 1, 0, nil
	}
	return max(m.oldest, m.messages[0].Seq), m.messages[len(m.messages)-1].Seq, nil
}

func (m *memory) Committed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.committed
}

func (m *memory) Inbox(_ context.Context, at core.Attachment, after int64, limit int) ([]core.InboxEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := seat{at.WorkspaceID, at.Channel, at.Peer}
	var page []core.InboxEntry
	for _, e := range m.inboxes[place] {
		if e.Position > max(after, m.acked[place]) && len(page) < limit {
			page = append(page, e)
		}
	}
	return page, nil
}

func (m *memory) LastPosition(context.Context) (last int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, entries := range m.inboxes {
		for _, e := range entries {
			last = max(last, e.Position)
		}
	}
	return last, m.readErr
}

func (m *memory) Served(_ context.Context, at core.Attachment, position int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := seat{at.WorkspaceID, at.Channel, at.Peer}
	m.served[place] = max(m.served[place], position)
	return nil
}

func (m *memory) AckThrough(_ context.Context, at core.Attachment, position int64, ack core.Ack) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	place := seat{at.WorkspaceID, at.Channel, at.Peer}
	if !m.attached[at] || ack.Kind != core.AckHTTPCursor || ack.At.IsZero() {
		return 0, core.ErrNotFound
	}
	position = min(position, m.served[place])
	n := 0
	for _, e := range m.inboxes[place] {
		if e.Position > m.acked[place] && e.Position <= position {
			n++
		}
	}
	m.acked[place] = max(m.acked[place], position)
	return n, nil
}

func (m *memory) DeadLetters(_ context.Context, after string, limit int) ([]core.DeadLetter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := 0
	if after != "" {
		from = 1 + slices.IndexFunc(m.letters, func(l core.DeadLetter) bool { return l.Delivery == after })
	}
	return slices.Clone(m.letters[from:min(from+limit, len(m.letters))]), nil
}

func (m *memory) Replay(_ context.Context, id core.DeliveryID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.letters, func(l core.DeadLetter) bool { return l.Delivery == id.String() })
	switch {
	case i < 0:
		return core.ErrNotFound
	case m.letters[i].Reason == "expired":
		return core.ErrExpired
	}
	m.replayed = append(m.replayed, id)
	return nil
}

func (m *memory) Discard(_ context.Context, id core.DeliveryID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.letters, func(l core.DeadLetter) bool { return l.Delivery == id.String() }) {
		return core.ErrNotFound
	}
	m.discarded = append(m.discarded, id)
	return nil
}

func (m *memory) IsAgent(_, peer string) bool {
	return slices.ContainsFunc(m.pins, func(p core.Pin) bool { return p.Peer == peer && p.Principal == foreignPin })
}

func (m *memory) MaySpeakFor(workspace, peer, principal string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := true
	for _, pin := range m.pins {
		if pin.Peer != peer || !(core.Scope{Workspaces: pin.Workspaces}).Allows(workspace, "", "") {
			continue
		}
		if pin.Principal == principal {
			return true
		}
		free = false
	}
	return free
}

func (m *memory) Carriers() []core.CarrierView {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.carriers)
}
