package store

import (
	"context"
	"database/sql"

	"github.com/compozy-gateway/gateway/core"
)

// channelNames remembers which channel an id stands for, in one transaction.
type channelNames map[int64]struct{ workspace, channel string }

// askContainers runs a query over containers whose parameters are (channel,
// surface, name).
func (tx *Tx) askContainers(ctx context.Context, keys []ContainerKey, b bulk, scan func(channelNames, *sql.Rows) error) error {
	names := channelNames{}
	want := newWants[ContainerKey](len(keys), 3)
	for _, k := range keys {
		if !want.first(k) {
			continue
		}
		channel, err := tx.channelID(ctx, k.WorkspaceID, k.Channel, false)
		if err != nil {
			return err
		}
		if channel != 0 {
			names[channel] = struct{ workspace, channel string }{k.WorkspaceID, k.Channel}
			want.args = append(want.args, channel, encode(surfaces(), k.Surface), k.ID)
		}
	}
	return tx.query(ctx, b, want.args, func(rows *sql.Rows) error { return scan(names, rows) })
}

func (n channelNames) key(channel, surface int64, name string) ContainerKey {
	c := n[channel]
	return ContainerKey{WorkspaceID: c.workspace, Channel: c.channel, Container: core.Container{
		Surface: decode(surfaces(), surface), ID: name,
	}}
}

// findContainers looks up ids.
func (tx *Tx) findContainers(ctx context.Context, keys []ContainerKey) error {
	return tx.askContainers(ctx, keys, bulk{
		head: "SELECT id, channel_id, surface, name FROM containers WHERE (channel_id, surface, name) IN (VALUES ",
		tail: ")", columns: 3,
	}, func(names channelNames, rows *sql.Rows) error {
		var id, channel, surface int64
		var name string
		if err := rows.Scan(&id, &channel, &surface, &name); err != nil {
			return err
		}
		tx.containers[names.key(channel, surface, name)] = id
		return nil
	})
}

func (tx *Tx) loadContainers(ctx context.Context, needs Needs, s *State) error {
	return tx.askContainers(ctx, needs.Containers, bulk{
		head: "SELECT id, channel_id, surface, name, known, COALESCE(peer_a, ''), COALESCE(peer_b, ''), participants, " +
			"messages, last_seq, last_at FROM containers WHERE (channel_id, surface, name) IN (VALUES ",
		tail: ")", columns: 3,
	}, func(names channelNames, rows *sql.Rows) error {
		var c Container
		var id, channel, surface, known, at int64
		var name string
		if err := rows.Scan(&id, &channel, &surface, &name, &known, &c.PeerA, &c.PeerB, &c.Participants,
			&c.Messages, &c.LastSeq, &at); err != nil {
			return err
		}
		c.Key, c.LastAt = names.key(channel, surface, name), instant(at)
		tx.containers[c.Key] = id
		if known != 0 {
			s.Containers[c.Key] = &c
		}
		return nil
	})
}

func (tx *Tx) applyContainers(ctx context.Context, c *Changes) error {
	if len(c.Containers) == 0 {
		return nil
	}
	var missing []ContainerKey
	for _, row := range c.Containers {
		if tx.containers[row.Key] == 0 {
			missing = append(missing, row.Key)
		}
	}
	if err := tx.findContainers(ctx, missing); err != nil {
		return err
	}
	args := make([]any, 0, len(c.Containers)*10)
	for _, row := range c.Containers {
		channel, err := tx.channelID(ctx, row.Key.WorkspaceID, row.Key.Channel, true)
		if err != nil {
			return err
		}
		id := tx.containers[row.Key]
		if id == 0 {
			id = tx.store.lastContainer.Add(1)
			tx.containers[row.Key] = id
		}
		args = append(args, id, channel, encode(surfaces(), row.Key.Surface), row.Key.ID,
			optional(row.PeerA), optional(row.PeerB), row.Participants, row.Messages, row.LastSeq, millis(row.LastAt))
	}
	_, err := tx.exec(ctx, bulk{
		head: "WITH row (id, channel_id, surface, name, peer_a, peer_b, participants, messages, last_seq, last_at) AS (VALUES ",
		tail: ") INSERT INTO containers (id, channel_id, surface, name, known, peer_a, peer_b, participants, messages, last_seq, last_at)" +
			" SELECT id, channel_id, surface, name, 1, peer_a, peer_b, participants, messages, last_seq, last_at FROM row WHERE true" +
			" ON CONFLICT (id) DO UPDATE SET known = 1, peer_a = excluded.peer_a, peer_b = excluded.peer_b," +
			" participants = excluded.participants, messages = excluded.messages, last_seq = excluded.last_seq, last_at = excluded.last_at",
		columns: 10,
	}, args)
	return err
}

func (tx *Tx) loadMembers(ctx context.Context, needs Needs, s *State) error {
	if len(needs.Members) == 0 {
		return nil
	}
	var missing []ContainerKey
	for _, m := range needs.Members {
		if tx.containers[m.Container] == 0 {
			missing = append(missing, m.Container)
		}
	}
	if err := tx.findContainers(ctx, missing); err != nil {
		return err
	}
	containers := map[int64]ContainerKey{}
	want := newWants[Member](len(needs.Members), 2)
	for _, m := range needs.Members {
		if id := tx.containers[m.Container]; id != 0 && want.first(m) {
			containers[id] = m.Container
			want.args = append(want.args, id, m.Peer)
		}
	}
	return tx.query(ctx, bulk{
		head: "SELECT container_id, peer FROM members WHERE (container_id, peer) IN (VALUES ", tail: ")", columns: 2,
	}, want.args, func(rows *sql.Rows) error {
		var id int64
		var peer string
		if err := rows.Scan(&id, &peer); err != nil {
			return err
		}
		s.Members[Member{containers[id], peer}] = true
		return nil
	})
}

// applyMembers runs after applyContainers: a member's container has an id, or
// the member belongs to nothing.
func (tx *Tx) applyMembers(ctx context.Context, c *Changes) error {
	if len(c.Members) == 0 {
		return nil
	}
	var missing []ContainerKey
	for _, m := range c.Members {
		if tx.containers[m.Container] == 0 {
			missing = append(missing, m.Container)
		}
	}
	if err := tx.findContainers(ctx, missing); err != nil {
		return err
	}
	args := make([]any, 0, len(c.Members)*2)
	for _, m := range c.Members {
		args = append(args, tx.containers[m.Container], m.Peer)
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT OR IGNORE INTO members (container_id, peer) VALUES ", columns: 2}, args)
	return err
}
