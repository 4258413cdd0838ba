package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func prune(t *testing.T, s *Store, o PruneOptions) PruneResult {
	t.Helper()
	if o.BatchRows == 0 {
		o.BatchRows = 3
	}
	r, err := s.Prune(t.Context(), o)
	if err != nil {
		t.Fatalf("prune: %v", err)
	}
	integrity(t, s)
	return r
}

func retained(t *testing.T, s *Store) []int64 {
	t.Helper()
	page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var list []int64
	for _, m := range page {
		list = append(list, m.Seq)
	}
	return list
}

func TestRetentionKeepsWhatStillHasToGoOut(t *testing.T) {
	s, mqtt, nats := outbox(t, 10)
	end := func(seq int64, state core.DeliveryState, recipients ...int64) (list []Result) {
		for _, r := range recipients {
			list = append(list, Result{ID: core.DeliveryID{Seq: seq, Recipient: r}, State: state, Reason: "no"})
		}
		return list
	}
	var results []Result
	for seq := int64(1); seq <= 10; seq++ {
		switch seq {
		case 3:
			results = append(results, end(seq, core.DeliveryAcked, mqtt)...) // The other is pending.
		case 5:
			results = append(results, end(seq, core.DeliveryDead, mqtt)...)
			results = append(results, end(seq, core.DeliveryExpired, nats)...)
		default:
			results = append(results, end(seq, core.DeliveryAcked, mqtt, nats)...)
		}
	}
	apply(t, s, &Changes{Results: results})
	young := say(11, "young", "")
	young.CommittedAt = noon.Add(time.Hour)
	apply(t, s, &Changes{Messages: []Message{young}})

	o := PruneOptions{Now: noon.Add(24 * time.Hour), Retention: 24 * time.Hour, DedupRetention: 48 * time.Hour}
	if r := prune(t, s, o); r.Messages != 0 {
		t.Fatalf("exactly at the retention: %+v", r)
	}
	o.Now = o.Now.Add(time.Millisecond)
	if r := prune(t, s, o); r.Messages != 8 || r.Keys != 0 {
		t.Fatalf("pruned %+v", r)
	}
	if got := retained(t, s); !slices.Equal(got, []int64{3, 5, 11}) {
		t.Fatalf("retained %v", got)
	}
	// History is whole from the first message behind what was pruned.
	if oldest, newest, err := s.SeqRange(t.Context()); err != nil || oldest != 11 || newest != 11 {
		t.Fatalf("range %d to %d, %v", oldest, newest, err)
	}
	if _, err := s.Inspect(t.Context(), testWorkspace, "b"); !errors.Is(err, core.ErrNotFound) {
		t.Fatalf("inspection of a pruned message: %v", err)
	}
	// A dead one that is discarded, and a pending one that ends, go too.
	write(t, s, func(ctx context.Context, tx *Tx) error {
		return tx.Discard(ctx, core.DeliveryID{Seq: 5, Recipient: mqtt})
	})
	apply(t, s, &Changes{Results: end(3, core.DeliveryAcked, nats)})
	if r := prune(t, s, o); r.Messages != 2 {
		t.Fatalf("pruned %+v", r)
	}
	if last, err := s.LastSeq(t.Context()); err != nil || last != 11 {
		t.Fatalf("last seq %d, %v", last, err)
	}
}

