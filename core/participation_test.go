package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func ptr[T any](v T) *T { return &v }

func TestBoundsResolve(t *testing.T) {
	builtIn := core.Bounds{
		MaxWakes: 8, MaxWakeWallTime: 5 * time.Minute, MaxTotalWallTime: 30 * time.Minute,
		MaxInputTokens: 200_000, MaxOutputTokens: 50_000, MaxWakeDepth: 3, CoalesceWindow: 500 * time.Millisecond,
	}
	with := func(change func(*core.Bounds)) core.Bounds { b := builtIn; change(&b); return b }
	for name, c := range map[string]struct {
		asked, defaults, limits core.BoundsRequest
		want                    core.Bounds
		problem                 string
	}{
		"nothing asked":        {want: builtIn},
		"asked":                {asked: core.BoundsRequest{MaxWakes: ptr(64)}, want: with(func(b *core.Bounds) { b.MaxWakes = 64 })},
		"a configured default": {defaults: core.BoundsRequest{MaxWakes: ptr(2)}, want: with(func(b *core.Bounds) { b.MaxWakes = 2 })},
		"asked over a default": {
			asked: core.BoundsRequest{MaxWakes: ptr(9)}, defaults: core.BoundsRequest{MaxWakes: ptr(2)},
			want: with(func(b *core.Bounds) { b.MaxWakes = 9 }),
		},
		"a limit lowers what nobody asked for": {limits: core.BoundsRequest{MaxWakes: ptr(4)}, want: with(func(b *core.Bounds) { b.MaxWakes = 4 })},
		"asked above a limit": {
			asked: core.BoundsRequest{MaxWakes: ptr(5)}, limits: core.BoundsRequest{MaxWakes: ptr(4)},
			want: with(func(b *core.Bounds) { b.MaxWakes = 5 }), problem: "k.max_wakes: 5 is above the limit of 4",
		},
		"asked above a ceiling": {
			asked: core.BoundsRequest{MaxWakeWallTime: ptr(16 * time.Minute)}, want: with(func(b *core.Bounds) { b.MaxWakeWallTime = 16 * time.Minute }),
			problem: "k.max_wake_wall_time: 16m0s is above the ceiling of 15m0s",
		},
		"zero":     {asked: core.BoundsRequest{MaxWakeDepth: ptr(0)}, want: with(func(b *core.Bounds) { b.MaxWakeDepth = 0 }), problem: "unlimited"},
		"negative": {asked: core.BoundsRequest{CoalesceWindow: ptr(-time.Second)}, want: with(func(b *core.Bounds) { b.CoalesceWindow = -time.Second }), problem: "unlimited"},
		"below the floor": {
			asked: core.BoundsRequest{CoalesceWindow: ptr(99 * time.Millisecond)}, want: with(func(b *core.Bounds) { b.CoalesceWindow = 99 * time.Millisecond }),
			problem: "99ms is below the floor of 100ms",
		},
		"a total below a wake's default": {
			asked: core.BoundsRequest{MaxTotalWallTime: ptr(time.Minute)},
			want:  with(func(b *core.Bounds) { b.MaxTotalWallTime, b.MaxWakeWallTime = time.Minute, time.Minute }),
		},
		"a wake above the total": {
			asked:   core.BoundsRequest{MaxWakeWallTime: ptr(2 * time.Minute), MaxTotalWallTime: ptr(time.Minute)},
			want:    with(func(b *core.Bounds) { b.MaxTotalWallTime, b.MaxWakeWallTime = time.Minute, time.Minute }),
			problem: "k.max_wake_wall_time: 2m0s is more than max_total_wall_time, 1m0s",
		},
		"a wake above a total that is a limit": {
			asked: core.BoundsRequest{MaxWakeWallTime: ptr(2 * time.Minute)}, limits: core.BoundsRequest{MaxTotalWallTime: ptr(time.Minute)},
			want:    with(func(b *core.Bounds) { b.MaxTotalWallTime, b.MaxWakeWallTime = time.Minute, time.Minute }),
			problem: "is more than max_total_wall_time, 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := core.ResolveBounds("k", c.asked, c.defaults, c.limits)
			if got != c.want {
				t.Errorf("resolved %+v, want %+v", got, c.want)
			}
			if text := fmt.Sprint(problems); (c.problem == "") != (len(problems) == 0) || !strings.Contains(text, c.problem) || len(problems) > 1 {
				t.Errorf("the problems are %s, want %q", text, c.problem)
			}
		})
	}
}

func TestAParticipationIsWrittenAsItIsNamed(t *testing.T) {
	bounds, _ := core.ResolveBounds("", core.BoundsRequest{}, core.BoundsRequest{}, core.BoundsRequest{})
	for name, c := range map[string]struct {
		p    core.Participation
		want string
	}{
		"local": {core.LocalParticipation(), `{"version":"network-participation/v1","mode":"local","source":"built_in_local"}`},
		"live": {core.LiveParticipation("ws", "ops", bounds), `{"version":"network-participation/v1","mode":"live","workspace_id":"ws",` +
			`"channel_strategy":"named","channel_id":"ops","source":"explicit_request","bounds":{"max_wakes":8,"max_wake_wall_time":"5m0s",` +
			`"max_total_wall_time":"30m0s","max_input_tokens":200000,"max_output_tokens":50000,"max_wake_depth":3,"coalesce_window":"500ms"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(c.p)
			if err != nil || string(text) != c.want {
				t.Fatalf("written as\n%s, %v, want\n%s", text, err, c.want)
			}
			var back core.Participation
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if (back.Bounds == nil) != (c.p.Bounds == nil) || (back.Bounds != nil && *back.Bounds != *c.p.Bounds) || back.Mode != c.p.Mode {
				t.Errorf("read back as %+v", back)
			}
		})
	}
}

func TestWakeIDs(t *testing.T) {
	if n, err := core.ParseWakeID(core.WakeID(17)); n != 17 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "wake_", "wake_0", "wake_-1", "wake_01", "wake_1 ", "17", "wake_99999999999999999999"} {
		if n, err := core.ParseWakeID(bad); err == nil {
			t.Errorf("%q was read as %d", bad, n)
		}
	}
}
