package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// Threads lists the public threads of a workspace in those channels that are
// visible, the one with the newest message first, at most limit.
func (s *Store) Threads(ctx context.Context, workspace string, limit int, visible func(channel string) bool) ([]core.ThreadView, error) {
	list := []core.ThreadView{}
	err := scanUntil(ctx, s.readers, func(rows *sql.Rows) (bool, error) {
		v := core.ThreadView{WorkspaceID: workspace}
		var at int64
		if err := rows.Scan(&v.Channel, &v.ThreadID, &v.Participants, &v.Messages, &v.LastSeq, &at); err != nil {
			return false, err
		}
		v.LastAt = instant(at)
		if visible(v.Channel) {
			list = append(list, v)
		}
		return len(list) < limit, nil
	}, "SELECT ch.name, c.name, c.participants, c.messages, c.last_seq, c.last_at FROM workspaces ws"+
		" JOIN channels ch ON ch.workspace_id = ws.id JOIN containers c ON c.channel_id = ch.id"+
		" WHERE ws.name = ? AND c.surface = 1 AND c.known = 1 ORDER BY c.last_seq DESC", workspace)
	if err != nil {
		return nil, fmt.Errorf("read threads: %w", err)
	}
	return list, nil
}

const (
	// maxPeers and maxCardBytes bound one answer of Peers: anybody can greet, with
	// a card as large as an envelope.
	maxPeers     = 10_000
	maxCardBytes = 32 << 20
)

// Peers lists the peers of a workspace, by id: those that are attached here,
// and the 10000 that were heard last. Cards beyond 32 MiB in all are left out,
// those of the peers that were heard longest ago first.
func (s *Store) Peers(ctx context.Context, workspace string) ([]core.PeerView, error) {
	found := map[string]*core.PeerView{}
	peer := func(id string) *core.PeerView {
		v := found[id]
		if v == nil {
			v = &core.PeerView{WorkspaceID: workspace, Peer: id, Attached: []string{}}
			found[id] = v
		}
		return v
	}
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var id, channel string
		if err := rows.Scan(&id, &channel); err != nil {
			return err
		}
		v := peer(id)
		v.Attached = append(v.Attached, channel)
		return nil
	}, "SELECT peer, channel FROM recipients WHERE workspace = ? AND peer <> '' AND attached = 1 ORDER BY peer, channel", workspace)
	if err != nil {
		return nil, fmt.Errorf("read attached peers: %w", err)
	}
	room := maxCardBytes
	err = scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var id, carrier, channel, cardCarrier string
		var heard, cardAt int64
		var card sql.RawBytes
		if err := rows.Scan(&id, &carrier, &channel, &heard, &cardCarrier, &cardAt, &card); err != nil {
			return err
		}
		v := peer(id)
		v.Carrier, v.Channel = carrier, channel
		if heard != 0 {
			at := instant(heard)
			v.LastHeard = &at
		}
		if room -= len(card); card != nil && room >= 0 {
			at := instant(cardAt)
			v.Card, v.CardCarrier, v.CardAt = bytes.Clone(card), cardCarrier, &at
		}
		return nil
	}, "SELECT p.peer, COALESCE(r.carrier, ''), COALESCE(ch.name, ''), p.last_heard, COALESCE(cr.carrier, ''), COALESCE(p.card_at, 0), pc.card"+
		" FROM workspaces ws JOIN peers p ON p.workspace_id = ws.id LEFT JOIN recipients r ON r.id = p.link"+
		" LEFT JOIN channels ch ON ch.id = p.channel_id LEFT JOIN recipients cr ON cr.id = p.card_link"+
		" LEFT JOIN peer_cards pc ON pc.workspace_id = p.workspace_id AND pc.peer = p.peer WHERE ws.name = ? ORDER BY p.last_heard DESC LIMIT ?", workspace, maxPeers)
	if err != nil {
		return nil, fmt.Errorf("read peers: %w", err)
	}
	list := make([]core.PeerView, 0, len(found))
	for _, v := range found {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b core.PeerView) int { return strings.Compare(a.Peer, b.Peer) })
	return list, nil
}
