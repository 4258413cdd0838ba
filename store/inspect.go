package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/compozy-gateway/gateway/core"
)

// maxReceipts bounds the receipts that an inspection shows: anybody can send
// any number of them.
const maxReceipts = 256

// Inspect gives everything that is known of one message, parked ones too, as it
// stood at one moment. It is core.ErrNotFound when the id is unknown, or its
// message is older than the retention.
func (s *Store) Inspect(ctx context.Context, workspace, id string) (*core.Inspection, error) {
	var found *core.Inspection
	recent := s.ids.read(s.keyOf(Key{workspace, id}))
	err := s.readers.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		seq, err := recent.newest(ctx, tx)
		if err != nil {
			return err
		}
		found, err = inspectMessage(ctx, tx, workspace, id, seq)
		if errors.Is(err, sql.ErrNoRows) {
			found, err = inspectParked(ctx, tx, recent.key)
		}
		return err
	})
	if err != nil {
		return nil, notFound("inspect a message", err)
	}
	return found, s.findReach(ctx, found.Wakes)
}

func inspectParked(ctx context.Context, db bun.IDB, key idKey) (*core.Inspection, error) {
	var found *core.Inspection
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		p, err := scanParked(rows)
		if err != nil {
			return err
		}
		found = &core.Inspection{
			CommittedAt: p.ReceivedAt, Carrier: p.Carrier, Arrival: p.Arrival.String(), Parked: true, Envelope: p.Payload,
			Decisions: []core.Decision{}, Deliveries: []core.Delivery{}, Receipts: []core.ReceiptView{},
			Wakes: []core.WakeView{}, Skips: []core.SkipView{}, Participations: map[string]core.Participation{},
			Parties: [2]string{p.From, p.To},
		}
		found.Channel = readFields(p.Payload).Channel
		return nil
	}, "SELECT "+parkedColumns+" WHERE p.key = ?", key[:])
	if err == nil && found == nil {
		err = sql.ErrNoRows
	}
	return found, err
}

func inspectMessage(ctx context.Context, tx bun.Tx, workspace, id string, seq int64) (*core.Inspection, error) {
	found := &core.Inspection{Seq: &seq}
	var at, arrival, container int64
	var direct bool
	var ignored, payload []byte
	err := tx.Tx.QueryRowContext(ctx, "SELECT m.committed_at, n.name, m.arrival, ch.name, COALESCE(m.container_id, 0),"+
		" COALESCE(c.surface, 0) = 2, COALESCE(c.peer_a, ''), COALESCE(c.peer_b, ''), m.ignored, m.payload"+
		" FROM messages m JOIN names n ON n.id = m.carrier_id JOIN channels ch ON ch.id = m.channel_id"+
		" LEFT JOIN containers c ON c.id = m.container_id WHERE m.seq = ?", seq).
		Scan(&at, &found.Carrier, &arrival, &found.Channel, &container, &direct, &found.Parties[0], &found.Parties[1], &ignored, &payload)
	if err != nil {
		return nil, err
	}
	found.CommittedAt, found.Arrival, found.Envelope = instant(at), core.Arrival(arrival).String(), payload
	if !direct {
		found.Parties = [2]string{}
	}
	if found.Deliveries, found.Decisions, err = inspectDeliveries(ctx, tx, seq); err != nil {
		return nil, err
	}
	for _, i := range unpackIgnored(ignored) {
		who, err := recipientName(ctx, tx, i.Recipient)
		if err != nil {
			return nil, err
		}
		found.Decisions = append(found.Decisions, core.Decision{Recipient: who, Decision: "ignore", Reason: i.Reason})
	}
	if found.Receipts, err = inspectReceipts(ctx, tx, workspace, id, container); err != nil {
		return nil, err
	}
	return found, inspectWakes(ctx, tx, seq, found)
}

func inspectDeliveries(ctx context.Context, db bun.IDB, seq int64) ([]core.Delivery, []core.Decision, error) {
	deliveries, decisions := []core.Delivery{}, []core.Decision{}
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		id := core.DeliveryID{Seq: seq}
		var r core.Recipient
		var d core.Delivery
		var state, ended int64
		var ackKind, detail string
		if err := rows.Scan(&id.Recipient, &r.Carrier, &r.Link, &r.Peer, &state, &d.Attempts, &ended, &ackKind, &detail, &d.Reason); err != nil {
			return err
		}
		d.ID, d.Recipient, d.State = id.String(), r.String(), decode(deliveryStates(), state)
		if state == stateAcked {
			d.Ack = &core.AckView{Kind: core.AckKind(ackKind), At: instant(ended), Detail: detail}
		} else {
			d.LastError = detail
		}
		deliveries = append(deliveries, d)
		decisions = append(decisions, core.Decision{Recipient: d.Recipient, Decision: "deliver"})
		return nil
	}, "SELECT d.recipient_id, r.carrier, r.link, r.peer, d.state, d.attempts, d.ended_at, COALESCE(n.name, ''),"+
		" COALESCE(d.detail, ''), COALESCE(d.reason, '') FROM deliveries d JOIN recipients r ON r.id = d.recipient_id"+
		" LEFT JOIN names n ON n.id = d.ack_kind WHERE d.seq = ? ORDER BY d.recipient_id", seq)
	return deliveries, decisions, err
}

func recipientName(ctx context.Context, tx bun.Tx, id int64) (string, error) {
	var r core.Recipient
	err := tx.Tx.QueryRowContext(ctx, "SELECT carrier, link, peer FROM recipients WHERE id = ?", id).Scan(&r.Carrier, &r.Link, &r.Peer)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Sprintf("recipient:%d", id), nil
	}
	return r.String(), err
}

// inspectReceipts lists what receipts say of the message: those of its own
// container, and public ones. One in another direct room is that room's alone.
func inspectReceipts(ctx context.Context, db bun.IDB, workspace, id string, container int64) ([]core.ReceiptView, error) {
	receipts := []core.ReceiptView{}
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		var r core.ReceiptView
		var payload []byte
		if err := rows.Scan(&r.Seq, &r.Channel, &payload); err != nil {
			return err
		}
		f, body := readReceipt(payload)
		r.ID, r.From, r.Status, r.ReasonCode, r.Detail = f.ID, f.From, body.Status, body.ReasonCode, body.Detail
		receipts = append(receipts, r)
		return nil
	}, "SELECT m.seq, ch.name, m.payload FROM messages m JOIN channels ch ON ch.id = m.channel_id"+
		" JOIN workspaces ws ON ws.id = ch.workspace_id LEFT JOIN containers c ON c.id = m.container_id"+
		" WHERE m.for_id = ? AND ws.name = ? AND (m.container_id = ? OR c.surface IS NOT 2) ORDER BY m.seq LIMIT ?",
		id, workspace, container, maxReceipts)
	return receipts, err
}
