package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const parkedColumns = "p.id, ws.name, p.message_id, p.work, p.sender, p.target, n.name, p.arrival, " +
	"p.address_class, p.address_space, p.address_channel, p.address_token, " +
	"p.received_at, p.fresh_until, p.known_until, p.content, p.payload " +
	"FROM parked p JOIN workspaces ws ON ws.id = p.workspace_id JOIN names n ON n.id = p.carrier_id"

func scanParked(rows *sql.Rows) (*Parked, error) {
	var p Parked
	var arrival, received, fresh, known int64
	var class, space, channel, token sql.NullString
	var content []byte
	if err := rows.Scan(&p.ID, &p.Key.WorkspaceID, &p.Key.ID, &p.WorkID, &p.From, &p.To, &p.Carrier, &arrival,
		&class, &space, &channel, &token, &received, &fresh, &known, &content, &p.Payload); err != nil {
		return nil, err
	}
	if class.Valid {
		p.Address = &core.Address{
			WorkspaceID: space.String, Channel: channel.String, Class: core.AddressClass(class.String), Token: token.String,
		}
	}
	p.Arrival = core.Arrival(arrival)
	p.ReceivedAt, p.FreshUntil, p.KnownUntil = instant(received), instant(fresh), instant(known)
	copy(p.Content[:], content)
	return &p, nil
}

func (tx *Tx) loadParked(ctx context.Context, needs Needs, s *State) error {
	if len(needs.Works) == 0 {
		return nil
	}
	some, err := tx.someParked(ctx)
	if err != nil || !some {
		return err
	}
	want := newWants[WorkKey](len(needs.Works), 2)
	for _, k := range needs.Works {
		if want.first(k) {
			want.args = append(want.args, k.WorkspaceID, k.WorkID)
		}
	}
	return tx.query(ctx, bulk{
		head: "SELECT " + parkedColumns + " WHERE (ws.name, p.work) IN (VALUES ", tail: ") ORDER BY p.id", columns: 2,
	}, want.args, func(rows *sql.Rows) error {
		p, err := scanParked(rows)
		if err != nil {
			return err
		}
		key := WorkKey{p.Key.WorkspaceID, p.WorkID}
		s.Parked[key] = append(s.Parked[key], p)
		return nil
	})
}

// someParked reports whether anything is parked. Mostly nothing is, and then one
// look is enough.
func (tx *Tx) someParked(ctx context.Context) (some bool, err error) {
	err = tx.each(ctx, func(rows *sql.Rows) error { return rows.Scan(&some) }, "SELECT EXISTS (SELECT 1 FROM parked)")
	return some, err
}

// StaleParked gives parked messages whose freshness has ended, the oldest first,
// at most limit.
func (tx *Tx) StaleParked(ctx context.Context, now time.Time, limit int) ([]*Parked, error) {
	var stale []*Parked
	err := tx.each(ctx, func(rows *sql.Rows) error {
		p, err := scanParked(rows)
		stale = append(stale, p)
		return err
	}, "SELECT "+parkedColumns+" WHERE p.fresh_until <= ? ORDER BY p.fresh_until, p.id LIMIT ?", millis(now), limit)
	if err != nil {
		return nil, fmt.Errorf("read stale parked messages: %w", err)
	}
	return stale, nil
}

// applyUnparked takes out what was released or given up. What was given up is
// unknown then, and so is what speaks of it.
func (tx *Tx) applyUnparked(ctx context.Context, c *Changes) error {
	args := make([]any, 0, len(c.Unparked))
	for _, id := range c.Unparked {
		args = append(args, id)
	}
	if _, err := tx.exec(ctx, bulk{head: "DELETE FROM parked WHERE id IN (VALUES ", tail: ")", columns: 1}, args); err != nil {
		return err
	}
	tx.forgetParkedIDs()
	keys := make([]idKey, len(c.Forgotten))
	for i, key := range c.Forgotten {
		keys[i] = tx.store.keyOf(key)
	}
	return tx.productsGone(ctx, keys)
}

// applyParked writes parked messages. It sets the ID of each.
func (tx *Tx) applyParked(ctx context.Context, c *Changes) error {
	args := make([]any, 0, len(c.Parked)*18)
	for _, p := range c.Parked {
		ws, err := tx.workspaceID(ctx, p.Key.WorkspaceID, true)
		if err != nil {
			return err
		}
		carrier, err := tx.nameID(ctx, p.Carrier)
		if err != nil {
			return err
		}
		p.ID = tx.store.lastParked.Add(1)
		var class, space, channel, token any
		if a := p.Address; a != nil {
			class, space, channel, token = string(a.Class), a.WorkspaceID, a.Channel, a.Token
		}
		key := tx.store.keyOf(p.Key)
		args = append(args, p.ID, key[:], ws, p.Key.ID, p.WorkID, p.From, p.To, carrier, int64(p.Arrival), class, space, channel, token,
			millis(p.ReceivedAt), millis(p.FreshUntil), millis(p.KnownUntil), p.Content[:], p.Payload)
	}
	_, err := tx.exec(ctx, bulk{
		head: "INSERT OR FAIL INTO parked (id, key, workspace_id, message_id, work, sender, target, carrier_id, arrival, address_class, address_space, " +
			"address_channel, address_token, received_at, fresh_until, known_until, content, payload) VALUES ",
		columns: 18,
	}, args)
	return err
}

// ParkedCounts counts what is parked, in all and by sender.
func (s *Store) ParkedCounts(ctx context.Context) (total int, bySender map[PeerKey]int, err error) {
	bySender = map[PeerKey]int{}
	err = scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var key PeerKey
		var n int
		if err := rows.Scan(&key.WorkspaceID, &key.Peer, &n); err != nil {
			return err
		}
		bySender[key] = n
		total += n
		return nil
	}, "SELECT ws.name, p.sender, COUNT(*) FROM parked p JOIN workspaces ws ON ws.id = p.workspace_id GROUP BY ws.name, p.sender")
	if err != nil {
		return 0, nil, fmt.Errorf("count parked messages: %w", err)
	}
	return total, bySender, nil
}
