package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

func TestAMessageToALiveAgentWakesItOnce(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	w.turn = func(context.Context, core.WakeRequest, func([]byte) core.Settlement) (core.WakeOutcome, error) {
		return core.WakeOutcome{State: core.WakeSucceeded, Detail: "fine", Usage: &core.Usage{InputTokens: 11, OutputTokens: 22}}, nil
	}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("q", "hello", `"to":"bot"`)))
	h.allOver("bot", 1)

	got := w.given()
	if len(got) != 1 || len(got[0].Messages) != 1 || got[0].Messages[0].ID != "q" || got[0].ID == "" || got[0].Deadline.IsZero() {
		t.Fatalf("woken with %+v", got)
	}
	h.eventually("its delivery is acknowledged", func() bool { return h.deliveryState("q", "peer:bot") == core.DeliveryAcked })
	found := h.inspect("q")
	if len(found.Wakes) != 1 || len(found.Skips) != 0 {
		t.Fatalf("inspected as %+v, %+v", found.Wakes, found.Skips)
	}
	wake := found.Wakes[0]
	if wake.State != core.WakeSucceeded || wake.Usage != core.UsageActual || wake.Charged.InputTokens != 11 || wake.Root != "q" || wake.Depth != 0 {
		t.Errorf("the wake is %+v", wake)
	}
	p, ok := found.Participations["peer:bot"]
	if !ok || p.Version != "network-participation/v1" || p.Mode != core.ModeLive || p.ChannelID != "ops" || p.Bounds == nil {
		t.Errorf("the participation is %+v", p)
	}
}

// capabilityDocument is a document with its digest.
const capabilityDocument = `{"id":"compare-readings","summary":"Compare <now> & then.","outcome":"A table of differences > 5%.",` +
	`"constraints":["Read only"],"digest":"sha256:26aef3ffebfeb93dfed27b7b54b1d00d6bc771fdbdab7171125834b3cc7654bf"}`

