package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"golang.org/x/sync/errgroup"
)

// openMerging opens a store that merges ids in tiny generations.
func openMerging(t *testing.T, dir string, size int) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: dir, Synchronous: "normal"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.ids.size = size
	return s
}

// sayMany are n messages from the seq on.
func sayMany(seq int64, n int) []Message {
	var list []Message
	for range n {
		list = append(list, say(seq, "m"+strconv.FormatInt(seq, 10), ""))
		seq++
	}
	return list
}

func countRows(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.readers.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKeysTellWorkspacesFromIDs(t *testing.T) {
	s := openStore(t, t.TempDir())
	seen := map[idKey]Key{}
	for _, k := range []Key{
		{"a", "b:c"},
		{"a:b", "c"},
		{"a:b:c", ""},
		{"", "a:b:c"},
		{"a", "b\x00c"},
		{"a\x00b", "c"},
		{"ab", "c"},
		{"a", "bc"},
		{"\x01a", "b"},
		{string(bytes.Repeat([]byte("a"), 300)), "b"},
		{string(bytes.Repeat([]byte("a"), 299)), "ab"},
	} {
		if other, twice := seen[s.keyOf(k)]; twice {
			t.Errorf("%q and %q have one key", k, other)
		}
		seen[s.keyOf(k)] = k
	}
}

func TestSeqsOfMessagesGrow(t *testing.T) {
	s := openStore(t, t.TempDir())
	apply(t, s, &Changes{Messages: sayMany(5, 2)})
	for _, messages := range [][]Message{{say(6, "x", "")}, {say(3, "x", "")}, {say(9, "x", ""), say(8, "y", "")}, {say(9, "x", ""), say(10, "x", "")}} {
		if err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			return tx.Apply(ctx, &Changes{Messages: messages})
		}); err == nil {
			t.Errorf("seqs from %d on were taken", messages[0].Seq)
		}
	}
	if got := load(t, s, Needs{Keys: []Key{testKey("x"), testKey("y")}}); len(got.Keys) != 0 {
		t.Fatalf("known: %s", dump(got))
	}
}

// Whatever the size of groups, a merge ends before the next has to begin, each
// commit does about as much as any other for each message that it accepts, and
// nothing is forgotten on the way.
func TestAMergeKeepsPaceAndEnds(t *testing.T) {
	for _, group := range []int{1, 7, 100} {
		t.Run(fmt.Sprintf("groups of %d", group), func(t *testing.T) {
			const size = 400
			s := openMerging(t, t.TempDir(), size)
			var before int64
			merges, most := 0, 0
			for seq := int64(1); seq <= 5*size; seq += int64(group) {
				merging := s.ids.frozen != nil
				apply(t, s, &Changes{Messages: sayMany(seq, group)})
				if !merging && s.ids.frozen != nil {
					merges++
				}
				most = max(most, countRows(t, s, "recent_ids"))
				var changes int64
				if err := s.writer.QueryRowContext(t.Context(), "SELECT total_changes()").Scan(&changes); err != nil {
					t.Fatal(err)
				}
				if done := changes - before; seq > 1 && done > int64(24*group+24) {
					t.Fatalf("the commit from seq %d on changed %d rows", seq, done)
				}
				before = changes
			}
			checkIDs(t, s)
			if merges < 3 || most > 2*size+5*group {
				t.Fatalf("%d merges, up to %d recent ids", merges, most)
			}
			var keys []Key
			for seq := range 5 * size {
				keys = append(keys, testKey("m"+strconv.Itoa(seq+1)))
			}
			if got := load(t, s, Needs{Keys: keys}); len(got.Keys) != len(keys) {
				t.Fatalf("%d of %d are known", len(got.Keys), len(keys))
			}
			integrity(t, s)
		})
	}
}

