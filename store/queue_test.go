package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// outbox is a store with two links and n messages that wait for both.
func outbox(t *testing.T, n int64) (s *Store, mqtt, nats int64) {
	t.Helper()
	s = openStore(t, t.TempDir())
	mqtt, nats = ensure(t, s, core.Recipient{Carrier: "mqtt"}), ensure(t, s, core.Recipient{Carrier: "nats"})
	var c Changes
	for seq := int64(1); seq <= n; seq++ {
		c.Messages = append(c.Messages, say(seq, string(rune('a'+seq)), ""))
		c.Deliveries = append(c.Deliveries, deliverTo(seq, mqtt, nats)...)
	}
	apply(t, s, &c)
	return s, mqtt, nats
}

func queues(t *testing.T, s *Store, now time.Time) (found []Queue) {
	t.Helper()
	write(t, s, func(ctx context.Context, tx *Tx) (err error) {
		found, err = tx.Queues(ctx, now)
		return err
	})
	return found
}

func seqs(list []Pending) []int64 {
	var s []int64
	for _, p := range list {
		s = append(s, p.ID.Seq)
	}
	return s
}

// delivery reads one delivery as an inspection shows it.
func delivery(t *testing.T, s *Store, message string, recipient int64) core.Delivery {
	t.Helper()
	found, err := s.Inspect(t.Context(), testWorkspace, message)
	if err != nil {
		t.Fatalf("inspect %s: %v", message, err)
	}
	for _, d := range found.Deliveries {
		if id, err := core.ParseDeliveryID(d.ID); err == nil && id.Recipient == recipient {
			return d
		}
	}
	t.Fatalf("message %s has no delivery for %d", message, recipient)
	return core.Delivery{}
}

func TestPendingIsReadInOrderAndBounded(t *testing.T) {
	s, mqtt, _ := outbox(t, 5)
	if got := seqs(pending(t, s, mqtt)); !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
		t.Fatalf("pending: %v", got)
	}
	page, err := s.Pending(t.Context(), mqtt, 1, noon, 2, 1<<20)
	if err != nil || !slices.Equal(seqs(page), []int64{2, 3}) {
		t.Fatalf("two behind position 1: %v, %v", seqs(page), err)
	}
	if p := page[0]; p.Position != 2 || string(p.Payload) != string(envelope("c")) || !p.Deadline.Equal(noon.Add(24*time.Hour)) {
		t.Fatalf("pending: %+v", p)
	}
	one := len(envelope("b"))
	for _, limit := range []struct{ bytes, want int }{{1, 1}, {one, 1}, {2*one - 1, 1}, {2 * one, 2}} {
		page, err := s.Pending(t.Context(), mqtt, 0, noon, 100, limit.bytes)
		if err != nil || len(page) != limit.want {
			t.Errorf("within %d bytes: %v, %v", limit.bytes, seqs(page), err)
		}
	}
}

