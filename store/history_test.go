package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

const (
	roomAB = "direct_0123456789abcdef0123456789abcdef"
	roomCD = "direct_fedcba9876543210fedcba9876543210"
)

// told is a store with a little of everything in one channel.
func told(t *testing.T) *Store {
	t.Helper()
	s := openStore(t, t.TempDir())
	message := func(seq int64, kind core.Kind, thread, room, work string) Message {
		m := say(seq, fmt.Sprintf("m%d", seq), thread)
		m.Kind, m.WorkID = kind, work
		if room != "" {
			m.Container = directKey(room).Container
		}
		return m
	}
	other := message(8, core.KindSay, "thread_one", "", "")
	other.Channel = "other"
	apply(t, s, &Changes{
		Messages: []Message{
			message(1, core.KindGreet, "", "", ""),
			message(2, core.KindSay, "thread_one", "", "job"),
			message(3, core.KindSay, "", roomAB, ""),
			message(4, core.KindTrace, "thread_one", "", "job"),
			message(5, core.KindSay, "thread_two", "", ""),
			message(6, core.KindSay, "", roomCD, "secret"),
			message(7, core.KindReceipt, "thread_one", "", "job"),
			other,
		},
		Containers: []*Container{
			{Key: threadKey("thread_one"), Messages: 3, Participants: 2, LastSeq: 7, LastAt: noon},
			{Key: threadKey("thread_two"), Messages: 1, LastSeq: 5, LastAt: noon},
			{Key: directKey(roomAB), PeerA: "a.one", PeerB: "b.two", Messages: 1, LastSeq: 3, LastAt: noon},
			{Key: directKey(roomCD), PeerA: "c.three", PeerB: "d.four", Messages: 1, LastSeq: 6, LastAt: noon},
		},
		Works: []*Work{
			{
				Key: WorkKey{testWorkspace, "job"}, Channel: testChannel, Container: threadKey("thread_one").Container,
				Initiator: "a.one", Target: "b.two", State: core.WorkWorking, OpenedSeq: 2, UpdatedSeq: 4, UpdatedAt: noon,
			},
			{
				Key: WorkKey{testWorkspace, "secret"}, Channel: testChannel, Container: directKey(roomCD).Container,
				Initiator: "c.three", Target: "d.four", State: core.WorkSubmitted, OpenedSeq: 6, UpdatedSeq: 6, UpdatedAt: noon,
			},
		},
	})
	return s
}

func TestHistoryShowsWhatTheAskerMayRead(t *testing.T) {
	s := told(t)
	for _, c := range []struct {
		name string
		q    core.HistoryQuery
		want []int64
		next int64
	}{
		{name: "everybody", want: []int64{1, 2, 4, 5, 7}},
		{name: "a party of a room", q: core.HistoryQuery{Peer: "b.two"}, want: []int64{1, 2, 3, 4, 5, 7}},
		{name: "no party", q: core.HistoryQuery{Peer: "x.nine"}, want: []int64{1, 2, 4, 5, 7}},
		{name: "an admin", q: core.HistoryQuery{Admin: true}, want: []int64{1, 2, 3, 4, 5, 6, 7}},
		{name: "a page", q: core.HistoryQuery{Limit: 2}, want: []int64{1, 2}, next: 2},
		{name: "the next page", q: core.HistoryQuery{After: 2, Limit: 2}, want: []int64{4, 5}, next: 5},
		{name: "the last page", q: core.HistoryQuery{After: 5, Limit: 2}, want: []int64{7}},
		{name: "behind the end", q: core.HistoryQuery{After: 7}},
		{name: "a page that ends exactly", q: core.HistoryQuery{After: 4, Limit: 2}, want: []int64{5, 7}},
		{name: "a kind", q: core.HistoryQuery{Kind: core.KindSay}, want: []int64{2, 5}},
		{name: "an unknown kind", q: core.HistoryQuery{Kind: "dance"}},
		{name: "a thread", q: core.HistoryQuery{ThreadID: "thread_one"}, want: []int64{2, 4, 7}},
		{name: "an unknown thread", q: core.HistoryQuery{ThreadID: "thread_none"}},
		{name: "a work", q: core.HistoryQuery{WorkID: "job"}, want: []int64{2, 4, 7}},
		{name: "a work of others", q: core.HistoryQuery{WorkID: "secret"}},
		{name: "a work of one's own", q: core.HistoryQuery{WorkID: "secret", Peer: "d.four"}, want: []int64{6}},
		{name: "a work in a thread", q: core.HistoryQuery{WorkID: "job", ThreadID: "thread_one", Kind: core.KindTrace}, want: []int64{4}},
		{name: "a work in the wrong thread", q: core.HistoryQuery{WorkID: "job", ThreadID: "thread_two"}},
		{name: "another channel", q: core.HistoryQuery{Channel: "other"}, want: []int64{8}},
		{name: "an unknown channel", q: core.HistoryQuery{Channel: "none"}},
		{name: "an unknown workspace", q: core.HistoryQuery{WorkspaceID: "ws-none"}},
	} {
		if c.q.WorkspaceID == "" {
			c.q.WorkspaceID = testWorkspace
		}
		if c.q.Channel == "" {
			c.q.Channel = testChannel
		}
		if c.q.Limit == 0 {
			c.q.Limit = 100
		}
		page, next, err := s.History(t.Context(), c.q)
		var got []int64
		for _, m := range page {
			got = append(got, m.Seq)
			if m.ID != fmt.Sprintf("m%d", m.Seq) || m.WorkspaceID != testWorkspace || m.Channel != c.q.Channel ||
				m.Carrier != "mqtt" || !m.CommittedAt.Equal(noon) || string(m.Envelope) != string(envelope(m.ID)) {
				t.Errorf("%s: %+v", c.name, m)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v; %v", c.name, got, c.want, err)
		}
		if (next == nil) != (c.next == 0) || (next != nil && *next != c.next) {
			t.Errorf("%s: next %v, want %d", c.name, next, c.next)
		}
		if page == nil {
			t.Errorf("%s: an empty page must not be null", c.name)
		}
	}
}

func TestMessagesAfterTellsWhoseRoomItIs(t *testing.T) {
	s := told(t)
	page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 2, 2)
	if err != nil || len(page) != 2 || page[0].Seq != 3 || page[0].Direct != [2]string{"a.one", "b.two"} ||
		page[1].Seq != 4 || page[1].Direct != [2]string{} {
		t.Fatalf("messages: %+v, %v", page, err)
	}
}

