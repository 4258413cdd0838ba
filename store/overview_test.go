package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestPeersAreThoseAttachedAndThoseHeard(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	write(t, s, func(ctx context.Context, tx *Tx) error {
		for _, channel := range []string{"general", "build"} {
			if _, err := tx.Attach(ctx, core.Recipient{Carrier: "http", WorkspaceID: testWorkspace, Channel: channel, Peer: "b.two"}, false); err != nil {
				return err
			}
		}
		_, err := tx.Attach(ctx, core.Recipient{Carrier: "http", WorkspaceID: "ws-2", Channel: "general", Peer: "z"}, false)
		return err
	})
	apply(t, s, &Changes{Peers: []*Peer{
		{Key: PeerKey{testWorkspace, "a.one"}, Link: link, Channel: testChannel, LastHeard: noon},
		{Key: PeerKey{"ws-2", "a.one"}, Link: link, Channel: testChannel, LastHeard: noon},
	}})
	got, err := s.Peers(t.Context(), testWorkspace)
	if err != nil || len(got) != 2 {
		t.Fatalf("peers: %+v, %v", got, err)
	}
	if p := got[0]; p.Peer != "a.one" || p.Carrier != "mqtt" || p.Channel != testChannel || !p.LastHeard.Equal(noon) ||
		p.Attached == nil || len(p.Attached) != 0 || p.Card != nil || p.CardAt != nil {
		t.Errorf("heard: %+v", p)
	}
	if p := got[1]; p.Peer != "b.two" || !slices.Equal(p.Attached, []string{"build", "general"}) || p.LastHeard != nil || p.Carrier != "" {
		t.Errorf("attached: %+v", p)
	}
	if none, err := s.Peers(t.Context(), "ws-none"); err != nil || none == nil || len(none) != 0 {
		t.Errorf("of an unknown workspace: %v, %v", none, err)
	}
}

func TestCardsInOneAnswerAreBounded(t *testing.T) {
	s := openStore(t, t.TempDir())
	link := ensure(t, s, core.Recipient{Carrier: "mqtt"})
	var list []*Peer
	for i := range 5 {
		list = append(list, &Peer{
			Key: PeerKey{testWorkspace, fmt.Sprintf("p%d", i)}, Link: link, LastHeard: noon.Add(time.Duration(i) * time.Second),
			Card: bytes.Repeat([]byte{' '}, 10<<20), CardLink: link, CardAt: noon,
		})
	}
	apply(t, s, &Changes{Peers: list})
	got, err := s.Peers(t.Context(), testWorkspace)
	if err != nil || len(got) != 5 {
		t.Fatalf("%d peers, %v", len(got), err)
	}
	for i, p := range got {
		if (p.Card != nil) != (i >= 2) {
			t.Errorf("%s has a card of %d bytes", p.Peer, len(p.Card))
		}
	}
}

func TestAFilterThatFewPassLooksAtABoundedNumber(t *testing.T) {
	s := openStore(t, t.TempDir())
	const total = historyScan + 500
	var c Changes
	for seq := int64(1); seq <= total; seq++ {
		c.Messages = append(c.Messages, say(seq, fmt.Sprintf("m%d", seq), ""))
	}
	c.Messages[total-1].Kind = core.KindGreet
	apply(t, s, &c)
	q := core.HistoryQuery{WorkspaceID: testWorkspace, Channel: testChannel, Kind: core.KindGreet, Limit: 10}
	page, next, err := s.History(t.Context(), q)
	if err != nil || len(page) != 0 || next == nil || *next != historyScan {
		t.Fatalf("the first page: %v, next %v, %v", page, next, err)
	}
	q.After = *next
	page, next, err = s.History(t.Context(), q)
	if err != nil || len(page) != 1 || page[0].Seq != total || next != nil {
		t.Fatalf("the second page: %v, next %v, %v", page, next, err)
	}
}
