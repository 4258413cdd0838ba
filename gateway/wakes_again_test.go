package gateway

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// hang is a turn that the gateway's end interrupts.
func hang(ctx context.Context, _ core.WakeRequest, _ func([]byte) core.Settlement) (core.WakeOutcome, error) {
	<-ctx.Done()
	return core.WakeOutcome{}, ctx.Err()
}

func namesOf(w core.WakeRequest) []string {
	var names []string
	for _, m := range w.Messages {
		names = append(names, m.ID)
	}
	return names
}

func TestAWakeThatIsRunAgainIsGivenTheSame(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}, turn: hang}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("heard", "x")))
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
	h.eventually("it is handed over", func() bool { return h.deliveryState("q", "peer:bot") == core.DeliveryAcked })
	h.take(h.a.Ingress(h.sayAs("meanwhile", "x")))
	h.stop()
	after := &ward{agents: w.agents, turn: succeed}
	h.hostAgents(after)
	h.allOver("bot", 1)
	if first, again := namesOf(w.given()[0]), namesOf(after.given()[0]); !reflect.DeepEqual(first, []string{"heard", "q"}) || !reflect.DeepEqual(first, again) {
		t.Errorf("the first run was given %q, the second %q", first, again)
	}
	for id, want := range map[string][]core.WakePart{
		"heard": {core.WakePartCameAlong}, "q": {core.WakePartHandedOver}, "meanwhile": nil,
	} {
		var got []core.WakePart
		for _, k := range h.inspect(id).Wakes {
			got = append(got, k.ThisMessage)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s shows %q, want %q", id, got, want)
		}
	}
}

func TestWhatAWakeHadNoRoomForShowsThatItWasNotHandedOver(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{CoalesceWindow: span(5 * time.Second)})}}
	h := newWardHouse(t, w)
	h.freeze()
	for i := range wakeMessages + 2 {
		h.take(h.a.Ingress(h.sayAs(fmt.Sprintf("m%02d", i), "x", `"to":"bot"`, `"causation_id":"fire"`)))
	}
	h.offset.Store(int64(6 * time.Second))
	h.runner.poke()
	h.allOver("bot", 1)
	wake := h.agent("bot").Wakes[0]
	if wake.Messages != wakeMessages+2 || wake.HandedOver != wakeMessages {
		t.Errorf("the wake is for %d messages, and was handed %d", wake.Messages, wake.HandedOver)
	}
	for id, want := range map[string]core.WakePart{"m00": core.WakePartHandedOver, "m33": core.WakePartNotHandedOver} {
		if got := h.inspect(id).Wakes; len(got) != 1 || got[0].ThisMessage != want {
			t.Errorf("%s shows %+v, want %s", id, got, want)
		}
	}
	h.take(h.a.Ingress(h.sayAs("next", "x", `"to":"bot"`)))
	h.offset.Store(int64(12 * time.Second))
	h.runner.poke()
	h.allOver("bot", 2)
	if got := namesOf(w.given()[1]); !reflect.DeepEqual(got, []string{"m32", "m33", "next"}) {
		t.Errorf("the next wake was given %q", got)
	}
}

func TestEveryRunThatWasInterruptedIsCharged(t *testing.T) {
	tokens := 90
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{
		CoalesceWindow: span(100 * time.Millisecond), MaxWakeWallTime: span(10 * time.Second), MaxTotalWallTime: span(25 * time.Second),
		MaxInputTokens: &tokens,
	})}, turn: hang}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
	for run, want := range []core.BudgetView{
		{Wakes: 1, WallTime: "10s", InputTokens: 11}, {Wakes: 1, WallTime: "20s", InputTokens: 20}, {Wakes: 1, WallTime: "25s", InputTokens: 28},
	} {
		h.eventually("it runs", func() bool {
			return len(w.given()) == run+1
		})
		got := *h.agent("bot").Used
		got.OutputTokens = 0
		if got != want {
			t.Errorf("in run %d it has used %+v, want %+v", run+1, got, want)
		}
		h.stop()
		h.hostAgents(w)
	}
	h.allOver("bot", 1)
	wake := h.agent("bot").Wakes[0]
	if wake.State != core.WakeFailed || wake.Usage != core.UsageUnavailable || wake.Attempts != 3 || wake.Charged.WallTime != "25s" {
		t.Errorf("with nothing left of its budget the wake is %+v", wake)
	}
}