func TestEverySkipIsStoredWithItsReason(t *testing.T) {
	two, one := 2, 1
	busy := make(chan struct{})
	w := &ward{agents: []core.HostedAgent{
		liveAgent("bot", core.BoundsRequest{MaxWakeDepth: &two, CoalesceWindow: span(300 * time.Millisecond)}),
		liveAgent("near", core.BoundsRequest{MaxWakeDepth: &one, CoalesceWindow: span(100 * time.Millisecond)}),
		liveAgent("poor", core.BoundsRequest{MaxWakes: &one, CoalesceWindow: span(100 * time.Millisecond)}),
		{Name: "home", Mode: core.ModeLocal, WorkspaceID: "ws", Channel: "ops", Peer: "home"},
	}}
	w.turn = func(ctx context.Context, r core.WakeRequest, _ func([]byte) core.Settlement) (core.WakeOutcome, error) {
		if r.Agent == "bot" {
			select {
			case <-busy:
			case <-ctx.Done():
			}
		}
		return core.WakeOutcome{State: core.WakeSucceeded}, nil
	}
	h := newWardHouse(t, w)
	h.freeze() // The window of first is open until joins is there.
	take := func(id string, more ...string) { h.take(h.a.Ingress(h.sayAs(id, "x", more...))) }
	take("local", `"to":"home"`)
	take("nobody")
	capability := strings.NewReplacer(`"kind":"say"`, `"kind":"capability"`, `"body":{"text":"x"}`, `"body":{"capability":`+capabilityDocument+`}`)
	h.take(h.a.Ingress([]byte(capability.Replace(string(h.sayAs("offer", "x", `"to":"bot"`, `"work_id":"w1"`))))))
	take("first", `"to":"bot"`)
	take("joins", `"to":"bot"`, `"causation_id":"first"`)
	// What joins a wake is no wake between, so its own effects are no deeper.
	take("sibling", `"to":"bot"`, `"causation_id":"first"`)
	take("niece", `"to":"bot"`, `"causation_id":"joins"`)
	take("deep", `"to":"near"`, `"causation_id":"niece"`)
	take("spend", `"mentions":["poor"]`)
	take("broke", `"mentions":["poor"]`)
	h.thaw()
	h.eventually("the agent is busy", func() bool { return len(h.agent("bot").Wakes) > 0 && h.agent("bot").Wakes[0].State == core.WakeRunning })
	take("later", `"to":"bot"`)
	unmeant := []core.Skip{core.SkipNotAddressed}
	for id, want := range map[string]map[string][]core.Skip{
		"local":   {"peer:home": {core.SkipNotLive}, "peer:bot": unmeant, "peer:near": unmeant, "peer:poor": unmeant},
		"nobody":  {"peer:bot": unmeant, "peer:near": unmeant, "peer:poor": unmeant},
		"offer":   {"peer:bot": {core.SkipNotEligible}, "peer:near": {core.SkipNotEligible}, "peer:poor": {core.SkipNotEligible}},
		"first":   {"peer:near": unmeant, "peer:poor": unmeant},
		"joins":   {"peer:bot": {core.SkipCoalesced}, "peer:near": unmeant, "peer:poor": unmeant},
		"sibling": {"peer:bot": {core.SkipCoalesced}, "peer:near": unmeant, "peer:poor": unmeant},
		"niece":   {"peer:bot": {core.SkipCoalesced}, "peer:near": unmeant, "peer:poor": unmeant},
		"deep":    {"peer:near": {core.SkipDepthExceeded}, "peer:bot": unmeant, "peer:poor": unmeant},
		"broke":   {"peer:bot": unmeant, "peer:near": unmeant, "peer:poor": {core.SkipBudgetExhausted}},
		"later":   {"peer:bot": {core.SkipInFlight}, "peer:near": unmeant, "peer:poor": unmeant},
	} {
		if got := h.skips(id); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: skipped as %v, want %v", id, got, want)
		}
	}
	close(busy)
	h.allOver("bot", 2)
	if got := w.given(); got[len(got)-1].Messages[len(got[len(got)-1].Messages)-1].ID != "later" {
		t.Errorf("the follow-up was given %+v", got[len(got)-1].Messages)
	}
}

func span(d time.Duration) *time.Duration { return &d }

func TestAvailabilityOffAdmitsNobodyAndEnrolsNobody(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	h := newWardHouse(t, w)
	before := h.agent("bot")
	h.stop()

	h.config.Network.Enabled = false
	w2 := &ward{agents: []core.HostedAgent{liveAgent("bot", quick()), liveAgent("new", quick())}, turn: succeed}
	h.hostAgents(w2)
	h.take(h.a.Ingress(h.sayAs("off", "x", `"to":"bot"`)))
	h.take(h.a.Ingress(h.sayAs("off2", "x", `"to":"new"`)))
	if got := h.skips("off")["peer:bot"]; !reflect.DeepEqual(got, []core.Skip{core.SkipNetworkDisabled}) {
		t.Errorf("skipped as %v", got)
	}
	if got := h.skips("off2")["peer:new"]; !reflect.DeepEqual(got, []core.Skip{core.SkipNotLive}) {
		t.Errorf("the one that is not enrolled was skipped as %v", got)
	}
	if got := h.agent("bot"); !reflect.DeepEqual(got.ResolvedNetworkParticipation, before.ResolvedNetworkParticipation) || !got.ResolvedAt.Equal(*before.ResolvedAt) {
		t.Errorf("the participation is %+v, was %+v", got, before)
	}
	if got := h.agent("new"); got.ResolvedNetworkParticipation != nil {
		t.Errorf("the new one is enrolled: %+v", got)
	}
	if err := h.View("a").RenewAgent(t.Context(), "bot"); !errors.Is(err, core.ErrForbidden) {
		t.Errorf("renewing is %v", err)
	}
}