func TestResultsEndDeliveriesOnce(t *testing.T) {
	ack := core.Ack{Kind: core.AckMQTTPubAck, At: noon.Add(time.Second), Detail: "packet 7"}
	acked := Result{State: core.DeliveryAcked, Attempts: 1, Ack: ack}
	retry := Result{State: core.DeliveryPending, Attempts: 1, LastError: "no answer", NextAttempt: noon.Add(time.Minute)}
	dead := Result{State: core.DeliveryDead, Attempts: 2, Reason: "refused", LastError: "400"}
	full := Result{State: core.DeliveryDead, Reason: OutboxFull}
	expired := Result{State: core.DeliveryExpired}
	for _, c := range []struct {
		name    string
		results []Result
		want    core.Delivery
	}{
		{"an acknowledgement ends it", []Result{acked}, core.Delivery{State: core.DeliveryAcked, Attempts: 1}},
		{"a failure that passes keeps it pending", []Result{retry}, core.Delivery{State: core.DeliveryPending, Attempts: 1, LastError: "no answer"}},
		{"a failure, then an acknowledgement", []Result{retry, acked}, core.Delivery{State: core.DeliveryAcked, Attempts: 1}},
		{"nothing follows an acknowledgement", []Result{acked, retry, dead, expired}, core.Delivery{State: core.DeliveryAcked, Attempts: 1}},
		{"a permanent failure ends it", []Result{dead}, core.Delivery{State: core.DeliveryDead, Attempts: 2, Reason: "refused", LastError: "400"}},
		{"a dead one is not acknowledged", []Result{dead, acked}, core.Delivery{State: core.DeliveryDead, Attempts: 2, Reason: "refused", LastError: "400"}},
		{"one dropped for want of room is", []Result{full, acked}, core.Delivery{State: core.DeliveryAcked, Attempts: 1}},
		{"a late one ends expired", []Result{expired, acked}, core.Delivery{State: core.DeliveryExpired}},
	} {
		for _, together := range []bool{true, false} {
			s, mqtt, nats := outbox(t, 2)
			var group Changes
			for _, r := range c.results {
				r.ID = core.DeliveryID{Seq: 1, Recipient: mqtt}
				if together {
					group.Results = append(group.Results, r)
				} else {
					apply(t, s, &Changes{Now: noon, Results: []Result{r}})
				}
			}
			apply(t, s, &group)
			got := delivery(t, s, "b", mqtt)
			if (got.Ack != nil) != (got.State == core.DeliveryAcked) {
				t.Errorf("%s: acknowledgement %v in state %s", c.name, got.Ack, got.State)
			}
			if got.Ack != nil && (got.Ack.Kind != ack.Kind || got.Ack.Detail != ack.Detail || !got.Ack.At.Equal(ack.At)) {
				t.Errorf("%s: acknowledgement %+v", c.name, *got.Ack)
			}
			got.Ack, got.ID, got.Recipient = nil, "", ""
			if got != c.want {
				t.Errorf("%s (together %v): %+v", c.name, together, got)
			}
			if other := delivery(t, s, "b", nats); other.State != core.DeliveryPending {
				t.Errorf("%s: the other delivery is %s", c.name, other.State)
			}
			if left := len(pending(t, s, mqtt)); left != 2 && c.want.State == core.DeliveryPending || left != 1 && c.want.State != core.DeliveryPending {
				t.Errorf("%s: %d pending", c.name, left)
			}
		}
	}
}

func TestADelayedDeliveryIsListedWithoutItsPayload(t *testing.T) {
	s, mqtt, _ := outbox(t, 2)
	apply(t, s, &Changes{Results: []Result{{
		ID: core.DeliveryID{Seq: 1, Recipient: mqtt}, State: core.DeliveryPending, Attempts: 3, NextAttempt: noon.Add(time.Minute),
	}}})
	page := pending(t, s, mqtt)
	if len(page) != 2 || page[0].Payload != nil || page[1].Payload == nil || page[0].Attempts != 3 || !page[0].NextAttempt.Equal(noon.Add(time.Minute)) {
		t.Fatalf("before its time: %+v", page)
	}
	page, err := s.Pending(t.Context(), mqtt, 0, noon.Add(time.Minute), 10, 1<<20)
	if err != nil || page[0].Payload == nil {
		t.Fatalf("at its time: %+v, %v", page, err)
	}
}

func TestTheOldestAreDroppedAndLateOnesExpire(t *testing.T) {
	s, mqtt, nats := outbox(t, 5)
	write(t, s, func(ctx context.Context, tx *Tx) error {
		n, err := tx.DropOldest(ctx, mqtt, 2, OutboxFull, noon)
		if n != 2 {
			t.Errorf("dropped %d", n)
		}
		return err
	})
	if got := seqs(pending(t, s, mqtt)); !slices.Equal(got, []int64{3, 4, 5}) {
		t.Fatalf("left after the drop: %v", got)
	}
	if d := delivery(t, s, "b", mqtt); d.State != core.DeliveryDead || d.Reason != OutboxFull {
		t.Fatalf("dropped: %+v", d)
	}
	if got := len(pending(t, s, nats)); got != 5 {
		t.Fatalf("the other recipient has %d", got)
	}
	for i, want := range []struct {
		at   time.Time
		n    int
		left int
	}{{noon.Add(24*time.Hour - time.Millisecond), 0, 3}, {noon.Add(24 * time.Hour), 2, 1}, {noon.Add(24 * time.Hour), 1, 0}} {
		write(t, s, func(ctx context.Context, tx *Tx) error {
			n, err := tx.ExpirePending(ctx, mqtt, want.at, 2)
			if n != want.n {
				t.Errorf("step %d expired %d, want %d", i, n, want.n)
			}
			return err
		})
		if left := len(pending(t, s, mqtt)); left != want.left {
			t.Errorf("step %d leaves %d, want %d", i, left, want.left)
		}
		late := int64(want.left)
		if want.n == 0 {
			late = 0 // It is a moment too early.
		}
		got := queues(t, s, want.at)
		if i := slices.IndexFunc(got, func(q Queue) bool { return q.Recipient == mqtt }); want.left == 0 && i >= 0 ||
			want.left > 0 && (i < 0 || got[i] != Queue{mqtt, int64(want.left), late}) {
			t.Errorf("counted %+v", got)
		}
	}
}

