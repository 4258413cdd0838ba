package store

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestWhatIsAppliedIsLoaded(t *testing.T) {
	s := openStore(t, t.TempDir())
	mqtt, nats := ensure(t, s, core.Recipient{Carrier: "mqtt"}), ensure(t, s, core.Recipient{Carrier: "nats"})
	thread, room := threadKey("thread_abc"), directKey("direct_0123456789abcdef0123456789abcdef")
	workKey := WorkKey{testWorkspace, "job 1"}
	opener := say(1, "open", "thread_abc")
	opener.WorkID = workKey.WorkID
	direct := say(2, "dm", "")
	direct.Container = room.Container
	work := &Work{
		Key: workKey, Channel: testChannel, Container: thread.Container, Initiator: "a.one", Target: "b.two",
		State: core.WorkSubmitted, OpenedSeq: 1, UpdatedSeq: 1, UpdatedAt: noon,
	}
	threadRow := &Container{Key: thread, Participants: 2, Messages: 1, LastSeq: 1, LastAt: noon}
	roomRow := &Container{Key: room, PeerA: "a.one", PeerB: "b.two", Messages: 1, LastSeq: 2, LastAt: noon}
	heard := &Peer{
		Key: PeerKey{testWorkspace, "a.one"}, Link: mqtt, Channel: testChannel, LastHeard: noon,
		Card: []byte(`{"peer_id":"a.one"}`), CardLink: mqtt, CardAt: noon,
	}
	apply(t, s, &Changes{
		Now: noon, Messages: []Message{opener, direct}, Deliveries: append(deliverTo(1, nats), deliverTo(2, nats, mqtt)...),
		Works: []*Work{work}, Containers: []*Container{threadRow, roomRow},
		Members: []Member{{thread, "a.one"}, {thread, "b.two"}}, Peers: []*Peer{heard},
	})

	got := load(t, s, Needs{
		Keys:       []Key{testKey("open"), testKey("dm"), testKey("none"), {"elsewhere", "open"}, testKey("open")},
		Works:      []WorkKey{workKey, {testWorkspace, "none"}},
		Containers: []ContainerKey{thread, room, threadKey("thread_none")},
		Members:    []Member{{thread, "a.one"}, {thread, "c.three"}, {threadKey("thread_none"), "a.one"}},
		Peers:      []PeerKey{{testWorkspace, "a.one"}, {testWorkspace, "b.two"}},
	})
	heard.Card = nil
	want := &State{
		Keys: map[Key]*Known{
			testKey("open"): {Seq: 1, Content: opener.Content, CommittedAt: noon, Recipients: []int64{nats}},
			testKey("dm"):   {Seq: 2, Content: direct.Content, CommittedAt: noon, Recipients: []int64{mqtt, nats}},
		},
		Works:      map[WorkKey]*Work{workKey: work},
		Containers: map[ContainerKey]*Container{thread: threadRow, room: roomRow},
		Members:    map[Member]bool{{thread, "a.one"}: true},
		Peers:      map[PeerKey]*Peer{heard.Key: heard},
		Parked:     map[WorkKey][]*Parked{},
		Owners:     map[int64]*Owner{},
		Causes:     map[Key][]*Run{},
		Runs:       map[int64]*Run{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("loaded\n%s\nwant\n%s", dump(got), dump(want))
	}
	if last, err := s.LastSeq(t.Context()); err != nil || last != 2 {
		t.Fatalf("last seq %d, %v", last, err)
	}
	integrity(t, s)
}

func TestRowsAreRewrittenWhole(t *testing.T) {
	s := openStore(t, t.TempDir())
	thread := threadKey("thread_abc")
	key := WorkKey{testWorkspace, "job"}
	for i := int64(1); i <= 3; i++ {
		m := say(i, string(rune('a'+i)), "thread_abc")
		m.WorkID = key.WorkID
		state := []core.WorkState{core.WorkSubmitted, core.WorkWorking, core.WorkCompleted}[i-1]
		apply(t, s, &Changes{
			Messages:   []Message{m},
			Works:      []*Work{{Key: key, Channel: testChannel, Container: thread.Container, State: state, UpdatedSeq: i}},
			Containers: []*Container{{Key: thread, Messages: i, LastSeq: i, LastAt: noon.Add(time.Duration(i) * time.Second)}},
		})
		got := load(t, s, Needs{Works: []WorkKey{key}, Containers: []ContainerKey{thread}})
		if w := got.Works[key]; w == nil || w.State != state || w.UpdatedSeq != i {
			t.Fatalf("work after message %d: %+v", i, w)
		}
		if c := got.Containers[thread]; c == nil || c.Messages != i || !c.LastAt.Equal(noon.Add(time.Duration(i)*time.Second)) {
			t.Fatalf("thread after message %d: %+v", i, c)
		}
	}
}

func TestAMessageThatBindsNothingLeavesNoContainerAndNoWork(t *testing.T) {
	s := openStore(t, t.TempDir())
	m := say(1, "receipt", "thread_new")
	m.WorkID = "job"
	apply(t, s, &Changes{Messages: []Message{m}})
	got := load(t, s, Needs{Works: []WorkKey{{testWorkspace, "job"}}, Containers: []ContainerKey{threadKey("thread_new")}})
	if len(got.Works) != 0 || len(got.Containers) != 0 {
		t.Fatalf("it bound something: %s", dump(got))
	}
	page, _, err := s.History(t.Context(), core.HistoryQuery{
		WorkspaceID: testWorkspace, Channel: testChannel, Limit: 10, ThreadID: "thread_new", WorkID: "job",
	})
	if err != nil || len(page) != 1 {
		t.Fatalf("history of its thread: %v, %v", page, err)
	}
	// The real ones take the same rows over.
	apply(t, s, &Changes{
		Messages: []Message{say(2, "opener", "thread_new")},
		Works: []*Work{{
			Key: WorkKey{testWorkspace, "job"}, Channel: testChannel, Container: threadKey("thread_new").Container, State: core.WorkSubmitted,
		}},
		Containers: []*Container{{Key: threadKey("thread_new"), Messages: 1, LastSeq: 2, LastAt: noon}},
	})
	got = load(t, s, Needs{Works: []WorkKey{{testWorkspace, "job"}}, Containers: []ContainerKey{threadKey("thread_new")}})
	if len(got.Works) != 1 || len(got.Containers) != 1 {
		t.Fatalf("the opener bound %s", dump(got))
	}
}

func TestAnIDIsAcceptedOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	apply(t, s, &Changes{Messages: []Message{say(1, "x", "")}})
	err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		return tx.Apply(ctx, &Changes{Messages: []Message{say(2, "y", ""), say(3, "x", "")}})
	})
	if err == nil || Passing(err) {
		t.Fatalf("the second x: %v", err)
	}
	if got := load(t, s, Needs{Keys: []Key{testKey("x"), testKey("y")}}); len(got.Keys) != 1 || got.Keys[testKey("x")].Seq != 1 {
		t.Fatalf("known after the refusal: %s", dump(got))
	}
}

