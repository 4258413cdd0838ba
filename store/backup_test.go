package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// writeInBackground commits one message after the other until stop is called.
func writeInBackground(t *testing.T, s *Store) (committed *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	committed = new(atomic.Int64)
	var done sync.WaitGroup
	done.Go(func() {
		for seq := int64(1); ctx.Err() == nil; seq++ {
			m := say(seq, "m"+strconv.FormatInt(seq, 10), "thread_abc")
			if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
				return tx.Apply(ctx, &Changes{Messages: []Message{m}})
			}); err == nil {
				committed.Store(seq)
			} else if ctx.Err() == nil {
				t.Errorf("write %d during the backup: %v", seq, err)
				return
			}
		}
	})
	return committed, func() { cancel(); done.Wait() }
}

func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

func TestABackupUnderLoadIsWhole(t *testing.T) {
	for _, c := range []struct {
		name   string
		backup func(ctx context.Context, s *Store, file string) error
	}{
		{"by the store", func(ctx context.Context, s *Store, file string) error { return s.BackupTo(ctx, file) }},
		{"by another", func(ctx context.Context, s *Store, file string) error { return Backup(ctx, s.dir, file) }},
	} {
		s := openStore(t, t.TempDir())
		committed, stop := writeInBackground(t, s)
		waitFor(t, "the 50th commit", func() bool { return committed.Load() >= 50 })
		before := committed.Load()
		dir := t.TempDir()
		file := filepath.Join(dir, databaseFile)
		if err := c.backup(t.Context(), s, file); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		after := committed.Load()
		waitFor(t, "a commit after the backup", func() bool { return committed.Load() > after })
		stop()
		if err := c.backup(t.Context(), s, file); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: over an existing file: %v", c.name, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the copy's mode: %v, %v", c.name, info.Mode(), err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: beside the copy: %v, %v", c.name, entries, err)
		}

		// The copy is a data directory of its own.
		restored := openStore(t, dir)
		integrity(t, restored)
		last, err := restored.LastSeq(t.Context())
		if err != nil || last < before {
			t.Fatalf("%s: the copy ends at %d, %d were committed before; %v", c.name, last, before, err)
		}
		if page, err := restored.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, historyScan); err != nil || int64(len(page)) != last {
			t.Errorf("%s: %d messages of %d, %v", c.name, len(page), last, err)
		}
		if restored.InstanceID() != s.InstanceID() {
			t.Errorf("%s: the copy has another identity", c.name)
		}
	}
}

func TestABackupWithoutARunningGateway(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	apply(t, s, &Changes{Messages: []Message{say(1, "x", "")}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := Backup(t.Context(), dir, filepath.Join(copied, databaseFile)); err != nil {
		t.Fatal(err)
	}
	if got := load(t, openStore(t, copied), Needs{Keys: []Key{testKey("x")}}); len(got.Keys) != 1 {
		t.Fatal("the copy lacks the message")
	}
	// After a kill the log still holds commits.
	killed := t.TempDir()
	reported := killWriter(t, killed, 50*time.Millisecond)
	copied = t.TempDir()
	if err := Backup(t.Context(), killed, filepath.Join(copied, databaseFile)); err != nil {
		t.Fatal(err)
	}
	if last, err := openStore(t, copied).LastSeq(t.Context()); err != nil || last < reported {
		t.Fatalf("the copy ends at %d of %d, %v", last, reported, err)
	}
	if err := Backup(t.Context(), t.TempDir(), filepath.Join(copied, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("of an empty directory: %v", err)
	}
}