func TestAnInboxServesWhatCanStillBeDelivered(t *testing.T) {
	s := openStore(t, t.TempDir())
	var row RecipientRow
	peer := core.Recipient{Carrier: "http", WorkspaceID: testWorkspace, Channel: testChannel, Peer: "b.two"}
	write(t, s, func(ctx context.Context, tx *Tx) (err error) {
		row, err = tx.Attach(ctx, peer, false)
		return err
	})
	late := deliverTo(2, row.ID)
	late[0].Deadline = noon
	apply(t, s, &Changes{
		Messages:   []Message{say(1, "a", ""), say(2, "b", ""), say(3, "c", "")},
		Deliveries: slices.Concat(deliverTo(1, row.ID), late, deliverTo(3, row.ID)),
	})
	entries, err := s.Inbox(t.Context(), row.ID, 0, 10, 1<<20, noon)
	if err != nil || len(entries) != 2 || entries[0].Seq != 1 || entries[1].Position != 3 {
		t.Fatalf("inbox: %+v, %v", entries, err)
	}
	if e := entries[1]; string(e.Envelope) != string(envelope("c")) || e.Delivery != (core.DeliveryID{Seq: 3, Recipient: row.ID}) {
		t.Fatalf("entry: %+v", e)
	}
	write(t, s, func(ctx context.Context, tx *Tx) error {
		if err := tx.MarkServed(ctx, []core.DeliveryID{entries[1].Delivery}); err != nil {
			return err
		}
		before, err := tx.ServedThrough(ctx, row.ID, 2)
		if err != nil {
			return err
		}
		ids, err := tx.ServedThrough(ctx, row.ID, 99)
		if len(before) != 0 || len(ids) != 1 || ids[0].Seq != 3 {
			t.Errorf("served through 2: %v, through the end: %v", before, ids)
		}
		return err
	})
	rows, err := s.Recipients(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Pending != 3 || !rows[0].Attached || rows[0].Push || rows[0].Recipient != peer {
		t.Fatalf("recipients: %+v, %v", rows, err)
	}
}

func TestAPeerKeepsItsRowWhoeverServesIt(t *testing.T) {
	s := openStore(t, t.TempDir())
	waiting := core.Recipient{WorkspaceID: testWorkspace, Channel: testChannel, Peer: "b.two"}
	first := ensure(t, s, waiting)
	attached := waiting
	attached.Carrier = "agents"
	write(t, s, func(ctx context.Context, tx *Tx) error {
		row, err := tx.Attach(ctx, attached, true)
		if row.ID != first || !row.Attached || !row.Push || row.Carrier != "agents" {
			t.Errorf("attached: %+v", row)
		}
		return err
	})
	write(t, s, func(ctx context.Context, tx *Tx) error { return tx.Detach(ctx, first) })
	if again := ensure(t, s, waiting); again != first {
		t.Fatalf("row %d became %d", first, again)
	}
	listed := func() []RecipientRow {
		t.Helper()
		rows, err := s.Recipients(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows := listed(); len(rows) != 0 {
		t.Errorf("listed with nothing that waits: %+v", rows)
	}
	apply(t, s, &Changes{Messages: []Message{say(1, "a", "")}, Deliveries: deliverTo(1, first)})
	if rows := listed(); len(rows) != 1 || rows[0].Attached || rows[0].Carrier != "agents" || rows[0].Pending != 1 {
		t.Fatalf("after detaching: %+v", rows)
	}
	if got := queues(t, s, noon); len(got) != 1 || got[0] != (Queue{Recipient: first, Pending: 1}) {
		t.Errorf("counted %+v", got)
	}
	// Links of one carrier, and the same peer elsewhere, are others.
	for _, r := range []core.Recipient{
		{Carrier: "http"},
		{Carrier: "http", Link: "hook"},
		{WorkspaceID: testWorkspace, Channel: "other", Peer: "b.two"},
		{WorkspaceID: "ws-2", Channel: testChannel, Peer: "b.two"},
	} {
		if ensure(t, s, r) == first {
			t.Errorf("%+v shares a row", r)
		}
	}
}

func TestWaitingRoomMessagesFollowThePeerToItsLink(t *testing.T) {
	s := openStore(t, t.TempDir())
	mqtt, nats := ensure(t, s, core.Recipient{Carrier: "mqtt"}), ensure(t, s, core.Recipient{Carrier: "nats"})
	absent := ensure(t, s, core.Recipient{WorkspaceID: testWorkspace, Channel: testChannel, Peer: "b.two"})
	other := ensure(t, s, core.Recipient{WorkspaceID: "ws-2", Channel: testChannel, Peer: "b.two"})
	room := directKey("direct_0123456789abcdef0123456789abcdef")
	var c Changes
	add := func(seq int64, id, carrier string, arrival core.Arrival, recipient int64, direct bool) {
		m := say(seq, id, "")
		m.Carrier, m.Arrival, m.Container = carrier, arrival, room.Container
		d := deliverTo(seq, recipient)
		d[0].Direct, d[0].To = direct, "b.two"
		c.Messages, c.Deliveries = append(c.Messages, m), append(c.Deliveries, d...)
	}
	add(1, "ingress", "http", core.ArrivalIngress, absent, true)
	add(2, "native", "mqtt", core.ArrivalNative, absent, true)
	add(3, "own-ingress", "mqtt", core.ArrivalIngress, absent, true)
	add(4, "other-bus", "nats", core.ArrivalNative, absent, true)
	add(5, "thread", "http", core.ArrivalIngress, absent, false)
	add(6, "elsewhere", "http", core.ArrivalIngress, other, true)
	apply(t, s, &c)

	position := int64(6)
	write(t, s, func(ctx context.Context, tx *Tx) error {
		none, err := tx.Relocate(ctx, Move{Peer: PeerKey{testWorkspace, "b.two"}, To: nats, Allowed: func(string) bool { return false }})
		if err != nil || len(none.Relocated) != 0 || len(none.Withdrawn) != 1 {
			t.Errorf("moved %+v, %v to where nothing may go", none, err)
		}
		moved, err := tx.Relocate(ctx, Move{
			Peer: PeerKey{testWorkspace, "b.two"}, To: mqtt,
			Allowed:  func(channel string) bool { return channel == testChannel },
			Position: func(int64) int64 { position++; return position },
		})
		if len(moved.Relocated) != 2 || len(moved.Withdrawn) != 1 || moved.Relocated[0].Recipient != absent {
			t.Errorf("moved %+v", moved)
		}
		return err
	})
	page := pending(t, s, mqtt)
	if !slices.Equal(seqs(page), []int64{1, 3}) || page[0].Position != 7 || page[1].Position != 8 || page[0].To != "b.two" {
		t.Fatalf("moved: %+v", page)
	}
	if got := seqs(pending(t, s, absent)); !slices.Equal(got, []int64{5}) {
		t.Fatalf("left behind: %v", got)
	}
	if got := seqs(pending(t, s, other)); !slices.Equal(got, []int64{6}) {
		t.Fatalf("of the other workspace: %v", got)
	}
	found, err := s.Inspect(t.Context(), testWorkspace, "native")
	if err != nil || len(found.Deliveries) != 0 || len(found.Decisions) != 1 ||
		found.Decisions[0] != (core.Decision{Recipient: "peer:b.two", Decision: "ignore", Reason: core.IgnoreOrigin}) {
		t.Fatalf("heard at the origin: %+v, %v", found, err)
	}
	if last, err := s.LastSeq(t.Context()); err != nil || last != 8 {
		t.Fatalf("last number used: %d, %v", last, err)
	}
	// While the peer is attached it is not moved.
	write(t, s, func(ctx context.Context, tx *Tx) error {
		if _, err := tx.Attach(ctx, core.Recipient{Carrier: "http", WorkspaceID: "ws-2", Channel: testChannel, Peer: "b.two"}, false); err != nil {
			return err
		}
		moved, err := tx.Relocate(ctx, Move{Peer: PeerKey{"ws-2", "b.two"}, To: nats, Allowed: func(string) bool { return true }})
		if len(moved.Relocated)+len(moved.Withdrawn) != 0 {
			t.Errorf("moved %+v of an attached peer", moved)
		}
		return err
	})
}