func TestTwoAgentsThatAnswerEachOtherForEverStopAtTheDepth(t *testing.T) {
	for name, cause := range map[string]bool{"with causation_id": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			w := &ward{agents: []core.HostedAgent{liveAgent("ping", quick()), liveAgent("pong", quick())}}
			var h *house
			w.turn = func(_ context.Context, r core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
				other := map[string]string{"ping": "pong", "pong": "ping"}[r.Agent]
				more := []string{fmt.Sprintf(`"to":%q`, other)}
				if cause {
					more = append(more, fmt.Sprintf(`"causation_id":%q`, r.Messages[len(r.Messages)-1].ID))
				}
				raw := strings.Replace(string(h.sayAs("by-"+r.ID, "your turn", more...)), `"from":"ann"`, fmt.Sprintf(`"from":%q`, r.Agent), 1)
				if s := say([]byte(raw)); s.Verdict != core.VerdictCommitted {
					return core.WakeOutcome{State: core.WakeFailed, Detail: fmt.Sprint(s.Rejection)}, nil
				}
				return core.WakeOutcome{State: core.WakeSucceeded}, nil
			}
			h = newHouse(t)
			h.hostAgents(w)
			h.take(h.a.Ingress(h.sayAs("start", "go", `"to":"ping"`)))
			h.allOver("ping", 2)
			h.allOver("pong", 1)
			if got := len(w.given()); got != 3 {
				t.Fatalf("%d wakes, want max_wake_depth", got)
			}
			if got := h.skips("by-" + w.given()[2].ID)["peer:pong"]; !reflect.DeepEqual(got, []core.Skip{core.SkipDepthExceeded}) {
				t.Errorf("the history says %v", got)
			}
		})
	}
}

func TestABurstIsOneWakeOrOneWakeAndOneFollowUp(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		want  int
	}{"with a common cause": {`,"causation_id":"fire"`, 1}, "without": {"", 2}} {
		t.Run(name, func(t *testing.T) {
			w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{CoalesceWindow: span(5 * time.Second)})}}
			h := newWardHouse(t, w)
			h.freeze() // The window is open until all are there.
			var frames []*carriertest.Injected
			for range 1000 {
				more := `"mentions":["bot"]` + c.cause
				frames = append(frames, h.a.Ingress(h.say(more)))
			}
			for _, f := range frames {
				h.take(f)
			}
			h.offset.Store(int64(6 * time.Second))
			h.runner.poke()
			h.eventually("the first wake is over", func() bool {
				wakes := h.agent("bot").Wakes // Once: the follow-up appears with the end of the first.
				return len(wakes) > 0 && wakes[len(wakes)-1].State.Final()
			})
			h.offset.Store(int64(12 * time.Second))
			h.runner.poke()
			h.allOver("bot", c.want)
			if got := h.agent("bot").Wakes; len(got) != c.want {
				t.Fatalf("%d wakes, want %d", len(got), c.want)
			}
			if got := w.given(); len(got[0].Messages) > wakeMessages {
				t.Errorf("%d messages in one wake", len(got[0].Messages))
			}
			if c.want == 2 && h.agent("bot").Wakes[0].Messages != 999 {
				t.Errorf("the follow-up is for %d messages", h.agent("bot").Wakes[0].Messages)
			}
		})
	}
}

