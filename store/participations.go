package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// AddParticipation stores a resolved participation, which from now on is the
// agent's. It sets the row's id.
func (tx *Tx) AddParticipation(ctx context.Context, p *ParticipationRow) error {
	resolved, err := json.Marshal(p.Resolved)
	if err == nil {
		err = tx.tx.Tx.QueryRowContext(ctx, "INSERT INTO participations (carrier, agent, recipient_id, resolved, created_at)"+
			" VALUES (?, ?, ?, ?, ?) RETURNING id", p.Carrier, p.Agent, optionalID(p.Recipient), string(resolved), millis(p.CreatedAt)).Scan(&p.ID)
	}
	if err != nil {
		return fmt.Errorf("store the participation of agent %s: %w", p.Agent, err)
	}
	return nil
}

const participationColumns = "p.id, p.carrier, p.agent, COALESCE(p.recipient_id, 0), p.resolved, p.created_at FROM participations p"

func scanParticipation(rows *sql.Rows) (ParticipationRow, error) {
	var p ParticipationRow
	var resolved []byte
	var at int64
	if err := rows.Scan(&p.ID, &p.Carrier, &p.Agent, &p.Recipient, &resolved, &at); err != nil {
		return p, err
	}
	p.CreatedAt = instant(at)
	return p, json.Unmarshal(resolved, &p.Resolved)
}

// Participations lists the participation of every agent that ever was, the
// latest of each.
func (s *Store) Participations(ctx context.Context) ([]ParticipationRow, error) {
	var list []ParticipationRow
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		p, err := scanParticipation(rows)
		list = append(list, p)
		return err
	}, "SELECT "+participationColumns+" WHERE p.id IN (SELECT MAX(id) FROM participations GROUP BY carrier, agent) ORDER BY p.id")
	if err != nil {
		return nil, fmt.Errorf("read the participations: %w", err)
	}
	return list, nil
}

// Participation gives one participation, or core.ErrNotFound.
func (tx *Tx) Participation(ctx context.Context, id int64) (ParticipationRow, error) {
	var found ParticipationRow
	err := tx.each(ctx, func(rows *sql.Rows) (err error) {
		found, err = scanParticipation(rows)
		return err
	}, "SELECT "+participationColumns+" WHERE p.id = ?", id)
	if err == nil && found.ID == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return found, notFound(fmt.Sprintf("read participation %d", id), err)
	}
	return found, nil
}