func TestPeerCardsOutliveLaterMessages(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	key := PeerKey{testWorkspace, "a.one"}
	card := []byte(`{"peer_id":"a.one","n":1.10}`)
	apply(t, s, &Changes{Peers: []*Peer{{Key: key, Link: link, Channel: testChannel, LastHeard: noon, Card: card, CardLink: link, CardAt: noon}}})
	apply(t, s, &Changes{Peers: []*Peer{{Key: key, Link: link, Channel: testChannel, LastHeard: noon.Add(time.Minute)}}})
	peers, err := s.Peers(t.Context(), testWorkspace)
	if err != nil || len(peers) != 1 {
		t.Fatalf("peers: %v, %v", peers, err)
	}
	p := peers[0]
	if string(p.Card) != string(card) || p.CardCarrier != "mqtt" || !p.CardAt.Equal(noon) ||
		p.Carrier != "mqtt" || p.Channel != testChannel || !p.LastHeard.Equal(noon.Add(time.Minute)) {
		t.Fatalf("peer: %+v", p)
	}
}

func TestWhatHasNoCodeIsRefused(t *testing.T) {
	s := openStore(t, t.TempDir())
	odd := say(1, "x", "")
	odd.Kind = "dance"
	for name, c := range map[string]*Changes{
		"kind":       {Messages: []Message{odd}},
		"surface":    {Containers: []*Container{{Key: ContainerKey{testWorkspace, testChannel, core.Container{Surface: "hall", ID: "x"}}}}},
		"work state": {Works: []*Work{{Key: WorkKey{testWorkspace, "job"}, Channel: testChannel, State: "resting"}}},
	} {
		err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.Apply(ctx, c) })
		if err == nil || Passing(err) {
			t.Errorf("an unknown %s: %v", name, err)
		}
	}
}
