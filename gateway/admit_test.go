package gateway

import (
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

func testBounds(t *testing.T) core.Bounds {
	t.Helper()
	b, problems := core.ResolveBounds("test", core.BoundsRequest{}, core.BoundsRequest{}, core.BoundsRequest{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return b
}

// TestTheFirstReasonOfTheOrderIsTheOne begins with a message that every reason
// speaks against, and takes the reasons away one by one.
func TestTheFirstReasonOfTheOrderIsTheOne(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	b := testBounds(t)
	q := question{
		bounds: b, admitted: true, origin: lineage{root: "r", depth: b.MaxWakeDepth}, now: now,
		used: store.Budget{Wakes: b.MaxWakes},
		open: &store.Run{State: core.WakeQueued, Root: "r", WindowEnds: now.Add(time.Second)},
	}
	for _, step := range []struct {
		want core.Skip
		mend func()
	}{
		{core.SkipNotLive, func() { q.live = true }},
		{core.SkipNotEligible, func() { q.eligible = true }},
		{core.SkipNotAddressed, func() { q.addressed = true }},
		{core.SkipDuplicate, func() { q.admitted = false }},
		{core.SkipNetworkDisabled, func() { q.enabled = true }},
		{core.SkipDepthExceeded, func() { q.origin.depth-- }},
		{core.SkipCoalesced, func() { q.open.Root = "another" }},
		{core.SkipBudgetExhausted, func() { q.used.Wakes-- }},
		{core.SkipInFlight, func() { q.open = nil }},
		{"", func() {}},
	} {
		if got := q.weigh(); got != step.want {
			t.Fatalf("weighed as %q, want %q", got, step.want)
		}
		step.mend()
	}
}

func TestOnlyAQueuedWakeOfTheSameRootInsideItsWindowTakesMessagesIn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		open *store.Run
		want core.Skip
	}{
		"inside its window":      {&store.Run{State: core.WakeQueued, Root: "r", WindowEnds: now.Add(time.Millisecond)}, core.SkipCoalesced},
		"at the window's end":    {&store.Run{State: core.WakeQueued, Root: "r", WindowEnds: now}, core.SkipInFlight},
		"running":                {&store.Run{State: core.WakeRunning, Root: "r", WindowEnds: now.Add(time.Second)}, core.SkipInFlight},
		"of another root":        {&store.Run{State: core.WakeQueued, Root: "s", WindowEnds: now.Add(time.Second)}, core.SkipInFlight},
		"put back after a start": {&store.Run{State: core.WakeQueued, Root: "r", WindowEnds: now.Add(-time.Second), NotBefore: now.Add(time.Hour)}, core.SkipInFlight},
	} {
		t.Run(name, func(t *testing.T) {
			q := question{
				live: true, eligible: true, addressed: true, enabled: true, bounds: testBounds(t), now: now,
				origin: lineage{root: "r"}, open: c.open, used: store.Budget{Wakes: 1},
			}
			if got := q.weigh(); got != c.want {
				t.Errorf("weighed as %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnyBoundThatIsUsedUpEndsTheBudget(t *testing.T) {
	b := testBounds(t)
	for name, used := range map[string]store.Budget{
		"wakes":         {Wakes: b.MaxWakes},
		"wall time":     {Wall: b.MaxTotalWallTime},
		"input tokens":  {Input: int64(b.MaxInputTokens)},
		"output tokens": {Output: int64(b.MaxOutputTokens)},
	} {
		t.Run(name, func(t *testing.T) {
			q := question{live: true, eligible: true, addressed: true, enabled: true, bounds: b, used: used}
			if got := q.weigh(); got != core.SkipBudgetExhausted {
				t.Errorf("weighed as %q", got)
			}
		})
	}
}

func TestReservationsShareTheTokensAmongTheWakesThatRemain(t *testing.T) {
	b := testBounds(t)
	for name, c := range map[string]struct{ used, want store.Budget }{
		"the first":                   {store.Budget{}, store.Budget{Wakes: 1, Wall: 5 * time.Minute, Input: 25_000, Output: 6_250}},
		"after a cheap one":           {store.Budget{Wakes: 4, Input: 100}, store.Budget{Wakes: 1, Wall: 5 * time.Minute, Input: 49_975, Output: 12_500}},
		"less time than a wake's":     {store.Budget{Wakes: 6, Wall: 28 * time.Minute}, store.Budget{Wakes: 1, Wall: 2 * time.Minute, Input: 100_000, Output: 25_000}},
		"fewer tokens than wakes":     {store.Budget{Wakes: 1, Input: 199_998}, store.Budget{Wakes: 1, Wall: 5 * time.Minute, Input: 1, Output: 7_142}},
		"the last takes what is left": {store.Budget{Wakes: 7, Input: 150_000, Output: 49_999}, store.Budget{Wakes: 1, Wall: 5 * time.Minute, Input: 50_000, Output: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reserve(b, c.used); got != c.want {
				t.Errorf("reserved %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestChargesNeverExceedTheBounds(t *testing.T) {
	b := testBounds(t)
	reserved := store.Budget{Wakes: 1, Wall: 5 * time.Minute, Input: 25_000, Output: 6_250}
	minute, hour := time.Minute, time.Hour
	for name, c := range map[string]struct {
		used  store.Budget
		wall  *time.Duration
		usage *core.Usage
		want  store.Budget
	}{
		"reported":                       {store.Budget{}, &minute, &core.Usage{InputTokens: 7, OutputTokens: 8}, store.Budget{Wakes: 1, Wall: minute, Input: 7, Output: 8}},
		"not reported":                   {store.Budget{}, &minute, nil, store.Budget{Wakes: 1, Wall: minute, Input: 25_000, Output: 6_250}},
		"nobody knows anything":          {store.Budget{}, nil, nil, reserved},
		"longer than it may":             {store.Budget{}, &hour, nil, reserved},
		"more than reserved":             {store.Budget{}, &minute, &core.Usage{InputTokens: 30_000}, store.Budget{Wakes: 1, Wall: minute, Input: 30_000}},
		"more than the bounds have left": {store.Budget{Input: 150_000}, &minute, &core.Usage{InputTokens: 1 << 40, OutputTokens: 1 << 40}, store.Budget{Wakes: 1, Wall: minute, Input: 50_000, Output: 50_000}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := charge(b, c.used, reserved, c.wall, c.usage); got != c.want {
				t.Errorf("charged %+v, want %+v", got, c.want)
			}
		})
	}
}

// What an open wake has reserved may come back, so it uses nothing up yet; that
// it is a wake does.
func TestAnOpenWakesReservationUsesNothingUp(t *testing.T) {
	b := core.Bounds{MaxWakes: 2, MaxWakeDepth: 3, MaxTotalWallTime: time.Minute, MaxInputTokens: 10, MaxOutputTokens: 10}
	whole := store.Budget{Wakes: 1, Wall: time.Minute, Input: 10, Output: 10}
	for name, c := range map[string]struct {
		used store.Budget
		want core.Skip
	}{
		"all of it is reserved":      {whole, core.SkipInFlight},
		"a wake was before":          {add(whole, store.Budget{Wakes: 1}), core.SkipBudgetExhausted},
		"a bound was used up before": {add(whole, store.Budget{Input: 10}), core.SkipBudgetExhausted},
	} {
		q := question{
			live: true, bounds: b, eligible: true, addressed: true, enabled: true, used: c.used,
			open: &store.Run{State: core.WakeRunning, Reserved: whole},
		}
		if got := q.weigh(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