func TestIDsOutliveTheirMessages(t *testing.T) {
	s, mqtt, nats := outbox(t, 3)
	long := say(4, "long", "")
	long.KnownUntil = noon.Add(100 * time.Hour)
	apply(t, s, &Changes{Messages: []Message{long}})
	for seq := int64(1); seq <= 3; seq++ {
		for _, r := range []int64{mqtt, nats} {
			apply(t, s, &Changes{Results: []Result{{ID: core.DeliveryID{Seq: seq, Recipient: r}, State: core.DeliveryAcked}}})
		}
	}
	keys := []Key{testKey("b"), testKey("c"), testKey("d"), testKey("long")}
	o := PruneOptions{Retention: time.Hour, DedupRetention: 48 * time.Hour}
	for _, step := range []struct {
		at       time.Duration
		messages int
		known    int
	}{{59 * time.Minute, 4, 4}, {2 * time.Hour, 0, 4}, {48 * time.Hour, 0, 4}, {49 * time.Hour, 0, 1}, {100 * time.Hour, 0, 1}, {101 * time.Hour, 0, 0}} {
		o.Now = noon.Add(step.at)
		prune(t, s, o)
		state := load(t, s, Needs{Keys: keys})
		if got := len(retained(t, s)); got != step.messages || len(state.Keys) != step.known {
			t.Fatalf("after %v: %d messages, %d ids", step.at, got, len(state.Keys))
		}
		// An id that lives on still tells an echo from a duplicate.
		if k := state.Keys[testKey("b")]; k != nil && (k.Seq != 1 || !slices.Equal(k.Recipients, []int64{mqtt, nats}) || k.Content != say(1, "b", "").Content) {
			t.Fatalf("after %v: %+v", step.at, k)
		}
	}
	var left int
	if err := s.readers.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM deliveries").Scan(&left); err != nil || left != 0 {
		t.Fatalf("%d deliveries are left, %v", left, err)
	}
	// A forgotten id may be accepted again, under a new seq.
	apply(t, s, &Changes{Messages: []Message{say(5, "b", "")}})
}

func TestAShorterDedupRetentionDoesNotShortenAMessage(t *testing.T) {
	s := openStore(t, t.TempDir())
	apply(t, s, &Changes{Messages: []Message{say(1, "x", "")}})
	o := PruneOptions{Now: noon.Add(2 * time.Hour), Retention: 3 * time.Hour, DedupRetention: time.Hour}
	if r := prune(t, s, o); r.Messages+r.Keys != 0 {
		t.Fatalf("pruned %+v", r)
	}
	o.Now = noon.Add(4 * time.Hour)
	if r := prune(t, s, o); r.Messages != 1 || r.Keys != 1 {
		t.Fatalf("pruned %+v", r)
	}
}

func TestParkedIDsAreNotPruned(t *testing.T) {
	s := openStore(t, t.TempDir())
	apply(t, s, &Changes{Parked: []*Parked{parkedTrace("t", "job", "a.one")}})
	prune(t, s, PruneOptions{Now: noon.Add(9999 * time.Hour), Retention: time.Hour, DedupRetention: time.Hour})
	if got := load(t, s, Needs{Keys: []Key{testKey("t")}}); !got.Keys[testKey("t")].Parked {
		t.Fatalf("known: %s", dump(got))
	}
}

