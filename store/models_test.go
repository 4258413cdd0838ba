package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/compozy-gateway/gateway/core"
)

func TestBytesComeOutAsTheyWentIn(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	seq := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		seq++
		m := say(seq, fmt.Sprintf("m%d", seq), "")
		m.Payload = rapid.SliceOfN(rapid.Byte(), 1, 9000).Draw(t, "payload")
		copy(m.Content[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "content"))
		// An id is any text that a JSON string can hold.
		m.Key.ID = rapid.StringN(1, 60, 256).Draw(t, "id") + m.Key.ID
		to := deliverTo(seq, link)
		to[0].To = rapid.String().Draw(t, "to")
		detail := rapid.String().Draw(t, "detail")
		if err := s.Write(context.Background(), func(ctx context.Context, tx *Tx) error {
			if err := tx.Apply(ctx, &Changes{Messages: []Message{m}, Deliveries: to}); err != nil {
				return err
			}
			state, err := tx.Load(ctx, Needs{Keys: []Key{m.Key}})
			if k := state.Keys[m.Key]; err == nil && (k == nil || k.Seq != seq || k.Content != m.Content) {
				t.Fatalf("known: %+v", k)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		page, err := s.Pending(context.Background(), link, seq-1, noon, 1, 1<<20)
		if err != nil || len(page) != 1 || !bytes.Equal(page[0].Payload, m.Payload) || page[0].To != to[0].To {
			t.Fatalf("pending: %+v, %v", page, err)
		}
		history, err := s.MessagesAfter(context.Background(), testWorkspace, testChannel, seq-1, 1)
		if err != nil || len(history) != 1 || !bytes.Equal(history[0].Envelope, m.Payload) {
			t.Fatalf("history: %+v, %v", history, err)
		}
		if err := s.Write(context.Background(), func(ctx context.Context, tx *Tx) error {
			return tx.Apply(ctx, &Changes{Results: []Result{{
				ID: to[0].ID, State: core.DeliveryAcked, Ack: core.Ack{Kind: core.AckHTTP2xx, At: noon, Detail: detail},
			}}})
		}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Inspect(context.Background(), testWorkspace, m.Key.ID)
		if err != nil || found.Deliveries[0].Ack.Detail != cut(detail, maxDetail) {
			t.Fatalf("inspection: %+v, %v", found, err)
		}
	})
}

func TestInstantsComeOutAsTheyWentIn(t *testing.T) {
	if !instant(millis(time.Time{})).IsZero() {
		t.Error("no instant became one")
	}
	east := time.FixedZone("east", 5*3600+1800)
	for _, at := range []time.Time{noon, noon.Add(time.Millisecond), noon.In(east), time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)} {
		if got := instant(millis(at)); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%v came out as %v", at, got)
		}
	}
}

func TestIgnoredIsPackedCompactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Ignored {
			return Ignored{rapid.Int64Range(1, 1<<40).Draw(t, "recipient"), rapid.SampledFrom(ignores()).Draw(t, "reason")}
		})).Draw(t, "list")
		if got := unpackIgnored(packIgnored(list)); !slices.Equal(got, list) {
			t.Fatalf("%v came out as %v", list, got)
		}
	})
	if n := len(packIgnored([]Ignored{{1, core.IgnoreOrigin}, {2, core.IgnoreOutOfScope}})); n != 4 {
		t.Errorf("two decisions take %d bytes", n)
	}
	rapid.Check(t, func(t *rapid.T) { unpackIgnored(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
}

func TestCutBoundsAndRepairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		got := cut(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%q to %d: %q", s, limit, got)
		}
		if utf8.ValidString(s) && len(s) <= limit && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestEveryValueOfAClosedSetHasACode(t *testing.T) {
	for _, v := range core.Kinds() {
		if encode(kinds(), v) < 0 {
			t.Errorf("kind %q", v)
		}
	}
	for _, v := range core.WorkStates() {
		if encode(workStates(), v) < 0 {
			t.Errorf("work state %q", v)
		}
	}
	for _, v := range []core.DeliveryState{
		core.DeliveryPending, core.DeliveryAcked, core.DeliveryExpired, core.DeliveryDead, core.DeliveryDiscarded,
	} {
		if decode(deliveryStates(), encode(deliveryStates(), v)) != v {
			t.Errorf("delivery state %q", v)
		}
	}
	if got := decode(kinds(), 99); got != "" {
		t.Errorf("code 99 is kind %q", got)
	}
}

// TestTransactionsUseTheirOwnConnection guards against the deadlock of asking
// the pool of one writer for a second connection: no method of Tx names it.
func TestTransactionsUseTheirOwnConnection(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f.Name())
		if err != nil {
			continue
		}
		for _, pool := range []string{"tx.store.writer", "tx.store.readers"} {
			if bytes.Contains(source, []byte(pool+".")) {
				t.Errorf("%s uses %s inside a transaction", f.Name(), pool)
			}
		}
	}
	s := openStore(t, t.TempDir())
	if n := s.writer.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d writers", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	a := newAccepting(t, s)
	if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error { return a.accept(ctx, tx, a.messages(64)) }); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil || reflect.DeepEqual(a.links[0], a.links[1]) {
		t.Fatal("a group took two seconds")
	}
}
