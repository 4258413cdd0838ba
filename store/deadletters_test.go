package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestDeadLettersAreListedReplayedAndDiscarded(t *testing.T) {
	s, mqtt, nats := outbox(t, 3)
	expiring := say(4, "expiring", "")
	expiring.Payload = []byte(`{"id":"expiring","expires_at":1767355260}`) // A minute after noon.
	apply(t, s, &Changes{Messages: []Message{expiring}, Deliveries: deliverTo(4, mqtt)})
	var results []Result
	for seq := int64(1); seq <= 4; seq++ {
		results = append(results, Result{
			ID: core.DeliveryID{Seq: seq, Recipient: mqtt}, State: core.DeliveryDead, Attempts: 2, Reason: "refused", LastError: "no",
		})
	}
	apply(t, s, &Changes{Results: results})

	list, err := s.DeadLetters(t.Context(), "", 2)
	want := core.DeadLetter{
		Delivery: core.DeliveryID{Seq: 1, Recipient: mqtt}.String(), Recipient: "carrier:mqtt",
		WorkspaceID: testWorkspace, ID: "b", Reason: "refused", Attempts: 2, LastError: "no",
	}
	if err != nil || len(list) != 2 || list[0] != want {
		t.Fatalf("dead letters: %+v, %v", list, err)
	}
	if list, err = s.DeadLetters(t.Context(), list[1].Delivery, 10); err != nil || len(list) != 2 || list[1].ID != "expiring" {
		t.Fatalf("the next page: %+v, %v", list, err)
	}
	if _, err := s.DeadLetters(t.Context(), "nonsense", 10); err == nil {
		t.Fatal("a position that is no delivery is taken")
	}

	at := func(seq, recipient int64) core.DeliveryID { return core.DeliveryID{Seq: seq, Recipient: recipient} }
	for _, c := range []struct {
		name string
		id   core.DeliveryID
		now  time.Time
		want error
	}{
		{"pending", at(1, nats), noon, core.ErrNotFound},
		{"unknown", at(99, nats), noon, core.ErrNotFound},
		{"expired", at(4, mqtt), noon.Add(time.Minute), core.ErrExpired},
		{"dead", at(1, mqtt), noon, nil},
		{"dead, not yet expired", at(4, mqtt), noon.Add(59 * time.Second), nil},
		{"replayed already", at(1, mqtt), noon, core.ErrNotFound},
	} {
		position := 100 + c.id.Seq
		err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			return tx.Replay(ctx, c.id, position, noon.Add(time.Hour), c.now)
		})
		if !errors.Is(err, c.want) {
			t.Errorf("replay of one that is %s: %v", c.name, err)
		}
	}
	page := pending(t, s, mqtt)
	if !slices.Equal(seqs(page), []int64{1, 4}) || page[0].Attempts != 0 || page[0].Position != 101 ||
		!page[0].Deadline.Equal(noon.Add(time.Hour)) || !page[1].Deadline.Equal(noon.Add(time.Minute)) {
		t.Fatalf("replayed: %+v", page)
	}
	if last, err := s.LastSeq(t.Context()); err != nil || last != 104 {
		t.Fatalf("last number used: %d, %v", last, err)
	}
	write(t, s, func(ctx context.Context, tx *Tx) error { return tx.Discard(ctx, at(2, mqtt)) })
	if err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.Discard(ctx, at(2, mqtt)) }); !errors.Is(err, core.ErrNotFound) {
		t.Fatalf("a second discard: %v", err)
	}
	if d := delivery(t, s, "c", mqtt); d.State != core.DeliveryDiscarded || d.Reason != "refused" {
		t.Fatalf("discarded: %+v", d)
	}
}
