package gateway

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

const benchGroup = 512

// BenchmarkAcceptPath is the accept path in process: parse, validate, dedup,
// rules, decisions for three recipients, commit. As in the gateway, envelopes
// are parsed where they come in while the committer writes those before them.
// BenchmarkBareInsert writes the same rows into the same tables and does nothing
// else. ns/op is per message.
func BenchmarkAcceptPath(b *testing.B) {
	g := benchGateway(b)
	quit := make(chan struct{})
	var committer sync.WaitGroup
	committer.Go(func() { g.committer.run(quit) })
	defer committer.Wait()
	defer close(quit)
	in := &intake{gateway: g, carrier: g.carriers["a"]}
	messages := benchMessages(b.N)
	// What is in flight fills the group that is written and the next one.
	room := make(chan struct{}, 2*benchGroup)
	b.ResetTimer()
	for _, raw := range messages {
		room <- struct{}{}
		must(b, in.Offer(b.Context(), core.Inbound{Payload: raw, Arrival: core.ArrivalIngress}, func(s core.Settlement) {
			if s.Verdict != core.VerdictCommitted || s.Duplicate {
				b.Errorf("settled %+v", s)
			}
			<-room
		}))
	}
	for range cap(room) {
		room <- struct{}{}
	}
}

// BenchmarkBareInsert is the limit that BenchmarkAcceptPath is measured by.
func BenchmarkBareInsert(b *testing.B) {
	dir := b.TempDir()
	s, err := store.Open(b.Context(), store.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 3 {
		must(b, s.Write(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.EnsureRecipient(ctx, core.Recipient{Carrier: fmt.Sprint(i)})
			return err
		}))
	}
	must(b, s.Close())
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "gateway.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(0)&_pragma=wal_autocheckpoint(2000)&_pragma=cache_size(-16384)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	inserts := []*sql.Stmt{
		prepareRows(b, db, "INSERT INTO messages (seq, channel_id, container_id, kind, carrier_id, arrival, committed_at, content, known_until, payload) VALUES ", 10),
		prepareRows(b, db, "INSERT INTO recent_ids (seq, key) VALUES ", 2),
		prepareRows(b, db, "INSERT INTO deliveries (seq, recipient_id, position, deadline, direct) VALUES ", 5),
		prepareRows(b, db, "INSERT INTO deliveries (seq, recipient_id, position, deadline, direct) VALUES ", 5),
	}
	messages := benchMessages(b.N + benchGroup)
	now := time.Now().UnixMilli()
	b.ResetTimer()
	for done := 0; done < b.N; done += benchGroup {
		args := make([][]any, len(inserts))
		for i, raw := range messages[done : done+benchGroup] {
			seq := done + i + 1
			args[0] = append(args[0], seq, 1, 1, 2, 1, 0, now, make([]byte, 32), now+300_000, raw)
			args[1] = append(args[1], seq, raw[benchIDAt:benchIDAt+16])
			args[2] = append(args[2], seq, 1, seq, now+86_400_000, 0)
			args[3] = append(args[3], seq, 2, seq, now+86_400_000, 0)
		}
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		for i, insert := range inserts {
			if _, err := tx.Stmt(insert).Exec(args[i]...); err != nil {
				b.Fatal(err)
			}
		}
		must(b, tx.Commit())
	}
}

func prepareRows(b *testing.B, db *sql.DB, head string, columns int) *sql.Stmt {
	row := "(?" + strings.Repeat(",?", columns-1) + ")"
	insert, err := db.Prepare(head + row + strings.Repeat(","+row, benchGroup-1))
	if err != nil {
		b.Fatal(err)
	}
	return insert
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// benchIDAt is where the id begins in a benchmark's message.
const benchIDAt = len(`{"protocol":"compozy-network/v0","id":"`)

// benchMessages makes says of 600 bytes in 16 threads.
func benchMessages(n int) [][]byte {
	messages := make([][]byte, n)
	for i := range messages {
		head := fmt.Sprintf(`{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","kind":"say","channel":"ops","surface":"thread","thread_id":"thread_%03d","from":"peer-%d","ts":%d,"body":{"text":"`,
			rand.Text(), i%16, i%20, time.Now().Unix())
		messages[i] = []byte(head + strings.Repeat("x", 600-len(head)-3) + `"}}`)
	}
	return messages
}

// benchGateway has two links and an attached peer, and nothing runs.
func benchGateway(b *testing.B) *Gateway {
	s, err := store.Open(b.Context(), store.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { must(b, s.Close()) })
	config := DefaultConfig()
	// Nobody takes the deliveries; to drop the oldest of a full queue is no part of
	// accepting.
	config.Store.MaxPending = math.MaxInt64
	g, err := New(Options{Config: config, Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		must(b, g.AddCarrier(name, "memory", carriertest.NewMemory(name, carriertest.MemoryConfig{})))
	}
	must(b, g.committer.try(group{controls: []*control{{
		run: func(ctx context.Context, t *transaction) (func(), error) {
			row, err := t.tx.Attach(ctx, core.Recipient{Carrier: "a", WorkspaceID: "ws", Channel: "ops", Peer: "idle"}, false)
			return func() { g.dir.put(row, nil) }, err
		},
		done: make(chan error, 1),
	}}}))
	return g
}
