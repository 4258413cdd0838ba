package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func parkedTrace(id, work, from string) *Parked {
	return &Parked{
		Key: testKey(id), WorkID: work, From: from, To: "b.two", Carrier: "mqtt", Arrival: core.ArrivalNative,
		Address:    &core.Address{WorkspaceID: testWorkspace, Channel: testChannel, Class: core.AddressPeer, Token: "abc"},
		ReceivedAt: noon, FreshUntil: noon.Add(time.Minute), KnownUntil: noon.Add(2 * time.Minute),
		Content: sha256.Sum256([]byte(id)), Payload: envelope(id),
	}
}

func TestWhatIsParkedWaitsForItsWork(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	first, second, other := parkedTrace("t1", "job", "a.one"), parkedTrace("t2", "job", "a.one"), parkedTrace("t3", "else", "c.three")
	second.Address = nil
	apply(t, s, &Changes{Parked: []*Parked{first, second, other}})
	if first.ID == 0 || first.ID >= second.ID {
		t.Fatalf("ids %d and %d", first.ID, second.ID)
	}
	// It survives a restart.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir)
	total, bySender, err := s.ParkedCounts(t.Context())
	if want := map[PeerKey]int{{testWorkspace, "a.one"}: 2, {testWorkspace, "c.three"}: 1}; err != nil || total != 3 || !reflect.DeepEqual(bySender, want) {
		t.Fatalf("counts: %d, %v, %v", total, bySender, err)
	}
	job := WorkKey{testWorkspace, "job"}
	got := load(t, s, Needs{Keys: []Key{first.Key}, Works: []WorkKey{job}})
	if want := map[WorkKey][]*Parked{job: {first, second}}; !reflect.DeepEqual(got.Parked, want) {
		t.Fatalf("parked: %s", dump(got))
	}
	if k := got.Keys[first.Key]; k == nil || !k.Parked || k.Seq != 0 || k.Content != first.Content || !k.CommittedAt.Equal(noon) {
		t.Fatalf("its key: %+v", k)
	}
	found, err := s.Inspect(t.Context(), testWorkspace, "t1")
	if err != nil || !found.Parked || found.Seq != nil || found.Parties != [2]string{"a.one", "b.two"} || found.Arrival != "native" ||
		found.Channel != testChannel || string(found.Envelope) != string(first.Payload) {
		t.Fatalf("inspection: %+v, %v", found, err)
	}
	if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 10); err != nil || len(page) != 0 {
		t.Fatalf("it is in the history: %v, %v", page, err)
	}

	// The opener releases one and gives the other up.
	released := say(2, "t1", "")
	released.Released = true
	apply(t, s, &Changes{
		Messages: []Message{say(1, "opener", ""), released}, Unparked: []int64{first.ID, second.ID}, Forgotten: []Key{second.Key},
		Rejections: []Rejection{{Carrier: "mqtt", Reason: core.ReasonWorkClosed, At: noon}},
	})
	got = load(t, s, Needs{Keys: []Key{first.Key, second.Key}, Works: []WorkKey{job}})
	if k := got.Keys[first.Key]; k == nil || k.Parked || k.Seq != 2 || len(got.Keys) != 1 || len(got.Parked) != 0 {
		t.Fatalf("after the opener: %s", dump(got))
	}
	// What was given up may come again, and ids are not used again.
	again := parkedTrace("t2", "job", "a.one")
	apply(t, s, &Changes{Parked: []*Parked{again}})
	if again.ID <= other.ID {
		t.Fatalf("id %d after %d", again.ID, other.ID)
	}
}

func TestAnAcceptedIDIsNotForgotten(t *testing.T) {
	s := openStore(t, t.TempDir())
	apply(t, s, &Changes{Messages: []Message{say(1, "x", "")}})
	apply(t, s, &Changes{Forgotten: []Key{testKey("x")}})
	if got := load(t, s, Needs{Keys: []Key{testKey("x")}}); len(got.Keys) != 1 {
		t.Fatal("an accepted id was forgotten")
	}
	// While it is known, nothing parks under it.
	err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		return tx.Apply(ctx, &Changes{Parked: []*Parked{parkedTrace("x", "job", "a.one")}})
	})
	if err == nil {
		t.Fatal("parked under a known id")
	}
}