func TestHistoryUsesItsIndexes(t *testing.T) {
	s := told(t)
	for _, c := range []struct {
		q     core.HistoryQuery
		index string
	}{
		{core.HistoryQuery{}, "messages_by_channel"},
		{core.HistoryQuery{ThreadID: "thread_one"}, "messages_by_container"},
		{core.HistoryQuery{WorkID: "job"}, "messages_by_work"},
		{core.HistoryQuery{WorkID: "job", ThreadID: "thread_one"}, "messages_by_work"},
	} {
		c.q.WorkspaceID, c.q.Channel = testWorkspace, testChannel
		source, args, err := s.historySource(t.Context(), c.q)
		if err != nil {
			t.Fatal(err)
		}
		plan := explain(t, s, "SELECT m.seq FROM messages m WHERE "+source+" ORDER BY m.seq", args...)
		if !strings.Contains(plan, c.index) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%+v: %s", c.q, plan)
		}
	}
}

func TestWorkAndThreadsAreShown(t *testing.T) {
	s := told(t)
	w, err := s.Work(t.Context(), testWorkspace, "job")
	want := core.WorkView{
		WorkspaceID: testWorkspace, WorkID: "job", Channel: testChannel, Surface: core.SurfaceThread, ContainerID: "thread_one",
		Initiator: "a.one", Target: "b.two", State: core.WorkWorking, OpenedSeq: 2, UpdatedSeq: 4, UpdatedAt: noon,
	}
	if err != nil || *w != want {
		t.Fatalf("work: %+v, %v", w, err)
	}
	for _, key := range []WorkKey{{testWorkspace, "none"}, {"ws-none", "job"}} {
		if _, err := s.Work(t.Context(), key.WorkspaceID, key.WorkID); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("work %v: %v", key, err)
		}
	}
	all := func(string) bool { return true }
	threads, err := s.Threads(t.Context(), testWorkspace, 10, all)
	if err != nil || len(threads) != 2 || threads[0] != (core.ThreadView{
		WorkspaceID: testWorkspace, Channel: testChannel, ThreadID: "thread_one", Participants: 2, Messages: 3, LastSeq: 7, LastAt: noon,
	}) {
		t.Fatalf("threads: %+v, %v", threads, err)
	}
	if threads, err = s.Threads(t.Context(), testWorkspace, 1, all); err != nil || len(threads) != 1 {
		t.Fatalf("one thread: %+v, %v", threads, err)
	}
	latest := threads[0].ThreadID
	count := 0
	butLatest := func(string) bool { count++; return count > 1 }
	if threads, err = s.Threads(t.Context(), testWorkspace, 1, butLatest); err != nil || len(threads) != 1 || threads[0].ThreadID == latest {
		t.Fatalf("the limit counts what is not visible: %+v, %v", threads, err)
	}
}

