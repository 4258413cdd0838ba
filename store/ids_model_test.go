package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/compozy-gateway/gateway/core"
)

// idModel is what a plain map says of ids, beside a store that merges them in
// tiny generations.
type idModel struct {
	t    *testing.T
	dir  string
	s    *Store
	size int
	now  time.Time
	seq  int64
	ids  map[string]*modelID
}

type modelID struct {
	seq         int64
	parked      *Parked
	content     [32]byte
	committedAt time.Time
	knownUntil  time.Time
	// pruned is true when the message is gone and its id lingers.
	pruned bool
}

const (
	modelIDs       = 24
	modelRetention = 10 * time.Minute
	modelDedup     = 30 * time.Minute
)

var errGivenUp = errors.New("given up")

func (m *idModel) open() {
	m.s = openMerging(m.t, m.dir, m.size)
}

// draw draws some of the ids, none of them twice.
func (m *idModel) draw(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(0, modelIDs-1), func(i int) string { return fmt.Sprintf("id-%02d", i) }),
		1, 6, rapid.ID[string]).Draw(t, "ids")
}

// offer writes what is not known among the drawn ids, as the committer does: by
// what Load says. With fail, the transaction fails after all of it.
func (m *idModel) offer(t *rapid.T, park, fail bool) {
	drawn := m.draw(t)
	fresh := rapid.SampledFrom([]time.Duration{5 * time.Minute, time.Hour}).Draw(t, "fresh")
	// Another content, so that a first acceptance is told from a second.
	content := sha256.Sum256([]byte(rapid.StringN(0, 4, -1).Draw(t, "content")))
	taken := map[string]*modelID{}
	seq := m.seq
	err := m.s.Write(m.t.Context(), func(ctx context.Context, tx *Tx) error {
		var needs Needs
		for _, id := range drawn {
			needs.Keys = append(needs.Keys, testKey(id))
		}
		state, err := tx.Load(ctx, needs)
		if err != nil {
			return err
		}
		c := &Changes{Now: m.now}
		for _, id := range drawn {
			if (state.Keys[testKey(id)] != nil) != (m.ids[id] != nil) {
				t.Fatalf("%s is known: %+v, must be %+v", id, state.Keys[testKey(id)], m.ids[id])
			}
			if m.ids[id] != nil {
				continue
			}
			k := &modelID{content: content, committedAt: m.now, knownUntil: m.now.Add(fresh)}
			taken[id] = k
			if park {
				p := parkedTrace(id, "work", "a.one")
				p.ReceivedAt, p.KnownUntil, p.Content = m.now, k.knownUntil, content
				k.parked = p
				c.Parked = append(c.Parked, p)
				continue
			}
			seq += 1 + rapid.Int64Range(0, 2).Draw(t, "gap")
			k.seq = seq
			c.Messages = append(c.Messages, m.message(id, k))
		}
		if err := tx.Apply(ctx, c); err != nil {
			return err
		}
		if fail {
			return errGivenUp
		}
		return nil
	})
	switch {
	case fail && errors.Is(err, errGivenUp):
		return
	case err != nil || fail:
		t.Fatalf("write: %v", err)
	}
	m.seq = seq
	for id, k := range taken {
		m.ids[id] = k
	}
}

func (m *idModel) message(id string, k *modelID) Message {
	msg := say(k.seq, id, "")
	msg.CommittedAt, msg.KnownUntil, msg.Content = k.committedAt, k.knownUntil, k.content
	return msg
}

// unpark releases what is parked among the drawn ids, or gives it up.
func (m *idModel) unpark(t *rapid.T, release bool) {
	c := &Changes{Now: m.now}
	for _, id := range m.draw(t) {
		k := m.ids[id]
		if k == nil || k.parked == nil {
			continue
		}
		c.Unparked = append(c.Unparked, k.parked.ID)
		if !release {
			c.Forgotten = append(c.Forgotten, testKey(id))
			delete(m.ids, id)
			continue
		}
		m.seq++
		k.parked, k.seq, k.committedAt = nil, m.seq, m.now
		msg := m.message(id, k)
		msg.Released = true
		c.Messages = append(c.Messages, msg)
	}
	apply(m.t, m.s, c)
}

func (m *idModel) prune(t *rapid.T) {
	o := PruneOptions{Now: m.now, Retention: modelRetention, DedupRetention: modelDedup, BatchRows: rapid.IntRange(1, 5).Draw(t, "batch")}
	if _, err := m.s.Prune(m.t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for id, k := range m.ids {
		if k.parked != nil {
			continue
		}
		k.pruned = k.pruned || k.committedAt.Before(m.now.Add(-modelRetention))
		if k.pruned && k.knownUntil.Before(m.now) && k.committedAt.Before(m.now.Add(-modelDedup)) {
			delete(m.ids, id)
		}
	}
}

func (m *idModel) reopen() {
	if err := m.s.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.open()
}

// crash goes on with the files as they lie on the disk while the store is open.
func (m *idModel) crash() {
	dir := m.t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(m.dir, databaseFile) + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, databaseFile)+suffix, b, 0o600)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := m.s.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.dir = dir
	m.open()
}