func TestTheRejectionLogIsBoundedInTimeAndRows(t *testing.T) {
	s := openStore(t, t.TempDir())
	var list []Rejection
	for i := range 50 {
		list = append(list, Rejection{
			Hash: sha256.Sum256([]byte{byte(i)}), Carrier: "mqtt", Reason: core.ReasonMalformed, At: noon.Add(time.Duration(i) * time.Minute),
		})
	}
	apply(t, s, &Changes{Rejections: list})
	count := func() (n int) {
		if err := s.readers.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM rejections").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	o := PruneOptions{Now: noon.Add(time.Hour), RejectionRetention: time.Hour, MaxRejections: 50}
	if r := prune(t, s, o); r.Rejections != 0 || count() != 50 {
		t.Fatalf("pruned %+v", r)
	}
	o.Now = o.Now.Add(10 * time.Minute)
	if r := prune(t, s, o); r.Rejections != 10 || count() != 40 {
		t.Fatalf("pruned %+v", r)
	}
	o.MaxRejections = 15
	if r := prune(t, s, o); r.Rejections != 25 || count() != 15 {
		t.Fatalf("pruned %+v", r)
	}
}

func TestRetentionShrinksTheFileWhileOthersWrite(t *testing.T) {
	s := openStore(t, t.TempDir())
	a := newAccepting(t, s)
	for range 20 {
		write(t, s, func(ctx context.Context, tx *Tx) error { return a.accept(ctx, tx, a.messages(500)) })
	}
	write(t, s, func(ctx context.Context, tx *Tx) error {
		for _, link := range a.links {
			if n, err := tx.ExpirePending(ctx, link, noon.Add(48*time.Hour), 1<<20); err != nil || n != 10_000 {
				return fmt.Errorf("expired %d, %w", n, err)
			}
		}
		return nil
	})
	before, err := s.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Commits in between wait for one small step at most.
	slowest := time.Duration(0)
	ctx, cancel := context.WithCancel(t.Context())
	writing := make(chan error, 1)
	go func() {
		for seq := int64(100_000); ; seq++ {
			if ctx.Err() != nil {
				writing <- nil
				return
			}
			m := say(seq, fmt.Sprintf("during-%d", seq), "")
			m.CommittedAt = noon.Add(1000 * time.Hour)
			started := time.Now()
			if err := s.Write(context.Background(), func(ctx context.Context, tx *Tx) error {
				return tx.Apply(ctx, &Changes{Messages: []Message{m}})
			}); err != nil {
				writing <- err
				return
			}
			slowest = max(slowest, time.Since(started))
		}
	}()
	r := prune(t, s, PruneOptions{Now: noon.Add(1000 * time.Hour), Retention: time.Hour, DedupRetention: time.Hour, BatchRows: 500})
	cancel()
	if err := <-writing; err != nil {
		t.Fatalf("write during the retention: %v", err)
	}
	if r.Messages != 10_000 || r.Keys != 10_000 || r.Pages == 0 {
		t.Fatalf("pruned %+v", r)
	}
	mustExec(t, s.writer.DB, "PRAGMA wal_checkpoint(TRUNCATE)")
	after, err := s.Size(t.Context())
	if err != nil || after > before/4 {
		t.Fatalf("%d bytes became %d, %v", before, after, err)
	}
	if slowest > 2*time.Second {
		t.Errorf("one commit took %v", slowest)
	}
	t.Logf("%d bytes became %d; the slowest commit took %v", before, after, slowest)
}

func TestTheFileStaysSmall(t *testing.T) {
	s := openStore(t, t.TempDir())
	a := newAccepting(t, s)
	const groups, size = 40, 250
	for range groups {
		messages := a.messages(size)
		write(t, s, func(ctx context.Context, tx *Tx) error { return a.accept(ctx, tx, messages) })
		var results []Result
		for _, d := range a.deliveries(messages) {
			results = append(results, Result{
				ID: d.ID, State: core.DeliveryAcked, Attempts: 1, Ack: core.Ack{Kind: core.AckMQTTPubAck, At: noon, Detail: "packet id 12345"},
			})
		}
		apply(t, s, &Changes{Now: noon, Results: results})
	}
	mustExec(t, s.writer.DB, "PRAGMA wal_checkpoint(TRUNCATE)")
	bytes, err := s.Size(t.Context())
	if ratio := float64(bytes) / (groups * size * 600); err != nil || ratio > 1.6 {
		t.Fatalf("the file is %.2f times the payload, %v", ratio, err)
	} else {
		t.Logf("the file is %.2f times the payload", ratio)
	}
}

func TestAcceptingDoesNotScan(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, query := range []string{
		"SELECT seq, key FROM ids WHERE key IN (VALUES (x'01'), (x'02'))",
		"SELECT seq, committed_at, content FROM lingering WHERE seq IN (VALUES (1), (2))",
		"SELECT key, received_at, content FROM parked WHERE key IN (VALUES (x'01'), (x'02'))",
		"SELECT MAX(seq) FROM recent_ids WHERE seq > 1 AND key = x'01'",
		"DELETE FROM ids WHERE key IN (SELECT key FROM (SELECT key, seq FROM ids WHERE key >= x'01' ORDER BY key LIMIT 2) near" +
			" WHERE seq <= 1 AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.seq = near.seq) AND NOT EXISTS (SELECT 1 FROM lingering l WHERE l.seq = near.seq))",
		"SELECT seq, key FROM ids WHERE key >= x'01' AND key < x'02'",
		"SELECT * FROM deliveries WHERE seq IN (VALUES (1), (2))",
		"SELECT * FROM containers WHERE (channel_id, surface, name) IN (VALUES (1, 1, 'a'), (2, 1, 'b'))",
		"SELECT * FROM members WHERE (container_id, peer) IN (VALUES (1, 'a'), (2, 'b'))",
		"SELECT * FROM works w LEFT JOIN containers c ON c.id = w.container_id WHERE (w.workspace_id, w.name) IN (VALUES (1, 'a'), (2, 'b'))",
		"SELECT * FROM peers p WHERE (p.workspace_id, p.peer) IN (VALUES (1, 'a'), (2, 'b'))",
		"SELECT " + parkedColumns + " WHERE (ws.name, p.work) IN (VALUES ('a', 'b'))",
		"SELECT d.seq FROM deliveries d CROSS JOIN messages m ON m.seq = d.seq WHERE d.recipient_id = 1 AND d.state = 0 AND d.position > 2 ORDER BY d.position",
		"SELECT seq FROM deliveries WHERE recipient_id = 1 AND state = 0 AND deadline BETWEEN 1 AND 9 ORDER BY position",
		"SELECT seq FROM deliveries WHERE state = 3 AND (seq, recipient_id) > (1, 2) ORDER BY seq, recipient_id",
		"WITH r (seq, recipient_id) AS (VALUES (1, 2), (3, 4)) UPDATE deliveries AS d SET attempts = 1 FROM r WHERE d.seq = r.seq AND d.recipient_id = r.recipient_id AND d.state = 0",
	} {
		plan := explain(t, s, query)
		for _, table := range []string{"ids", "recent_ids", "lingering", "parked", "messages", "deliveries", "containers", "members", "w", "p", "d", "m"} {
			if slices.Contains(strings.Split(plan, "; "), "SCAN "+table) || strings.Contains(plan, "TEMP B-TREE FOR ORDER") {
				t.Errorf("%s\n  %s", query, plan)
			}
		}
	}
}

func TestTheRejectionLogIsBoundedAtEveryMoment(t *testing.T) {
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), MaxRejections: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 {
		var list []Rejection
		for j := range 7 {
			list = append(list, Rejection{Hash: sha256.Sum256([]byte{byte(i), byte(j)}), Carrier: "mqtt", Reason: core.ReasonMalformed, At: noon})
		}
		apply(t, s, &Changes{Rejections: list})
	}
	var n, oldest int
	if err := s.readers.QueryRowContext(t.Context(), "SELECT COUNT(*), MIN(id) FROM rejections").Scan(&n, &oldest); err != nil || n != 20 || oldest != 51 {
		t.Fatalf("%d rows from %d on, %v", n, oldest, err)
	}
}