func TestStaleParkedComesInOrderAndBounded(t *testing.T) {
	s := openStore(t, t.TempDir())
	a, b, c := parkedTrace("a", "job", "a.one"), parkedTrace("b", "job", "a.one"), parkedTrace("c", "job", "a.one")
	a.FreshUntil = noon.Add(3 * time.Minute)
	apply(t, s, &Changes{Parked: []*Parked{a, b, c}})
	for _, want := range []struct {
		at    time.Duration
		limit int
		ids   []string
	}{
		{time.Minute - time.Millisecond, 10, nil},
		{time.Minute, 10, []string{"b", "c"}},
		{time.Minute, 1, []string{"b"}},
		{time.Hour, 10, []string{"b", "c", "a"}},
	} {
		write(t, s, func(ctx context.Context, tx *Tx) error {
			stale, err := tx.StaleParked(ctx, noon.Add(want.at), want.limit)
			var ids []string
			for _, p := range stale {
				ids = append(ids, p.Key.ID)
			}
			if !reflect.DeepEqual(ids, want.ids) {
				t.Errorf("at %v: %v", want.at, ids)
			}
			return err
		})
	}
}

func TestRejectionsOfOneFrameShareARow(t *testing.T) {
	s := openStore(t, t.TempDir())
	refused := Rejection{
		Hash: sha256.Sum256([]byte("x")), Size: 1, Carrier: "mqtt", Reason: core.ReasonMalformed, At: noon,
		ClaimedWorkspaceID: "ws\x00", ClaimedID: "'; DROP TABLE messages; --", ClaimedFrom: "\xff" + string(make([]byte, 5000)), Detail: "?0 ?",
	}
	later, elsewhere, otherwise := refused, refused, refused
	later.At = noon.Add(time.Hour)
	elsewhere.Carrier = "nats"
	otherwise.Reason = core.ReasonExpired
	apply(t, s, &Changes{Rejections: []Rejection{refused, refused, elsewhere, otherwise}})
	apply(t, s, &Changes{Rejections: []Rejection{later}})
	var rows, count, last int64
	var id, from string
	err := s.readers.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM rejections), count, last_at, claimed_id, claimed_from FROM rejections"+
		" ORDER BY count DESC LIMIT 1").Scan(&rows, &count, &last, &id, &from)
	if err != nil || rows != 3 || count != 3 || !instant(last).Equal(later.At) || id != refused.ClaimedID || len(from) > maxClaim {
		t.Fatalf("%d rows, the first counts %d, last %v, claims %q, %d bytes; %v", rows, count, instant(last), id, len(from), err)
	}
}

func TestABrokenRejectionLogUndoesNoMessage(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustExec(t, s.writer.DB, "DROP TABLE rejections")
	for i := int64(1); i <= 2; i++ {
		apply(t, s, &Changes{
			Messages:   []Message{say(i, string(rune('a'+i)), "")},
			Rejections: []Rejection{{Carrier: "never heard of", Reason: core.ReasonMalformed, At: noon}},
		})
	}
	if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 10); err != nil || len(page) != 2 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
}

func TestAFailureOfTheLogThatPassesIsTheGroups(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustExec(t, s.writer.DB, "PRAGMA max_page_count = 1")
	err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		var list []Rejection
		for i := range 200 {
			list = append(list, Rejection{Hash: sha256.Sum256([]byte{byte(i)}), Carrier: "mqtt", Detail: string(make([]byte, maxDetail)), At: noon})
		}
		return tx.Apply(ctx, &Changes{Rejections: list})
	})
	if !Passing(err) {
		t.Fatalf("write: %v", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("it took too long instead")
	}
}
