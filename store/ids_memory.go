package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/uptrace/bun"
)

const (
	// generationSize is how many ids are merged together: the larger it is, the
	// more of them share a page of ids. While one is merged the next is gathered,
	// so about as many are in memory, with 24 bytes for each.
	generationSize = 384 << 10
	// partSpare is how many ids a part of a generation grows by.
	partSpare = 12
)

// idMemory is what of the tables of ids is in memory: what of recent_ids is not
// merged yet, and the whole of id_filter. It has what was committed, and changes
// between one transaction and the next, while no other can begin.
type idMemory struct {
	// size is how many ids make a generation.
	size int

	// mu is held while ids are taken over, and by readers.
	mu      sync.RWMutex
	current *generation
	// frozen is on its way into ids, nil when nothing is; the parts that have got
	// there are empty.
	frozen *generation
	// last is the highest seq there was.
	last int64

	// What follows is the writer's alone.
	merge  mergeState
	filter [filterParts]filterPart
}

// idRow is a row of recent_ids.
type idRow struct {
	seq int64
	key idKey
}

// generation is a run of accepted ids, in the parts of the filter. Those are so
// small that looking through one costs about what a hash table does, at half the
// memory.
type generation struct {
	held  int
	parts [filterParts][]idRow
}

func (g *generation) add(row idRow) {
	n := partOf(row.key)
	part := g.parts[n]
	if len(part) == cap(part) {
		part = append(make([]idRow, 0, len(part)+partSpare), part...)
	}
	g.parts[n] = append(part, row)
	g.held++
}

// find gives the newest seq under a key, 0 for none: an id that was forgotten may
// have come again.
func (g *generation) find(key idKey) int64 {
	part := g.parts[partOf(key)]
	for i := len(part) - 1; i >= 0; i-- {
		if part[i].key == key {
			return part[i].seq
		}
	}
	return 0
}

// place is where a merge stands in a generation.
type place struct{ part, taken int }

// after gives up to n rows behind the place, in the order of their keys, and the
// place behind them.
func (g *generation) after(p place, n int) ([]idRow, place) {
	var rows []idRow
	for p.part < len(g.parts) && len(rows) < n {
		part := g.newest(p.part)
		k := min(n-len(rows), len(part)-p.taken)
		rows = append(rows, part[p.taken:p.taken+k]...)
		if p.taken += k; p.taken == len(part) {
			p = place{part: p.part + 1}
		}
	}
	return rows, p
}

// newest gives a part in order, without ids that came again under a newer seq.
// It is a copy: readers look through the part itself meanwhile.
func (g *generation) newest(part int) []idRow {
	rows := slices.SortedFunc(slices.Values(g.parts[part]), func(a, b idRow) int {
		if order := bytes.Compare(a.key[:], b.key[:]); order != 0 {
			return order
		}
		return cmp.Compare(b.seq, a.seq)
	})
	return slices.CompactFunc(rows, func(a, b idRow) bool { return a.key == b.key })
}

// find gives the newest seq under a key, 0 for none, to whoever may not be
// overtaken by a commit: the writer, or who holds the lock.
func (m *idMemory) find(key idKey) int64 {
	seq := m.current.find(key)
	if seq == 0 && m.frozen != nil {
		seq = m.frozen.find(key)
	}
	return seq
}

// adopt takes over what a transaction committed.
func (m *idMemory) adopt(tx *Tx) {
	if len(tx.accepted) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range tx.accepted {
		m.current.add(row)
		m.last = row.seq
	}
	for n, part := range tx.filter {
		m.filter[n] = *part
	}
	before := m.merge.place.part
	m.merge = tx.merge
	switch {
	case m.merge.frozenThrough == 0:
		m.frozen = nil
	case m.frozen == nil:
		m.frozen, m.current = m.current, &generation{}
	default:
		clear(m.frozen.parts[before:m.merge.place.part])
	}
}

// loadIDs reads recent_ids and the filter as they were left.
func (s *Store) loadIDs(ctx context.Context, size int) error {
	m := &idMemory{size: size, current: &generation{}}
	err := s.readers.DB.QueryRowContext(ctx, "SELECT frozen_through, last_seq FROM gateway").Scan(&m.merge.frozenThrough, &m.last)
	if err != nil {
		return fmt.Errorf("read how far ids are merged: %w", err)
	}
	if m.merge.frozenThrough != 0 {
		m.frozen = &generation{}
	}
	if err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		seq, key, err := scanID(rows)
		if seq > m.merge.frozenThrough {
			m.current.add(idRow{seq, key})
		} else {
			m.frozen.add(idRow{seq, key})
		}
		return err
		// What is merged is in ids, under its seq or a newer one.
	}, "SELECT r.seq, r.key FROM recent_ids r, gateway g WHERE r.seq > g.frozen_through OR r.key > g.merged_key ORDER BY r.seq"); err != nil {
		return fmt.Errorf("read the recent ids: %w", err)
	}
	if err := m.loadFilter(ctx, s); err != nil {
		return err
	}
	s.ids = m
	return nil
}

// reading is what memory says of a key at one moment, for a reader whose
// snapshot of the database is taken after it.
type reading struct {
	key idKey
	// seq is the newest in memory, 0 for none, and last the highest of all.
	seq, last int64
}

func (m *idMemory) read(key idKey) reading {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return reading{key, m.find(key), m.last}
}

// newest is the newest seq under the key in the snapshot, 0 for none. Memory may
// be behind the snapshot by a commit or two: those are at the end of recent_ids.
func (r reading) newest(ctx context.Context, tx bun.Tx) (seq int64, err error) {
	err = tx.Tx.QueryRowContext(ctx, "SELECT max(?1, COALESCE((SELECT seq FROM ids WHERE key = ?2), 0),"+
		" COALESCE((SELECT MAX(seq) FROM recent_ids WHERE seq > ?3 AND key = ?2), 0))", r.seq, r.key[:], r.last).Scan(&seq)
	return seq, err
}
