package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/compozy-gateway/gateway/core"
)

// Recipients lists, in the order of their ids, the links, the attached peers and
// the peers that something waits for, with how many deliveries wait for each. A
// peer that is none of these has a row for what was once delivered to it.
func (s *Store) Recipients(ctx context.Context) ([]RecipientRow, error) {
	var found []recipientModel
	if err := selectRecipients(s.readers, &found).Where("r.peer = '' OR r.attached OR pending > 0").OrderExpr("r.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read recipients: %w", err)
	}
	rows := make([]RecipientRow, 0, len(found))
	for i := range found {
		rows = append(rows, found[i].row())
	}
	return rows, nil
}

func selectRecipients(db bun.IDB, into *[]recipientModel) *bun.SelectQuery {
	return db.NewSelect().Model(into).
		Column("id", "carrier", "link", "workspace", "channel", "peer", "attached", "push").
		ColumnExpr("(SELECT COUNT(*) FROM deliveries AS d WHERE d.recipient_id = r.id AND d.state = 0) AS pending")
}

// Queues tells what waits for each recipient, in the order of their ids, as it
// stands in the transaction; whom nothing waits for is left out.
func (tx *Tx) Queues(ctx context.Context, now time.Time) ([]Queue, error) {
	var queues []Queue
	err := scanRows(ctx, tx.tx, func(rows *sql.Rows) error {
		var q Queue
		err := rows.Scan(&q.Recipient, &q.Pending, &q.Late)
		queues = append(queues, q)
		return err
	}, "SELECT recipient_id, COUNT(*), COUNT(*) FILTER (WHERE deadline BETWEEN 1 AND ?) FROM deliveries"+
		" WHERE state = 0 GROUP BY recipient_id ORDER BY recipient_id", millis(now))
	if err != nil {
		return nil, fmt.Errorf("count the queues: %w", err)
	}
	return queues, nil
}

// EnsureRecipient gives the recipient's row, making it if need be. A link is
// known by its carrier and name, a peer by its workspace, channel and id,
// whatever carrier serves it.
func (tx *Tx) EnsureRecipient(ctx context.Context, r core.Recipient) (RecipientRow, error) {
	if _, err := tx.run(ctx,
		"INSERT OR IGNORE INTO recipients (carrier, link, workspace, channel, peer) VALUES (?, ?, ?, ?, ?)",
		r.Carrier, r.Link, r.WorkspaceID, r.Channel, r.Peer); err != nil {
		return RecipientRow{}, fmt.Errorf("make recipient %s: %w", r, err)
	}
	return tx.recipient(ctx, r)
}

// Attach makes the peer a local recipient that the carrier serves, durably. It
// is idempotent.
func (tx *Tx) Attach(ctx context.Context, r core.Recipient, push bool) (RecipientRow, error) {
	if _, err := tx.run(ctx,
		"INSERT INTO recipients (carrier, link, workspace, channel, peer, attached, push) VALUES (?, ?, ?, ?, ?, 1, ?)"+
			" ON CONFLICT (workspace, peer, channel) WHERE peer <> '' DO UPDATE SET"+
			" carrier = excluded.carrier, link = excluded.link, attached = 1, push = excluded.push",
		r.Carrier, r.Link, r.WorkspaceID, r.Channel, r.Peer, push); err != nil {
		return RecipientRow{}, fmt.Errorf("attach %s: %w", r, err)
	}
	return tx.recipient(ctx, r)
}

// recipient reads the row of a recipient by its name.
func (tx *Tx) recipient(ctx context.Context, r core.Recipient) (RecipientRow, error) {
	query, args := "SELECT id FROM recipients WHERE workspace = ? AND channel = ? AND peer = ? AND peer <> ''",
		[]any{r.WorkspaceID, r.Channel, r.Peer}
	if r.Peer == "" {
		query, args = "SELECT id FROM recipients WHERE carrier = ? AND link = ? AND peer = ''", []any{r.Carrier, r.Link}
	}
	var id int64
	if err := tx.tx.Tx.QueryRowContext(ctx, query, args...).Scan(&id); err != nil {
		return RecipientRow{}, notFound("find recipient "+r.String(), err)
	}
	return tx.RecipientByID(ctx, id)
}

// RecipientByID reads the row of a recipient as it stands in the transaction.
// ErrNotFound when there is none.
func (tx *Tx) RecipientByID(ctx context.Context, id int64) (RecipientRow, error) {
	var found []recipientModel
	if err := selectRecipients(tx.tx, &found).Where("r.id = ?", id).Scan(ctx); err != nil {
		return RecipientRow{}, fmt.Errorf("read recipient %d: %w", id, err)
	}
	if len(found) == 0 {
		return RecipientRow{}, notFound(fmt.Sprintf("read recipient %d", id), sql.ErrNoRows)
	}
	return found[0].row(), nil
}

// Detach ends an attachment. What waits for the peer keeps waiting until it is
// attached again, heard on a link, or too late. An unknown id changes nothing.
func (tx *Tx) Detach(ctx context.Context, id int64) error {
	if _, err := tx.run(ctx, "UPDATE recipients SET attached = 0 WHERE id = ?", id); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	return nil
}