func TestAWakeWhoseMessagesExpireBeforeTheyAreWrittenIsCanceled(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}, turn: succeed}
	h := newHouse(t)
	w.refuse = func(core.WakeRequest) error {
		h.offset.Add(int64(2 * time.Minute))
		return &core.SendError{Code: core.CodeExpired, Detail: "the deadline passed"}
	}
	h.hostAgents(w)
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`, fmt.Sprintf(`"expires_at":%d`, h.now().Unix()+60))))
	h.allOver("bot", 1)
	wake := h.agent("bot").Wakes[0]
	if wake.State != core.WakeCanceled || wake.HandedOver != 0 || wake.Charged.Wakes != 0 || h.agent("bot").Used.Wakes != 0 {
		t.Errorf("the wake is %+v", wake)
	}
	if given := w.given(); len(given) != 1 || given[0].Messages[0].Deadline.IsZero() {
		t.Errorf("it was given %+v", given)
	}
}

func TestTheAccountsOfOldParticipationsAreForgotten(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	h := newWardHouse(t, w)
	for i := range 3 {
		h.take(h.a.Ingress(h.sayAs(fmt.Sprintf("q%d", i), "x", `"to":"bot"`)))
		h.allOver("bot", i+1)
		if i == 1 { // Two wakes are of the first participation, one of the second.
			if err := h.View("a").RenewAgent(t.Context(), "bot"); err != nil {
				t.Fatal(err)
			}
		}
	}
	prune := func(age time.Duration) store.PruneResult {
		t.Helper()
		r, err := h.store.Prune(t.Context(), store.PruneOptions{Now: h.now().Add(age), Retention: time.Hour, DedupRetention: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := prune(2 * time.Hour); r.Wakes != 0 || h.rows("task_runs") != 3 {
		t.Errorf("while their messages are known, %d wakes are forgotten", r.Wakes)
	}
	if r := prune(48 * time.Hour); r.Wakes != 2 || h.rows("task_runs") != 1 || h.rows("wake_ledger") != 1 || h.rows("wake_handed") != 0 {
		t.Errorf("%+v is pruned; %d runs, %d accounts and %d messages that were handed over are left",
			r, h.rows("task_runs"), h.rows("wake_ledger"), h.rows("wake_handed"))
	}
	if used := h.agent("bot").Used; used.Wakes != 1 {
		t.Errorf("what counts is now %+v", used)
	}
}

func TestTheWakesOfAnAgentThatIsTakenOutAreEnded(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{
		liveAgent("bot", quick()), liveAgent("talker", quick()), liveAgent("slow", core.BoundsRequest{CoalesceWindow: span(5 * time.Second)}),
	}}
	h := newWardHouse(t, w)
	w.turn = func(ctx context.Context, r core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error) {
		if r.Agent == "talker" {
			say(from("talker", h.sayAs("answer", "x")))
		}
		return hang(ctx, r, say)
	}
	h.take(h.a.Ingress(h.sayAs("q", "x", `"to":"bot"`)))
	h.take(h.a.Ingress(h.sayAs("waits", "x", `"to":"bot"`)))
	h.take(h.a.Ingress(h.sayAs("t", "x", `"to":"talker"`)))
	h.eventually("both are given their wakes, and one has answered", func() bool {
		_, err := h.View("a").Inspect(t.Context(), "ws", "answer")
		return err == nil && h.deliveryState("q", "peer:bot") == core.DeliveryAcked
	})
	h.freeze() // The window of the next is open to the end.
	h.take(h.a.Ingress(h.sayAs("queued", "x", `"to":"slow"`)))
	h.stop()
	h.hostAgents(&ward{turn: succeed})
	for id, want := range map[string]core.WakeState{"q": core.WakeFailed, "t": core.WakeFailed, "queued": core.WakeCanceled} {
		if got := h.inspect(id).Wakes; len(got) != 1 || got[0].State != want {
			t.Errorf("the wake of %s is %+v, want %s", id, got, want)
		}
	}
	if got := h.inspect("waits").Wakes; len(got) != 0 {
		t.Errorf("what was to be weighed once more woke %+v", got)
	}
	h.stop()
	back := &ward{agents: w.agents, turn: succeed}
	h.hostAgents(back)
	if used := h.agent("slow").Used.Wakes; used != 0 || h.agent("bot").Used.Wakes != 1 || len(back.given()) != 0 {
		t.Errorf("the agents are back with %d and %d wakes used, and woken with %+v", used, h.agent("bot").Used.Wakes, back.given())
	}
}

func TestAChainThroughWhatWokeNobodyCountsAnew(t *testing.T) {
	three := 3
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{MaxWakeDepth: &three, CoalesceWindow: span(100 * time.Millisecond)})}, turn: succeed}
	h := newWardHouse(t, w)
	for i, c := range []struct {
		id, cause string
		depth     int
	}{{"first", "", 0}, {"second", "first", 1}, {"third", "second", 2}, {"fourth", "third", 3}, {"fifth", "fourth", 1}} {
		more := []string{`"to":"bot"`}
		if c.cause != "" {
			more = append(more, fmt.Sprintf(`"causation_id":%q`, c.cause))
		}
		h.take(h.a.Ingress(h.sayAs(c.id, "x", more...)))
		found := h.inspect(c.id)
		if c.depth == three {
			if got := h.skips(c.id)["peer:bot"]; !reflect.DeepEqual(got, []core.Skip{core.SkipDepthExceeded}) {
				t.Errorf("%s is skipped as %v", c.id, got)
			}
			continue
		}
		if len(found.Wakes) != 1 || found.Wakes[0].Depth != c.depth {
			t.Errorf("%s, number %d, woke %+v, want depth %d", c.id, i, found.Wakes, c.depth)
		}
		h.eventually("its wake is over", func() bool { return h.inspect(c.id).Wakes[0].State == core.WakeSucceeded })
	}
}