func TestSilentPeersAreForgotten(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	peer := func(name string, heard, card time.Duration) *Peer {
		p := &Peer{Key: PeerKey{testWorkspace, name}, Link: link, Channel: testChannel, LastHeard: noon.Add(heard)}
		if card >= 0 {
			p.Card, p.CardLink, p.CardAt = []byte(`{}`), link, noon.Add(card)
		}
		return p
	}
	var list []*Peer
	for i := range 10 {
		list = append(list, peer(fmt.Sprintf("silent.%d", i), 0, 0))
	}
	list = append(list, peer("heard", 2*time.Hour, -1), peer("card", 0, 2*time.Hour))
	apply(t, s, &Changes{Peers: list})
	if r := prune(t, s, PruneOptions{Now: noon.Add(3 * time.Hour), Retention: 2 * time.Hour}); r.Peers != 10 {
		t.Fatalf("pruned %+v", r)
	}
	got, err := s.Peers(t.Context(), testWorkspace)
	if err != nil || len(got) != 2 || got[0].Peer != "card" || got[1].Peer != "heard" {
		t.Fatalf("peers: %+v, %v", got, err)
	}
	var cards int
	if err := s.readers.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM peer_cards").Scan(&cards); err != nil || cards != 1 {
		t.Fatalf("%d cards, %v", cards, err)
	}
}