// The answer of one agent joins the wake of the other, which then follows from
// it.
func TestAnAnswerThatJoinsAWakeDeepensIt(t *testing.T) {
	two := 2
	bounds := func(window time.Duration) core.BoundsRequest {
		return core.BoundsRequest{MaxWakeDepth: &two, CoalesceWindow: span(window)}
	}
	w := &ward{agents: []core.HostedAgent{liveAgent("ping", bounds(100*time.Millisecond)), liveAgent("pong", bounds(1500*time.Millisecond))}}
	var h *house
	w.turn = func(_ context.Context, r core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
		other := map[string]string{"ping": "pong", "pong": "ping"}[r.Agent]
		raw := strings.Replace(string(h.sayAs("by-"+r.Agent, "your turn", fmt.Sprintf(`"to":%q`, other))), `"from":"ann"`, fmt.Sprintf(`"from":%q`, r.Agent), 1)
		say([]byte(raw))
		return core.WakeOutcome{State: core.WakeSucceeded}, nil
	}
	h = newHouse(t)
	h.hostAgents(w)
	h.take(h.a.Ingress(h.sayAs("start", "go", `"mentions":["ping","pong"]`)))
	h.allOver("ping", 1)
	h.allOver("pong", 1)
	if got := h.skips("by-ping")["peer:pong"]; !reflect.DeepEqual(got, []core.Skip{core.SkipCoalesced}) {
		t.Errorf("the answer of ping was skipped as %v", got)
	}
	if got := h.skips("by-pong")["peer:ping"]; !reflect.DeepEqual(got, []core.Skip{core.SkipDepthExceeded}) {
		t.Errorf("the answer of pong was skipped as %v", got)
	}
}

func TestWhatAWakeHandsOver(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{CoalesceWindow: span(5 * time.Second)})}}
	h := newWardHouse(t, w)
	h.freeze()
	h.take(h.a.Ingress(h.sayAs("heard-1", "x")))
	h.take(h.a.Ingress(h.sayAs("heard-2", strings.Repeat("y", 70<<10))))
	h.take(h.a.Ingress(h.sayAs("heard-3", strings.Repeat("y", 10<<10))))
	h.take(h.a.Ingress(h.sayAs("q", strings.Repeat("z", 60<<10), `"to":"bot"`)))
	h.take(h.a.Ingress(h.sayAs("q2", strings.Repeat("z", 10<<10), `"to":"bot"`, `"causation_id":"q"`)))
	h.offset.Store(int64(6 * time.Second))
	h.runner.poke()
	h.allOver("bot", 1)
	// What is longer than a wake is given by its id; what had no room beside the
	// rest stays unread, and comes along with the next wake.
	h.eventually("what was handed over is acknowledged", func() bool { return h.agent("bot").Unread == 2 })
	h.take(h.a.Ingress(h.sayAs("q3", "x", `"to":"bot"`)))
	h.offset.Store(int64(12 * time.Second))
	h.runner.poke()
	h.allOver("bot", 2)
	for i, want := range [][]string{
		{"heard-1", "heard-2 omitted true", "q", "q2 omitted true"},
		{"heard-3", "q2", "q3"},
	} {
		var got []string
		for _, m := range w.given()[i].Messages {
			name := m.ID
			if m.Raw == nil {
				name += fmt.Sprintf(" omitted %t", m.Bytes > 0)
			}
			got = append(got, name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("wake %d handed over %q, want %q", i+1, got, want)
		}
	}
	if n := w.pushed(); n != 0 {
		t.Errorf("%d says came outside of a wake", n)
	}
}

func TestRenewingGivesANewBudget(t *testing.T) {
	one := 1
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{MaxWakes: &one, CoalesceWindow: span(100 * time.Millisecond)})}}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("a", "x", `"to":"bot"`)))
	h.allOver("bot", 1)
	h.take(h.a.Ingress(h.sayAs("b", "x", `"to":"bot"`)))
	h.stop()
	h.hostAgents(w)
	h.take(h.a.Ingress(h.sayAs("c", "x", `"to":"bot"`)))
	for _, id := range []string{"b", "c"} {
		if got := h.skips(id)["peer:bot"]; !reflect.DeepEqual(got, []core.Skip{core.SkipBudgetExhausted}) {
			t.Errorf("%s was skipped as %v: a restart must keep the budget", id, got)
		}
	}
	if err := h.View("a").RenewAgent(t.Context(), "bot"); err != nil {
		t.Fatal(err)
	}
	h.take(h.a.Ingress(h.sayAs("d", "x", `"to":"bot"`)))
	h.allOver("bot", 2)
	if used := h.agent("bot").Used; used.Wakes != 1 {
		t.Errorf("the new budget has used %+v", used)
	}
	if err := h.View("a").RenewAgent(t.Context(), "nobody"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("renewing nobody is %v", err)
	}
}

