package store

import (
	"context"
	"database/sql"
)

// loadPeers reads where peers were last heard. The cards stay where they are.
func (tx *Tx) loadPeers(ctx context.Context, needs Needs, s *State) error {
	names := map[int64]string{}
	want := newWants[PeerKey](len(needs.Peers), 2)
	for _, k := range needs.Peers {
		if !want.first(k) {
			continue
		}
		ws, err := tx.workspaceID(ctx, k.WorkspaceID, false)
		if err != nil {
			return err
		}
		if ws != 0 {
			names[ws] = k.WorkspaceID
			want.args = append(want.args, ws, k.Peer)
		}
	}
	return tx.query(ctx, bulk{
		head: "SELECT p.workspace_id, p.peer, p.link, COALESCE(ch.name, ''), p.last_heard, COALESCE(p.card_link, 0), COALESCE(p.card_at, 0) " +
			"FROM peers p LEFT JOIN channels ch ON ch.id = p.channel_id WHERE (p.workspace_id, p.peer) IN (VALUES ",
		tail: ")", columns: 2,
	}, want.args, func(rows *sql.Rows) error {
		var p Peer
		var ws, heard, cardAt int64
		if err := rows.Scan(&ws, &p.Key.Peer, &p.Link, &p.Channel, &heard, &p.CardLink, &cardAt); err != nil {
			return err
		}
		p.Key.WorkspaceID = names[ws]
		p.LastHeard, p.CardAt = instant(heard), instant(cardAt)
		s.Peers[p.Key] = &p
		return nil
	})
}

func (tx *Tx) applyPeers(ctx context.Context, c *Changes) error {
	args := make([]any, 0, len(c.Peers)*7)
	var cards []any
	for _, p := range c.Peers {
		ws, err := tx.workspaceID(ctx, p.Key.WorkspaceID, true)
		if err != nil {
			return err
		}
		var channel any
		if p.Channel != "" {
			if channel, err = tx.channelID(ctx, p.Key.WorkspaceID, p.Channel, true); err != nil {
				return err
			}
		}
		var cardLink, cardAt any
		if p.Card != nil {
			cardLink, cardAt = p.CardLink, millis(p.CardAt)
			cards = append(cards, ws, p.Key.Peer, p.Card)
		}
		args = append(args, ws, p.Key.Peer, p.Link, channel, millis(p.LastHeard), cardLink, cardAt)
	}
	if _, err := tx.exec(ctx, bulk{
		head: "INSERT INTO peers (workspace_id, peer, link, channel_id, last_heard, card_link, card_at) VALUES ",
		tail: " ON CONFLICT (workspace_id, peer) DO UPDATE SET link = excluded.link, channel_id = excluded.channel_id," +
			" last_heard = excluded.last_heard, card_link = COALESCE(excluded.card_link, card_link)," +
			" card_at = COALESCE(excluded.card_at, card_at)",
		columns: 7,
	}, args); err != nil {
		return err
	}
	_, err := tx.exec(ctx, bulk{
		head:    "INSERT INTO peer_cards (workspace_id, peer, card) VALUES ",
		tail:    " ON CONFLICT (workspace_id, peer) DO UPDATE SET card = excluded.card",
		columns: 3,
	}, cards)
	return err
}
