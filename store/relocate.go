package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
)

// Move says how what waits for a peer goes to a link.
type Move struct {
	Peer PeerKey
	// To is the recipient id of the link.
	To int64
	// Allowed reports whether messages of the channel may go out there. What may
	// not keeps waiting.
	Allowed func(channel string) bool
	// Position gives the place in the link's queue to what had the given one in
	// the peer's.
	Position func(old int64) int64
}

// Moved tells what a Move did, by the ids that the deliveries had before.
type Moved struct {
	Relocated []core.DeliveryID
	// Withdrawn had reached the peer without us.
	Withdrawn []core.DeliveryID
}

// stranded is a delivery that waits for a peer that is attached nowhere.
type stranded struct {
	id       core.DeliveryID
	channel  string
	position int64
	arrival  core.Arrival
	carrier  string
	delivers bool
}

// Relocate moves what waits for the peer, which is attached to none of the
// channels concerned, to the link on which it was heard (section 5 of
// docs/protocol.md, direct rooms). What had arrived natively on that very link
// reached the peer without us: its delivery becomes an ignore decision of
// reason origin.
func (tx *Tx) Relocate(ctx context.Context, m Move) (Moved, error) {
	var done Moved
	waiting, err := tx.stranded(ctx, m.Peer, m.To)
	if err != nil || len(waiting) == 0 {
		return done, err
	}
	var link struct{ carrier, name string }
	if err := tx.tx.Tx.QueryRowContext(ctx, "SELECT carrier, link FROM recipients WHERE id = ?", m.To).
		Scan(&link.carrier, &link.name); err != nil {
		return done, notFound("find the link", err)
	}
	var last int64
	for _, w := range waiting {
		atOrigin := w.arrival == core.ArrivalNative && link.name == "" && w.carrier == link.carrier
		if atOrigin || w.delivers {
			if err := tx.withdraw(ctx, w.id, atOrigin); err != nil {
				return done, err
			}
			done.Withdrawn = append(done.Withdrawn, w.id)
			continue
		}
		if !m.Allowed(w.channel) {
			continue
		}
		position := m.Position(w.position)
		last = max(last, position)
		if _, err := tx.run(ctx, "UPDATE deliveries SET recipient_id = ?, position = ? WHERE seq = ? AND recipient_id = ?",
			m.To, position, w.id.Seq, w.id.Recipient); err != nil {
			return done, fmt.Errorf("relocate delivery %s: %w", w.id, err)
		}
		done.Relocated = append(done.Relocated, w.id)
	}
	return done, tx.used(ctx, last)
}

// stranded lists, in order, the direct-room deliveries that wait for the peer.
func (tx *Tx) stranded(ctx context.Context, peer PeerKey, to int64) ([]stranded, error) {
	var list []stranded
	err := tx.each(ctx, func(rows *sql.Rows) error {
		var w stranded
		err := rows.Scan(&w.id.Seq, &w.id.Recipient, &w.position, &w.channel, &w.arrival, &w.carrier, &w.delivers)
		list = append(list, w)
		return err
	}, "SELECT d.seq, d.recipient_id, d.position, r.channel, m.arrival, n.name,"+
		" EXISTS (SELECT 1 FROM deliveries o WHERE o.seq = d.seq AND o.recipient_id = ?)"+
		" FROM recipients r CROSS JOIN deliveries d ON d.recipient_id = r.id AND d.state = 0 AND d.direct = 1"+
		" CROSS JOIN messages m ON m.seq = d.seq JOIN names n ON n.id = m.carrier_id"+
		" WHERE r.workspace = ? AND r.peer = ? AND r.peer <> '' AND r.attached = 0 ORDER BY d.position",
		to, peer.WorkspaceID, peer.Peer)
	if err != nil {
		return nil, fmt.Errorf("find what waits for %s: %w", peer.Peer, err)
	}
	return list, nil
}

// withdraw takes a delivery back; as an ignore decision it stays on the message.
func (tx *Tx) withdraw(ctx context.Context, id core.DeliveryID, ignore bool) error {
	if _, err := tx.run(ctx, "DELETE FROM deliveries WHERE seq = ? AND recipient_id = ?", id.Seq, id.Recipient); err != nil {
		return fmt.Errorf("withdraw delivery %s: %w", id, err)
	}
	if !ignore {
		return nil
	}
	var packed []byte
	if err := tx.tx.Tx.QueryRowContext(ctx, "SELECT ignored FROM messages WHERE seq = ?", id.Seq).Scan(&packed); err != nil {
		return fmt.Errorf("read the decisions of message %d: %w", id.Seq, err)
	}
	packed = append(packed, packIgnored([]Ignored{{Recipient: id.Recipient, Reason: core.IgnoreOrigin}})...)
	if _, err := tx.run(ctx, "UPDATE messages SET ignored = ? WHERE seq = ?", packed, id.Seq); err != nil {
		return fmt.Errorf("write the decisions of message %d: %w", id.Seq, err)
	}
	return nil
}