func TestInspectShowsAcksAndReceiptsSideBySide(t *testing.T) {
	s := openStore(t, t.TempDir())
	mqtt := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	hook := ensure(t, s, core.Recipient{Carrier: "http", Link: "hook"})
	peer := ensure(t, s, core.Recipient{Carrier: "http", WorkspaceID: testWorkspace, Channel: testChannel, Peer: "b.two"})
	subject := say(1, "subject", "thread_one")
	subject.Arrival = core.ArrivalNative
	subject.Ignored = []Ignored{{mqtt, core.IgnoreOrigin}, {300, core.IgnoreOutOfScope}}
	receipt := func(seq int64, id, workspace string, container core.Container) Message {
		m := say(seq, id, "")
		m.Key.WorkspaceID, m.Kind, m.ForID, m.Container = workspace, core.KindReceipt, "subject", container
		m.Payload = fmt.Appendf(nil, `{"id":%q,"from":"b.two","body":{"for_id":"subject","status":"rejected","reason_code":"busy","detail":null}}`, id)
		return m
	}
	thread := subject.Container
	apply(t, s, &Changes{
		Messages: []Message{
			subject, receipt(2, "r1", testWorkspace, thread), receipt(3, "r2", testWorkspace, directKey(roomAB).Container),
			receipt(4, "r3", "ws-2", thread), receipt(5, "r4", testWorkspace, threadKey("thread_other").Container),
		},
		Deliveries: deliverTo(1, hook, peer),
		Containers: []*Container{{Key: directKey(roomAB), PeerA: "a.one", PeerB: "b.two", Messages: 1}},
	})
	apply(t, s, &Changes{Results: []Result{
		{ID: core.DeliveryID{Seq: 1, Recipient: hook}, State: core.DeliveryAcked, Attempts: 1, Ack: core.Ack{Kind: core.AckHTTP2xx, At: noon, Detail: "204"}},
	}})
	found, err := s.Inspect(t.Context(), testWorkspace, "subject")
	if err != nil {
		t.Fatal(err)
	}
	if *found.Seq != 1 || found.Arrival != "native" || found.Carrier != "mqtt" || found.Parked || found.Channel != testChannel ||
		found.Parties != [2]string{} || string(found.Envelope) != string(subject.Payload) {
		t.Errorf("message: %+v", found)
	}
	if want := []core.Decision{
		{Recipient: "webhook:hook", Decision: "deliver"},
		{Recipient: "peer:b.two", Decision: "deliver"},
		{Recipient: "carrier:mqtt", Decision: "ignore", Reason: core.IgnoreOrigin},
		{Recipient: "recipient:300", Decision: "ignore", Reason: core.IgnoreOutOfScope},
	}; !slices.Equal(found.Decisions, want) {
		t.Errorf("decisions: %+v", found.Decisions)
	}
	if d := found.Deliveries; len(d) != 2 || d[0].State != core.DeliveryAcked || *d[0].Ack != (core.AckView{Kind: core.AckHTTP2xx, At: noon, Detail: "204"}) ||
		d[1].State != core.DeliveryPending || d[1].Ack != nil {
		t.Errorf("deliveries: %+v", d)
	}
	want := core.ReceiptView{Channel: testChannel, Seq: 2, ID: "r1", From: "b.two", Status: core.ReceiptRejected, ReasonCode: "busy"}
	if r := found.Receipts; len(r) != 2 || r[0] != want || r[1].ID != "r4" {
		t.Errorf("receipts: %+v", r)
	}
	if found, err = s.Inspect(t.Context(), testWorkspace, "r2"); err != nil || found.Parties != [2]string{"a.one", "b.two"} {
		t.Errorf("a room's message: %+v, %v", found, err)
	}
	for _, key := range []Key{testKey("none"), {"ws-none", "subject"}} {
		if _, err := s.Inspect(t.Context(), key.WorkspaceID, key.ID); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("inspect %v: %v", key, err)
		}
	}
}

func TestSeqRange(t *testing.T) {
	s := openStore(t, t.TempDir())
	check := func(when string, oldest, newest int64) {
		t.Helper()
		if o, n, err := s.SeqRange(t.Context()); err != nil || o != oldest || n != newest {
			t.Errorf("%s: %d to %d, %v", when, o, n, err)
		}
	}
	check("empty", 1, 0)
	apply(t, s, &Changes{Messages: []Message{say(1, "a", ""), say(4, "b", "")}})
	check("two messages", 1, 4)
}

// explain gives the query's plan on one line.
func explain(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.readers.DB.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("explain %s: %v", query, err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "; ")
}
