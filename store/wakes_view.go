package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/compozy-gateway/gateway/core"
)

const wakeViewColumns = "r.id, rc.peer, rc.workspace, r.state, r.root, r.depth, r.attempts, r.created_at, r.started_at, r.ended_at," +
	" COALESCE(r.detail, ''), (SELECT COUNT(*) FROM wake_sources s WHERE s.run_id = r.id)," +
	" (SELECT COUNT(*) FROM wake_handed h WHERE h.run_id = r.id), " + countedWake + ", l.usage, l.wall, l.input, l.output," +
	" l.reported_input, l.reported_output FROM task_runs r JOIN wake_ledger l ON l.run_id = r.id JOIN recipients rc ON rc.id = r.recipient_id"

// countedWake is 1 for a ledger row that counts as a wake: all do but those of
// wakes that cost nothing, because they were handed nothing.
const countedWake = "(l.usage <> 1 OR l.reported_input IS NOT NULL)"

func scanWakeView(rows *sql.Rows) (core.WakeView, error) {
	var v core.WakeView
	var id, state, created, started, ended, usage, wall int64
	var peer string
	var in, out sql.NullInt64
	if err := rows.Scan(&id, &peer, &v.WorkspaceID, &state, &v.Root, &v.Depth, &v.Attempts, &created, &started, &ended, &v.Detail, &v.Messages,
		&v.HandedOver, &v.Charged.Wakes, &usage, &wall, &v.Charged.InputTokens, &v.Charged.OutputTokens, &in, &out); err != nil {
		return v, err
	}
	v.ID, v.Recipient = core.WakeID(id), core.Recipient{Peer: peer}.String()
	v.State, v.Usage = decode(wakeStates(), state), decode(usageStates(), usage)
	v.Charged.WallTime = (time.Duration(wall) * time.Millisecond).String()
	v.CreatedAt, v.StartedAt, v.EndedAt = instant(created), instantOrNil(started), instantOrNil(ended)
	if in.Valid {
		v.Reported = &core.Usage{InputTokens: in.Int64, OutputTokens: out.Int64}
	}
	return v, nil
}

func instantOrNil(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := instant(ms)
	return &t
}

func wakeViews(ctx context.Context, db bun.IDB, where string, args ...any) ([]core.WakeView, error) {
	list := []core.WakeView{}
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		v, err := scanWakeView(rows)
		list = append(list, v)
		return err
	}, "SELECT "+wakeViewColumns+" WHERE "+where, args...)
	return list, err
}

// AgentState is what counts against a participation, the agent's latest wakes,
// the newest first, and how many messages wait for it, as they stood at one
// moment.
func (s *Store) AgentState(ctx context.Context, k OwnerKey, limit int) (used Budget, wakes []core.WakeView, unread int64, err error) {
	var wall int64
	err = s.readers.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		err := tx.Tx.QueryRowContext(ctx, "SELECT COALESCE(SUM("+countedWake+"), 0), COALESCE(SUM(l.wall), 0), COALESCE(SUM(l.input), 0),"+
			" COALESCE(SUM(l.output), 0) FROM wake_ledger l WHERE l.participation_id = ?", k.Participation).Scan(&used.Wakes, &wall, &used.Input, &used.Output)
		if err == nil {
			err = tx.Tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM deliveries WHERE recipient_id = ? AND state = 0", k.Recipient).Scan(&unread)
		}
		if err == nil {
			wakes, err = wakeViews(ctx, tx, "r.recipient_id = ? ORDER BY r.id DESC LIMIT ?", k.Recipient, limit)
		}
		return err
	})
	if err != nil {
		return used, nil, 0, fmt.Errorf("read the state of an agent: %w", err)
	}
	used.Wall = time.Duration(wall) * time.Millisecond
	return used, wakes, unread, s.findReach(ctx, wakes)
}

// inspectWakes fills in what the message meant for agents.
func inspectWakes(ctx context.Context, tx bun.Tx, seq int64, found *core.Inspection) (err error) {
	if found.Wakes, err = wakeViews(ctx, tx, "r.id IN (SELECT run_id FROM wake_sources WHERE seq = ?1 UNION"+
		" SELECT run_id FROM wake_handed WHERE seq = ?1) ORDER BY r.id", seq); err != nil {
		return err
	}
	if err := inspectParts(ctx, tx, seq, found.Wakes); err != nil {
		return err
	}
	// Of a wake the participation that it is charged to, of a skip the one by which
	// it was decided.
	found.Participations = map[string]core.Participation{}
	err = inspectParticipations(ctx, tx, found, "p.id IN (SELECT r.participation_id FROM wake_sources s JOIN task_runs r ON r.id = s.run_id"+
		" WHERE s.seq = ?) ORDER BY p.id", seq)
	if err != nil {
		return err
	}
	found.Skips = []core.SkipView{}
	var packed []byte
	err = tx.Tx.QueryRowContext(ctx, "SELECT skips FROM wake_skips WHERE seq = ?", seq).Scan(&packed)
	if err != nil {
		return absent("read the skips", err)
	}
	for _, s := range unpackSkips(packed) {
		who, err := recipientName(ctx, tx, s.Recipient)
		if err != nil {
			return err
		}
		found.Skips = append(found.Skips, core.SkipView{Recipient: who, Reason: s.Reason})
		if err := inspectParticipations(ctx, tx, found, "p.id = (SELECT MAX(id) FROM participations WHERE recipient_id = ?"+
			" AND created_at <= (SELECT committed_at FROM messages WHERE seq = ?))", s.Recipient, seq); err != nil {
			return err
		}
	}
	return nil
}

// inspectParts fills in what the message is to each of the wakes.
func inspectParts(ctx context.Context, tx bun.Tx, seq int64, wakes []core.WakeView) error {
	for i := range wakes {
		id, err := core.ParseWakeID(wakes[i].ID)
		if err != nil {
			return err
		}
		var source, handed bool
		if err := tx.Tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM wake_sources WHERE seq = ?1 AND run_id = ?2),"+
			" EXISTS (SELECT 1 FROM wake_handed WHERE seq = ?1 AND run_id = ?2)", seq, id).Scan(&source, &handed); err != nil {
			return fmt.Errorf("read what the message is to %s: %w", wakes[i].ID, err)
		}
		switch {
		case !source:
			wakes[i].ThisMessage = core.WakePartCameAlong
		case handed:
			wakes[i].ThisMessage = core.WakePartHandedOver
		default:
			wakes[i].ThisMessage = core.WakePartNotHandedOver
		}
	}
	return nil
}

func inspectParticipations(ctx context.Context, tx bun.Tx, found *core.Inspection, where string, args ...any) error {
	var list []ParticipationRow
	err := scanRows(ctx, tx, func(rows *sql.Rows) error {
		p, err := scanParticipation(rows)
		list = append(list, p)
		return err
	}, "SELECT "+participationColumns+" WHERE "+where, args...)
	if err != nil {
		return err
	}
	for _, p := range list {
		who, err := recipientName(ctx, tx, p.Recipient)
		if err != nil {
			return err
		}
		if _, known := found.Participations[who]; !known {
			found.Participations[who] = p.Resolved
		}
	}
	return nil
}
