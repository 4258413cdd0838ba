package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
)

// idKey stands for the id of one workspace wherever ids are looked up. It is
// half of a SHA-256, so that two ids share one by chance as good as never, and
// salted with the secret of the database, so that nobody can search for ids
// that do, or for many that stand close together.
type idKey [16]byte

// keyOf measures the workspace first, so that no two pairs read alike.
func (s *Store) keyOf(k Key) idKey {
	var room [256]byte
	b := append(room[:0], s.secret...)
	b = binary.AppendUvarint(b, uint64(len(k.WorkspaceID)))
	b = append(b, k.WorkspaceID...)
	b = append(b, k.ID...)
	sum := sha256.Sum256(b)
	return idKey(sum[:16])
}

var (
	errKnownID  = errors.New("the id is known already")
	errSeqOrder = errors.New("the seq does not follow those before it")
)

// findIDs finds out which of the keys are known, and puts that into tx.known,
// nil for those that are not.
func (tx *Tx) findIDs(ctx context.Context, keys []idKey) error {
	bySeq := map[int64]idKey{}
	asked := make([]idKey, 0, len(keys))
	older := make([]any, 0, len(keys))
	for _, key := range keys {
		if _, done := tx.known[key]; done {
			continue
		}
		tx.known[key] = nil
		asked = append(asked, key)
		if seq := tx.store.ids.find(key); seq != 0 {
			bySeq[seq] = key
		} else if tx.store.ids.filter[partOf(key)].may(key) {
			older = append(older, asked[len(asked)-1][:])
		}
	}
	if err := tx.query(ctx, bulk{head: "SELECT seq, key FROM ids WHERE key IN (VALUES ", tail: ")", columns: 1},
		older, func(rows *sql.Rows) error {
			seq, key, err := scanID(rows)
			bySeq[seq] = key
			return err
		}); err != nil {
		return err
	}
	if err := tx.describeIDs(ctx, bySeq); err != nil {
		return err
	}
	return tx.findParkedIDs(ctx, asked)
}

func scanID(rows *sql.Rows) (seq int64, key idKey, err error) {
	var b sql.RawBytes
	err = rows.Scan(&seq, &b)
	copy(key[:], b)
	return seq, key, err
}

// describeIDs tells what became of messages that were accepted. One of which
// nothing is left has a dead id, which stays unknown.
func (tx *Tx) describeIDs(ctx context.Context, bySeq map[int64]idKey) error {
	for _, table := range []string{"messages", "lingering"} {
		args := make([]any, 0, len(bySeq))
		for seq := range bySeq {
			args = append(args, seq)
		}
		if err := tx.query(ctx, bulk{
			head: "SELECT seq, committed_at, content FROM " + table + " WHERE seq IN (VALUES ", tail: ")", columns: 1,
		}, args, func(rows *sql.Rows) error {
			var seq, at int64
			var content sql.RawBytes
			if err := rows.Scan(&seq, &at, &content); err != nil {
				return err
			}
			k := &Known{Seq: seq, CommittedAt: instant(at)}
			copy(k.Content[:], content)
			tx.known[bySeq[seq]] = k
			delete(bySeq, seq)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// findParkedIDs finds what is parked under those keys that are not known
// otherwise.
func (tx *Tx) findParkedIDs(ctx context.Context, keys []idKey) error {
	some, err := tx.someParked(ctx)
	if err != nil || !some {
		return err
	}
	args := make([]any, 0, len(keys))
	for i := range keys {
		if tx.known[keys[i]] == nil {
			args = append(args, keys[i][:])
		}
	}
	return tx.query(ctx, bulk{
		head: "SELECT key, received_at, content FROM parked WHERE key IN (VALUES ", tail: ")", columns: 1,
	}, args, func(rows *sql.Rows) error {
		var key, content sql.RawBytes
		var at int64
		if err := rows.Scan(&key, &at, &content); err != nil {
			return err
		}
		k := &Known{Parked: true, CommittedAt: instant(at)}
		copy(k.Content[:], content)
		tx.known[idKey(key)] = k
		return nil
	})
}

// forgetParkedIDs makes the transaction look again at what it found parked.
func (tx *Tx) forgetParkedIDs() {
	maps.DeleteFunc(tx.known, func(_ idKey, k *Known) bool { return k != nil && k.Parked })
}

// applyKeys makes the ids of new messages known. Those that are parked become
// known by their own rows.
func (tx *Tx) applyKeys(ctx context.Context, c *Changes) error {
	keys := make([]idKey, 0, len(c.Messages)+len(c.Parked))
	for i := range c.Messages {
		keys = append(keys, tx.store.keyOf(c.Messages[i].Key))
	}
	for _, p := range c.Parked {
		keys = append(keys, tx.store.keyOf(p.Key))
	}
	if err := tx.findIDs(ctx, keys); err != nil {
		return err
	}
	args := make([]any, 0, len(c.Messages)*2)
	for i := range c.Messages {
		m := &c.Messages[i]
		switch {
		case tx.known[keys[i]] != nil:
			return errKnownID
		case m.Seq <= tx.lastSeq():
			return errSeqOrder
		}
		tx.known[keys[i]] = &Known{Seq: m.Seq, Content: m.Content, CommittedAt: m.CommittedAt}
		tx.accepted = append(tx.accepted, idRow{m.Seq, keys[i]})
		args = append(args, m.Seq, keys[i][:])
	}
	for i, p := range c.Parked {
		key := keys[len(c.Messages)+i]
		if tx.known[key] != nil {
			return errKnownID
		}
		tx.known[key] = &Known{Parked: true, Content: p.Content, CommittedAt: p.ReceivedAt}
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT OR FAIL INTO recent_ids (seq, key) VALUES ", columns: 2}, args)
	return err
}

// lastSeq is the highest seq of an accepted message, as far as it matters for
// the order of recent_ids.
func (tx *Tx) lastSeq() int64 {
	if n := len(tx.accepted); n > 0 {
		return tx.accepted[n-1].seq
	}
	return tx.store.ids.last
}