func TestAMessageShowsTheParticipationByWhichItWasDecided(t *testing.T) {
	one, two := 1, 2
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{MaxWakes: &one, CoalesceWindow: span(100 * time.Millisecond)})}}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("before", "x")))
	h.offset.Add(int64(time.Second))
	h.stop()
	w.agents[0].Bounds.MaxWakes = &two
	h.hostAgents(w)
	if err := h.View("a").RenewAgent(t.Context(), "bot"); err != nil {
		t.Fatal(err)
	}
	h.offset.Add(int64(time.Second))
	h.take(h.a.Ingress(h.sayAs("after", "x")))
	for id, want := range map[string]int{"before": one, "after": two} {
		p, ok := h.inspect(id).Participations["peer:bot"]
		if !ok || p.Bounds.MaxWakes != want {
			t.Errorf("%s shows %+v, want max_wakes %d", id, p.Bounds, want)
		}
	}
}

func TestAWakeIsTriedAgainAndGivenUpWhenItCannotBeHandedOver(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	w.refuse = func(core.WakeRequest) error {
		return &core.SendError{Code: core.CodeUnavailable, Detail: "agent is backing off"}
	}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
	h.eventually("it is given up", func() bool {
		h.offset.Add(int64(time.Second)) // Time flies: the pauses between the attempts pass.
		h.runner.poke()
		wakes := h.agent("bot").Wakes
		return len(wakes) == 1 && wakes[0].State == core.WakeFailed
	})
	wake := h.agent("bot").Wakes[0]
	if wake.Attempts != maxWakeAttempts || !strings.Contains(wake.Detail, "backing off") || wake.HandedOver != 0 {
		t.Errorf("the wake is %+v", wake)
	}
	agent := h.agent("bot")
	if none := (core.BudgetView{WallTime: "0s"}); wake.Charged != none || *agent.Used != none {
		t.Errorf("an agent that was given nothing is charged %+v, and has used %+v", wake.Charged, agent.Used)
	}
	if agent.Unread != 1 {
		t.Errorf("%d messages are unread", agent.Unread)
	}
}

func TestARestartSettlesOrRerunsWhatWasRunning(t *testing.T) {
	for name, wrote := range map[string]bool{"an envelope was committed": true, "nothing was": false} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{}, 8)
			w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
			var h *house
			w.turn = func(ctx context.Context, r core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
				if wrote {
					say([]byte(strings.Replace(string(h.sayAs("answer", "x")), `"from":"ann"`, `"from":"bot"`, 1)))
				}
				begun <- struct{}{}
				<-ctx.Done()
				return core.WakeOutcome{}, ctx.Err()
			}
			h = newHouse(t)
			h.hostAgents(w)
			h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
			<-begun
			h.stop()
			after := &ward{agents: w.agents, turn: succeed}
			h.hostAgents(after)
			h.allOver("bot", 1)
			wake := h.agent("bot").Wakes[0]
			want, runs := core.WakeSucceeded, 1
			if wrote {
				want, runs = core.WakeFailed, 0
			}
			if wake.State != want || len(after.given()) != runs || len(h.agent("bot").Wakes) != 1 {
				t.Errorf("the wake is %+v, after %d more runs", wake, len(after.given()))
			}
			if runs == 1 && after.given()[0].Messages[0].ID != "q" {
				t.Errorf("the rerun was given %+v", after.given()[0].Messages)
			}
		})
	}
}
