package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/compozy-gateway/gateway/core"
)

// fillUp writes messages of 100 kB until the store takes no more, and gives the
// ids that were taken and the failure.
func fillUp(t *testing.T, s *Store, link int64) (taken []Key, failure error) {
	t.Helper()
	for seq := int64(1); seq <= 1000; seq++ {
		m := say(seq, fmt.Sprintf("m%d", seq), "thread_abc")
		m.Payload = append(m.Payload, make([]byte, 100_000)...)
		err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			return tx.Apply(ctx, &Changes{Messages: []Message{m}, Deliveries: deliverTo(seq, link)})
		})
		if err != nil {
			return taken, err
		}
		taken = append(taken, m.Key)
	}
	t.Fatal("the store never filled up")
	return nil, nil
}

func checkFullAndRecovered(t *testing.T, s *Store, free func()) {
	t.Helper()
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	taken, failure := fillUp(t, s, link)
	if !Passing(failure) {
		t.Fatalf("the failure does not pass: %v", failure)
	}
	if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 1000); err != nil || len(page) != len(taken) {
		t.Fatalf("readable while full: %d of %d, %v", len(page), len(taken), err)
	}
	free()
	next := int64(len(taken) + 1)
	apply(t, s, &Changes{Messages: []Message{say(next, "after", "")}, Deliveries: deliverTo(next, link)})
	got := load(t, s, Needs{Keys: append(taken, testKey("after"))})
	if len(got.Keys) != len(taken)+1 {
		t.Fatalf("known afterwards: %d of %d", len(got.Keys), len(taken)+1)
	}
	integrity(t, s)
}

func TestAFullDatabasePasses(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustExec(t, s.writer.DB, "PRAGMA max_page_count = 500")
	checkFullAndRecovered(t, s, func() { mustExec(t, s.writer.DB, "PRAGMA max_page_count = 1000000") })
}

// A full file system differs from a full database: the log cannot be written,
// and COMMIT is what fails. It takes a mount of its own, so it is one of the
// tests that only root runs.
func TestAFullDiskPasses(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); errors.Is(err, unix.EPERM) {
		t.Log("mounting is not allowed here; the full database alone is tested")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(dir, "data"))
	checkFullAndRecovered(t, s, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}
