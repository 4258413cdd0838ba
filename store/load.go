package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Load reads the rows that a group of envelopes touches, a few queries for all
// of them. The maps of the State are never nil; repeats in needs cost nothing.
func (tx *Tx) Load(ctx context.Context, needs Needs) (*State, error) {
	s := &State{
		Keys:       make(map[Key]*Known, len(needs.Keys)),
		Works:      make(map[WorkKey]*Work, len(needs.Works)),
		Containers: make(map[ContainerKey]*Container, len(needs.Containers)),
		Members:    make(map[Member]bool, len(needs.Members)),
		Peers:      make(map[PeerKey]*Peer, len(needs.Peers)),
		Parked:     map[WorkKey][]*Parked{},
		Owners:     make(map[int64]*Owner, len(needs.Owners)),
		Causes:     make(map[Key][]*Run, len(needs.Causes)),
		Runs:       map[int64]*Run{},
	}
	for _, step := range []struct {
		what string
		load func(context.Context, Needs, *State) error
	}{
		{"known ids", tx.loadKeys},
		{"containers", tx.loadContainers},
		{"members", tx.loadMembers},
		{"works", tx.loadWorks},
		{"parked messages", tx.loadParked},
		{"peers", tx.loadPeers},
		{"wakes", tx.loadWakes},
	} {
		if err := step.load(ctx, needs, s); err != nil {
			return nil, fmt.Errorf("load %s: %w", step.what, err)
		}
	}
	return s, nil
}

// wants collects distinct keys with the parameters that ask for them.
type wants[K comparable] struct {
	seen map[K]bool
	args []any
}

func newWants[K comparable](n, columns int) *wants[K] {
	return &wants[K]{seen: make(map[K]bool, n), args: make([]any, 0, n*columns)}
}

// first reports whether the key was not asked for yet.
func (w *wants[K]) first(k K) bool {
	if w.seen[k] {
		return false
	}
	w.seen[k] = true
	return true
}

func (tx *Tx) loadKeys(ctx context.Context, needs Needs, s *State) error {
	keys := make([]idKey, len(needs.Keys))
	for i, k := range needs.Keys {
		keys[i] = tx.store.keyOf(k)
	}
	if err := tx.findIDs(ctx, keys); err != nil {
		return err
	}
	bySeq := map[int64]*Known{}
	for i, k := range needs.Keys {
		found := tx.known[keys[i]]
		if found == nil || s.Keys[k] != nil {
			continue
		}
		// The committer changes its own.
		known := *found
		s.Keys[k] = &known
		if known.Seq != 0 {
			bySeq[known.Seq] = &known
		}
	}
	return tx.loadRecipients(ctx, bySeq)
}

// loadRecipients tells of known messages to whom deliveries exist.
func (tx *Tx) loadRecipients(ctx context.Context, bySeq map[int64]*Known) error {
	args := make([]any, 0, len(bySeq))
	for seq := range bySeq {
		args = append(args, seq)
	}
	return tx.query(ctx, bulk{
		head: "SELECT seq, recipient_id FROM deliveries WHERE seq IN (VALUES ", tail: ")", columns: 1,
	}, args, func(rows *sql.Rows) error {
		var seq, recipient int64
		if err := rows.Scan(&seq, &recipient); err != nil {
			return err
		}
		k := bySeq[seq]
		k.Recipients = append(k.Recipients, recipient)
		return nil
	})
}
