package gateway

import (
	"context"
	"reflect"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestAWakeTellsWhichConversationsItHadToDoWith(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick()), liveAgent("other", quick()), liveAgent("third", quick())}}
	h := newWardHouse(t, w)
	w.turn = func(_ context.Context, r core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
		if r.Agent == "bot" {
			// What begins in a room goes on in a thread.
			say(from("bot", h.sayAs("goes on", "x", `"to":"other"`)))
		}
		return core.WakeOutcome{State: core.WakeSucceeded}, nil
	}
	h.take(h.a.Ingress(h.direct("in a room", "ops", "bot")))
	h.allOver("other", 1)
	h.take(h.a.Ingress(h.sayAs("in a thread", "x", `"to":"third"`)))
	h.take(h.a.Ingress(h.sayAs("of nothing known", "x", `"to":"third"`, `"causation_id":"unknown"`)))
	h.allOver("third", 2)
	room := [][2]string{{"ann", "bot"}}
	for id, want := range map[string]core.WakeView{
		"in a room":        {Root: "in a room", RootChannel: "ops", Rooms: room},
		"goes on":          {Root: "in a room", RootChannel: "ops", Rooms: room},
		"in a thread":      {Root: "in a thread", RootChannel: "ops"},
		"of nothing known": {Root: "unknown"},
	} {
		got := h.inspect(id).Wakes
		if len(got) != 1 || got[0].WorkspaceID != "ws" || got[0].Root != want.Root || got[0].RootChannel != want.RootChannel || !reflect.DeepEqual(got[0].Rooms, want.Rooms) {
			t.Errorf("%s woke %+v, want %+v", id, got, want)
		}
	}
	if got := h.agent("other").Wakes[0]; got.RootChannel != "ops" || !reflect.DeepEqual(got.Rooms, room) {
		t.Errorf("the list of agents has %+v", got)
	}
}
