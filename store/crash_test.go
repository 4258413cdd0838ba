package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// crashDir names, in the environment of a child process, the directory in which
// it is to write until it is killed.
const crashDir = "STORE_TEST_CRASH_DIR"

// writeUntilKilled commits groups and reports each commit on stdout.
func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	var link RecipientRow
	err = s.Write(context.Background(), func(ctx context.Context, tx *Tx) (err error) {
		link, err = tx.EnsureRecipient(ctx, core.Recipient{Carrier: "mqtt"})
		return err
	})
	for seq := int64(1); err == nil; {
		var c Changes
		first := seq
		for range 1 + seq%7 {
			c.Messages = append(c.Messages, say(seq, "m"+strconv.FormatInt(seq, 10), "thread_abc"))
			c.Deliveries = append(c.Deliveries, deliverTo(seq, link.ID)...)
			seq++
		}
		if first > 50 {
			c.Results = []Result{{ID: core.DeliveryID{Seq: first - 50, Recipient: link.ID}, State: core.DeliveryAcked}}
		}
		err = s.Write(context.Background(), func(ctx context.Context, tx *Tx) error { return tx.Apply(ctx, &c) })
		if err == nil {
			fmt.Println(seq - 1)
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

func TestAKillLosesNothingThatWasReported(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		dir := filepath.Join(dir, strconv.Itoa(round))
		reported := killWriter(t, dir, time.Duration(100+150*round)*time.Millisecond)
		s := openStore(t, dir)
		integrity(t, s)
		last, err := s.LastSeq(t.Context())
		if err != nil || last < reported {
			t.Fatalf("reported %d, kept %d, %v", reported, last, err)
		}
		var keys []Key
		for seq := int64(1); seq <= last; seq++ {
			keys = append(keys, testKey("m"+strconv.FormatInt(seq, 10)))
		}
		state := load(t, s, Needs{Keys: keys})
		for i, key := range keys {
			if known := state.Keys[key]; known == nil || known.Seq != int64(i+1) || len(known.Recipients) != 1 {
				t.Fatalf("message %d of %d: %+v", i+1, last, known)
			}
		}
		if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, historyScan); err != nil || int64(len(page)) != last {
			t.Fatalf("%d messages of %d, %v", len(page), last, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killWriter lets a child write for a while after its first commit, kills it,
// and gives the last seq that it reported.
func killWriter(t *testing.T, dir string, after time.Duration) int64 {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var last int64
	var kill *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "error:") {
			t.Error(lines.Text())
			break
		}
		// A line that the kill cut short was not reported.
		if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil && n > last {
			last = n
		}
		if kill == nil {
			kill = time.AfterFunc(after, func() { _ = child.Process.Kill() })
		}
	}
	_ = child.Wait()
	if kill != nil {
		kill.Stop()
	}
	if last == 0 {
		t.Fatal("the child reported no commit")
	}
	return last
}

func TestAKilledHolderLeavesNoLock(t *testing.T) {
	dir := t.TempDir()
	killWriter(t, dir, 50*time.Millisecond)
	// Of two that start at once, while the log still has to be read back, one
	// gets in and the other is told so.
	type opened struct {
		s   *Store
		err error
	}
	results := make(chan opened)
	for range 2 {
		go func() {
			s, err := Open(context.Background(), Options{Dir: dir})
			results <- opened{s, err}
		}()
	}
	first, second := <-results, <-results
	if (first.err == nil) == (second.err == nil) {
		t.Fatalf("two at once: %v and %v", first.err, second.err)
	}
	for _, o := range []opened{first, second} {
		if o.s != nil {
			if err := o.s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