// check compares every answer that the store gives about ids.
func (m *idModel) check(t *rapid.T) {
	var needs Needs
	for i := range modelIDs {
		needs.Keys = append(needs.Keys, testKey(fmt.Sprintf("id-%02d", i)))
	}
	state := load(m.t, m.s, needs)
	for _, key := range needs.Keys {
		got, want := state.Keys[key], m.ids[key.ID]
		if (got != nil) != (want != nil) {
			t.Fatalf("%s is known: %+v, must be %+v", key.ID, got, want)
		}
		if want != nil && (got.Seq != want.seq || got.Parked != (want.parked != nil) || got.Content != want.content ||
			!got.CommittedAt.Equal(want.committedAt.Truncate(time.Millisecond))) {
			t.Fatalf("%s: %+v, must be %+v", key.ID, *got, *want)
		}
	}
	for _, id := range m.draw(t) {
		key, want := testKey(id), m.ids[id]
		found, err := m.s.Inspect(m.t.Context(), key.WorkspaceID, key.ID)
		switch shown := want != nil && !want.pruned; {
		case !shown && !errors.Is(err, core.ErrNotFound):
			t.Fatalf("inspection of %s: %+v, %v", key.ID, found, err)
		case shown && (err != nil || found.Parked != (want.parked != nil) || want.seq != 0 && *found.Seq != want.seq):
			t.Fatalf("inspection of %s: %+v, %v; must be %+v", key.ID, found, err, *want)
		}
	}
	checkIDs(t, m.s)
}

// fataler is what rapid's and the testing package's tests have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkIDs holds the tables to what the lookup rests on: memory has the rows of
// recent_ids that are not merged, under the newest seq, and every id that lives
// is in one of the two.
func checkIDs(t fataler, s *Store) {
	t.Helper()
	var trouble []string
	ctx := context.Background()
	rows, err := s.readers.DB.QueryContext(ctx, "SELECT r.seq, r.key FROM recent_ids r WHERE r.key > (SELECT merged_key FROM gateway)"+
		" OR r.seq > (SELECT frozen_through FROM gateway)")
	if err != nil {
		t.Fatalf("read the recent ids: %v", err)
	}
	newest := map[idKey]int64{}
	if err := eachRow(rows, func(rows *sql.Rows) error {
		seq, key, err := scanID(rows)
		newest[key] = max(newest[key], seq)
		return err
	}); err != nil {
		t.Fatalf("read the recent ids: %v", err)
	}
	for key, seq := range newest {
		if got := s.ids.find(key); got != seq {
			trouble = append(trouble, fmt.Sprintf("seq %d of recent_ids is %d in memory", seq, got))
		}
	}
	for _, lost := range []string{
		"SELECT COUNT(*) FROM messages m WHERE m.seq NOT IN (SELECT seq FROM ids) AND m.seq NOT IN (SELECT seq FROM recent_ids)",
		"SELECT COUNT(*) FROM lingering m WHERE m.seq NOT IN (SELECT seq FROM ids) AND m.seq NOT IN (SELECT seq FROM recent_ids)",
		"SELECT COUNT(*) FROM recent_ids r, gateway g WHERE r.seq <= g.frozen_through AND r.key <= g.merged_key AND NOT EXISTS" +
			" (SELECT 1 FROM ids i WHERE i.key = r.key AND i.seq >= r.seq) AND EXISTS (SELECT 1 FROM messages m WHERE m.seq = r.seq)",
	} {
		var n int
		if err := s.readers.DB.QueryRowContext(ctx, lost).Scan(&n); err != nil || n != 0 {
			trouble = append(trouble, fmt.Sprintf("%d by %s, %v", n, lost, err))
		}
	}
	rows, err = s.readers.DB.QueryContext(ctx, "SELECT seq, key FROM ids")
	if err == nil {
		err = eachRow(rows, func(rows *sql.Rows) error {
			seq, key, err := scanID(rows)
			if !s.ids.filter[partOf(key)].may(key) {
				trouble = append(trouble, fmt.Sprintf("seq %d of ids is hidden by the filter", seq))
			}
			return err
		})
	}
	if err != nil {
		t.Fatalf("read the ids: %v", err)
	}
	if len(trouble) > 0 {
		t.Fatalf("%s", strings.Join(trouble, "\n"))
	}
}

func TestIDsAreKnownAsAPlainMapWouldKnowThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &idModel{t: t, dir: t.TempDir(), size: rapid.IntRange(1, 12).Draw(rt, "size"), now: noon, ids: map[string]*modelID{}}
		m.open()
		defer func() { _ = m.s.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"look":    m.check,
			"accept":  func(rt *rapid.T) { m.offer(rt, false, false) },
			"again":   func(rt *rapid.T) { m.offer(rt, false, false) },
			"park":    func(rt *rapid.T) { m.offer(rt, true, false) },
			"fail":    func(rt *rapid.T) { m.offer(rt, rapid.Bool().Draw(rt, "park"), true) },
			"release": func(rt *rapid.T) { m.unpark(rt, true) },
			"give up": func(rt *rapid.T) { m.unpark(rt, false) },
			"wait": func(rt *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(rt, "minutes")) * time.Minute)
			},
			"prune":  m.prune,
			"reopen": func(*rapid.T) { m.reopen() },
			"crash":  func(*rapid.T) { m.crash() },
		})
		m.check(rt)
	})
}
