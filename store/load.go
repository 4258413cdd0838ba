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
	names := map[int64]string{}
	want := newWants[Key](len(needs.Keys), 2)
	for _, k := range needs.Keys {
		if !want.first(k) {
			continue
		}
		ws, err := tx.workspaceID(ctx, k.WorkspaceID, false)
		if err != nil {
			return err
		}
		if ws != 0 {
			names[ws] = k.WorkspaceID
			want.args = append(want.args, ws, k.ID)
		}
	}
	bySeq := map[int64]*Known{}
	err := tx.query(ctx, bulk{
		head: "SELECT workspace_id, id, seq, content, committed_at FROM dedup WHERE (workspace_id, id) IN (VALUES ",
		tail: ")", columns: 2,
	}, want.args, func(rows *sql.Rows) error {
		var ws, seq, at int64
		var id string
		var content sql.RawBytes
		if err := rows.Scan(&ws, &id, &seq, &content, &at); err != nil {
			return err
		}
		k := &Known{Seq: seq, Parked: seq == 0, CommittedAt: instant(at)}
		copy(k.Content[:], content)
		s.Keys[Key{names[ws], id}] = k
		if seq != 0 {
			bySeq[seq] = k
		}
		return nil
	})
	if err != nil || len(bySeq) == 0 {
		return err
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
