package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
)

// historyScan is how many messages one call of History looks at. A filter that
// few messages pass may therefore give a short page with a next.
const historyScan = 20_000

// History gives messages of one channel, oldest first. next is the seq behind
// which the following page begins, nil at the end.
func (s *Store) History(ctx context.Context, q core.HistoryQuery) (page []core.Message, next *int64, err error) {
	source, args, err := s.historySource(ctx, q)
	if err != nil || source == "" {
		return []core.Message{}, nil, err
	}
	args = append([]any{encode(kinds(), q.Kind), q.Kind == "", q.Admin, q.Peer, q.Peer, q.Peer}, args...)
	page = []core.Message{}
	looked := 0
	err = scanUntil(ctx, s.readers, func(rows *sql.Rows) (bool, error) {
		m := core.Message{WorkspaceID: q.WorkspaceID, Channel: q.Channel}
		shown, err := scanMessage(rows, &m)
		if err != nil {
			return false, err
		}
		if shown && len(page) == max(1, q.Limit) {
			next = &page[len(page)-1].Seq
			return false, nil
		}
		if shown {
			page = append(page, m)
		}
		if looked++; looked == historyScan {
			next = &m.Seq
			return false, nil
		}
		return true, nil
	}, "SELECT seq, committed_at, carrier, peer_a, peer_b, CASE WHEN shown THEN payload END, shown FROM ("+
		"SELECT m.seq, m.committed_at, n.name AS carrier, COALESCE(c.peer_a, '') AS peer_a, COALESCE(c.peer_b, '') AS peer_b, m.payload,"+
		" ((m.kind = ? OR ?) AND (c.surface IS NOT 2 OR ? OR (? <> '' AND (c.peer_a = ? OR c.peer_b = ?)))) AS shown"+
		" FROM messages m JOIN names n ON n.id = m.carrier_id LEFT JOIN containers c ON c.id = m.container_id WHERE "+
		source+" ORDER BY m.seq)", args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read history: %w", err)
	}
	return page, next, nil
}

// scanMessage reads one row of a history query.
func scanMessage(rows *sql.Rows, m *core.Message) (shown bool, err error) {
	var at int64
	var payload []byte
	if err := rows.Scan(&m.Seq, &at, &m.Carrier, &m.Direct[0], &m.Direct[1], &payload, &shown); err != nil || !shown {
		return shown, err
	}
	m.CommittedAt, m.Envelope, m.ID = instant(at), payload, readID(payload)
	return true, nil
}

// historySource chooses the narrowest index: the condition on messages and its
// arguments. It is empty when nothing can match.
func (s *Store) historySource(ctx context.Context, q core.HistoryQuery) (string, []any, error) {
	var workspace, channel int64
	err := s.readers.DB.QueryRowContext(ctx, "SELECT ws.id, c.id FROM workspaces ws JOIN channels c ON c.workspace_id = ws.id"+
		" WHERE ws.name = ? AND c.name = ?", q.WorkspaceID, q.Channel).Scan(&workspace, &channel)
	if err != nil {
		return "", nil, absent("find the channel", err)
	}
	source, args := "m.channel_id = ? AND m.seq > ?", []any{channel, q.After}
	if q.WorkID != "" {
		var id int64
		err := s.readers.DB.QueryRowContext(ctx, "SELECT id FROM works WHERE workspace_id = ? AND name = ?", workspace, q.WorkID).Scan(&id)
		if err != nil {
			return "", nil, absent("find the work", err)
		}
		// The plus signs keep SQLite from the index on the channel.
		source, args = "m.work_id = ? AND +m.channel_id = ? AND m.seq > ?", []any{id, channel, q.After}
	}
	if q.ThreadID != "" {
		var id int64
		err := s.readers.DB.QueryRowContext(ctx, "SELECT id FROM containers WHERE channel_id = ? AND surface = 1 AND name = ?",
			channel, q.ThreadID).Scan(&id)
		if err != nil {
			return "", nil, absent("find the thread", err)
		}
		if q.WorkID != "" {
			source, args = source+" AND +m.container_id = ?", append(args, id)
		} else {
			source, args = "m.container_id = ? AND m.seq > ?", []any{id, q.After}
		}
	}
	return source, args, nil
}

// absent is the error of looking up what need not exist.
func absent(what string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// MessagesAfter gives all messages of a channel behind a seq, oldest first, at
// most limit. Direct rooms are among them: the caller decides who may read.
func (s *Store) MessagesAfter(ctx context.Context, workspace, channel string, after int64, limit int) ([]core.Message, error) {
	page, _, err := s.History(ctx, core.HistoryQuery{
		WorkspaceID: workspace, Channel: channel, After: after, Limit: min(limit, historyScan), Admin: true,
	})
	return page, err
}

// SeqRange tells what history retains without a hole: every message with a seq
// from oldest to newest, the last number that was ever used. Older ones may be retained one by one, because a
// delivery still waits. When nothing is retained oldest is newest + 1.
func (s *Store) SeqRange(ctx context.Context) (oldest, newest int64, err error) {
	err = s.readers.DB.QueryRowContext(ctx,
		"SELECT COALESCE((SELECT MIN(seq) FROM messages WHERE seq > g.pruned_through), MAX(g.last_seq, g.pruned_through) + 1),"+
			" MAX(g.last_seq, g.pruned_through) FROM gateway g").Scan(&oldest, &newest)
	if err != nil {
		return 0, 0, fmt.Errorf("read the range of history: %w", err)
	}
	return oldest, newest, nil
}

// LastSeq is the highest number ever used as a seq or a position, whatever was
// deleted since; 0 in a new store.
func (s *Store) LastSeq(ctx context.Context) (int64, error) {
	var row gatewayModel
	if err := s.readers.NewSelect().Model(&row).Column("last_seq").Where("id = 1").Scan(ctx); err != nil {
		return 0, fmt.Errorf("read the last seq: %w", err)
	}
	return row.LastSeq, nil
}