// A process that never lives for long still ends its merges.
func TestAMergeGoesOnAfterARestart(t *testing.T) {
	const size = 200
	dir := t.TempDir()
	seq, most := int64(1), 0
	for range 60 {
		s := openMerging(t, dir, size)
		apply(t, s, &Changes{Messages: sayMany(seq, 13)})
		seq += 13
		most = max(most, countRows(t, s, "recent_ids"))
		checkIDs(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if most > 2*size+13 {
		t.Fatalf("up to %d recent ids", most)
	}
}

func TestAnIDThatComesAgainHasItsNewerSeq(t *testing.T) {
	for between := range 8 {
		dir := t.TempDir()
		s := openMerging(t, dir, 4)
		seq, now := int64(0), noon
		accept := func(id string) {
			seq++
			m := say(seq, id, "")
			m.CommittedAt, m.KnownUntil = now, now
			apply(t, s, &Changes{Messages: []Message{m}})
		}
		for round := range 4 {
			accept("x")
			x := seq
			for i := range between {
				accept(fmt.Sprintf("other-%d-%d", round, i))
				got := load(t, s, Needs{Keys: []Key{testKey("x")}})
				if k := got.Keys[testKey("x")]; k == nil || k.Seq != x {
					t.Fatalf("with %d between, in round %d: %s", between, round, dump(got))
				}
				checkIDs(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openMerging(t, dir, 4)
			}
			now = now.Add(3 * time.Hour)
			if _, err := s.Prune(t.Context(), PruneOptions{Now: now, Retention: time.Hour, DedupRetention: time.Hour}); err != nil {
				t.Fatal(err)
			}
			if got := load(t, s, Needs{Keys: []Key{testKey("x")}}); len(got.Keys) != 0 {
				t.Fatalf("with %d between, in round %d, after its end: %s", between, round, dump(got))
			}
		}
	}
}

func TestDeadIDsAreSweptWhereAMergePasses(t *testing.T) {
	const size, lives = 250, 1000
	s := openMerging(t, t.TempDir(), size)
	now, most := noon, 0
	for seq := int64(1); seq < 8*lives; seq += 50 {
		messages := sayMany(seq, 50)
		for i := range messages {
			messages[i].CommittedAt, messages[i].KnownUntil = now, now
		}
		apply(t, s, &Changes{Messages: messages})
		now = now.Add(50 * time.Second)
		if _, err := s.Prune(t.Context(), PruneOptions{
			Now: now, Retention: lives / 2 * time.Second, DedupRetention: lives * time.Second,
		}); err != nil {
			t.Fatal(err)
		}
		most = max(most, countRows(t, s, "ids"))
	}
	checkIDs(t, s)
	t.Logf("up to %d rows for %d ids that live", most, lives)
	if most > 2*lives {
		t.Fatalf("up to %d rows for %d ids that live", most, lives)
	}
}

func TestTheFilterSparesNearlyEveryLook(t *testing.T) {
	s := openMerging(t, t.TempDir(), 2000)
	for seq := int64(1); seq < 20_000; seq += 500 {
		apply(t, s, &Changes{Messages: sayMany(seq, 500)})
	}
	checkIDs(t, s)
	vain := 0
	const tries = 20_000
	for range tries {
		var key idKey
		_, _ = rand.Read(key[:])
		if s.ids.filter[partOf(key)].may(key) {
			vain++
		}
	}
	t.Logf("%.1f %% of unknown ids are looked up", 100*float64(vain)/tries)
	if vain > tries/10 {
		t.Fatalf("%d of %d unknown ids are looked up", vain, tries)
	}
}

// Memory changes beside the snapshots of readers, which must not lose an id
// between the two.
func TestAReaderFindsEveryCommittedIDDuringAMerge(t *testing.T) {
	s := openMerging(t, t.TempDir(), 32)
	var committed atomic.Int64
	var reading errgroup.Group
	stop := make(chan struct{})
	for range 2 {
		reading.Go(func() error {
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return nil
				default:
				}
				last := committed.Load()
				if last == 0 {
					continue
				}
				// The latest in turn with all others.
				seq := last - n%min(last, 64)
				found, err := s.Inspect(context.Background(), testWorkspace, "m"+strconv.FormatInt(seq, 10))
				if err != nil || *found.Seq != seq {
					return fmt.Errorf("message %d of %d: %+v, %w", seq, last, found, err)
				}
			}
		})
	}
	for seq := int64(1); seq < 3000; seq += 3 {
		apply(t, s, &Changes{Messages: sayMany(seq, 3)})
		committed.Store(seq + 2)
	}
	close(stop)
	if err := reading.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestAReaderWhoseMemoryIsBehindFindsTheID(t *testing.T) {
	s := openMerging(t, t.TempDir(), 8)
	seq := int64(1)
	for later := range 40 {
		x := testKey("x" + strconv.Itoa(later))
		behind := s.ids.read(s.keyOf(x))
		apply(t, s, &Changes{Messages: []Message{say(seq, x.ID, "")}})
		want := seq
		if seq++; later > 0 {
			apply(t, s, &Changes{Messages: sayMany(seq, later)})
		}
		seq += int64(later)
		if err := s.readers.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
			if got, err := behind.newest(ctx, tx); err != nil || got != want {
				return fmt.Errorf("%d messages later: %d, must be %d, %w", later, got, want, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
