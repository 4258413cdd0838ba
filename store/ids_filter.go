package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
)

// The filter of ids: a Bloom filter for each of 4096 parts of the keys, which
// tells of nearly every new id, without a read, that ids does not hold it. A
// part is written by the transaction that merges into it, so it lacks no key.
const (
	filterParts  = 1 << 12
	filterHashes = 4
	// A part is made again when it has less than sparseBits for each id: then a
	// fortieth of the new ids is looked up in vain. It then gets between
	// denseBits and twice that, by chance, so that the parts take turns.
	sparseBits = 8
	denseBits  = 16
	leastBytes = 32
)

// filterPart is a row of id_filter.
type filterPart struct {
	// held is how many ids were put in.
	held int
	bits []byte
}

func partOf(key idKey) int { return int(binary.BigEndian.Uint16(key[:])) >> 4 }

// eachBit visits the bits of a key until visit says no. Keys are hashes, so
// their own bytes serve.
func (p *filterPart) eachBit(key idKey, visit func(at int, bit byte) bool) bool {
	at, step := binary.LittleEndian.Uint32(key[4:]), binary.LittleEndian.Uint32(key[8:])|1
	n := uint32(len(p.bits)) * 8
	for range filterHashes {
		if i := at % n; !visit(int(i/8), 1<<(i%8)) {
			return false
		}
		at += step
	}
	return true
}

// may reports whether the key can have been put in.
func (p *filterPart) may(key idKey) bool {
	return len(p.bits) > 0 && p.eachBit(key, func(at int, bit byte) bool { return p.bits[at]&bit != 0 })
}

func (p *filterPart) put(key idKey) {
	p.held++
	p.eachBit(key, func(at int, bit byte) bool {
		p.bits[at] |= bit
		return true
	})
}

func (p *filterPart) full() bool { return p.held*sparseBits > len(p.bits)*8 }

// filterIDs puts ids, which are in order and in the table already, into their
// parts.
func (tx *Tx) filterIDs(ctx context.Context, rows []idRow) error {
	tx.filter = map[int]*filterPart{}
	for len(rows) > 0 {
		n := partOf(rows[0].key)
		end := slices.IndexFunc(rows, func(row idRow) bool { return partOf(row.key) != n })
		if end < 0 {
			end = len(rows)
		}
		old := &tx.store.ids.filter[n]
		p := &filterPart{old.held + end, slices.Clone(old.bits)}
		if p.full() {
			if err := tx.refill(ctx, n, p, rows[end-1].key); err != nil {
				return err
			}
		} else {
			p.held = old.held
			for i := range rows[:end] {
				p.put(rows[i].key)
			}
		}
		tx.filter[n] = p
		if _, err := tx.run(ctx, "INSERT OR REPLACE INTO id_filter (part, held, bits) VALUES (?, ?, ?)", n, p.held, p.bits); err != nil {
			return err
		}
		rows = rows[end:]
	}
	return nil
}

// refill makes a part of what ids holds now.
func (tx *Tx) refill(ctx context.Context, n int, p *filterPart, chance idKey) error {
	var first, next [2]byte
	binary.BigEndian.PutUint16(first[:], uint16(n<<4))
	binary.BigEndian.PutUint16(next[:], uint16((n+1)<<4))
	query, args := "SELECT seq, key FROM ids WHERE key >= ? AND key < ?", []any{first[:], next[:]}
	if n == filterParts-1 {
		query, args = "SELECT seq, key FROM ids WHERE key >= ?", args[:1]
	}
	var keys []idKey
	if err := tx.each(ctx, func(rows *sql.Rows) error {
		_, key, err := scanID(rows)
		keys = append(keys, key)
		return err
	}, query, args...); err != nil {
		return fmt.Errorf("fill part %d of the filter: %w", n, err)
	}
	bits := len(keys) * (denseBits + denseBits*int(chance[15])/256)
	*p = filterPart{bits: make([]byte, max(leastBytes, (bits+7)/8))}
	for _, key := range keys {
		p.put(key)
	}
	return nil
}

// loadFilter reads the filter as it was left.
func (m *idMemory) loadFilter(ctx context.Context, s *Store) error {
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var n int
		var p filterPart
		if err := rows.Scan(&n, &p.held, &p.bits); err != nil {
			return err
		}
		m.filter[n] = p
		return nil
	}, "SELECT part, held, bits FROM id_filter")
	if err != nil {
		return fmt.Errorf("read the filter of ids: %w", err)
	}
	return nil
}
