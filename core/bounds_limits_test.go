package core_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func pointer[T any](v T) *T { return &v }

func TestBoundsThatAreLeftOpenComeFromTheDefaults(t *testing.T) {
	builtIn := core.Bounds{
		MaxWakes: 8, MaxWakeWallTime: 5 * time.Minute, MaxTotalWallTime: 30 * time.Minute,
		MaxInputTokens: 200_000, MaxOutputTokens: 50_000, MaxWakeDepth: 3, CoalesceWindow: 500 * time.Millisecond,
	}
	changed := func(change func(*core.Bounds)) core.Bounds {
		b := builtIn
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		asked, defaults, limits core.BoundsRequest
		want                    core.Bounds
	}{
		"nothing is asked for": {want: builtIn},
		"a configured default": {
			defaults: core.BoundsRequest{MaxWakes: pointer(3)},
			want:     changed(func(b *core.Bounds) { b.MaxWakes = 3 }),
		},
		"what is asked for goes before a default": {
			asked: core.BoundsRequest{MaxWakes: pointer(64)}, defaults: core.BoundsRequest{MaxWakes: pointer(3)},
			want: changed(func(b *core.Bounds) { b.MaxWakes = 64 }),
		},
		"a limit lowers what nobody asked for": {
			limits: core.BoundsRequest{MaxInputTokens: pointer(10)},
			want:   changed(func(b *core.Bounds) { b.MaxInputTokens = 10 }),
		},
		"the wall time of one gives way to that of all": {
			asked: core.BoundsRequest{MaxTotalWallTime: pointer(time.Minute)},
			want:  changed(func(b *core.Bounds) { b.MaxTotalWallTime, b.MaxWakeWallTime = time.Minute, time.Minute }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := core.ResolveBounds("agent", c.asked, c.defaults, c.limits)
			if len(problems) != 0 || !reflect.DeepEqual(got, c.want) {
				t.Errorf("resolved as %+v, %v; want %+v", got, problems, c.want)
			}
		})
	}
}

// No bound may be asked for that is not a bound.
func TestZeroIsNeverUnlimitedAndCeilingsHold(t *testing.T) {
	type request = core.BoundsRequest
	for key, ask := range map[string]struct {
		with           func(int64) request
		floor, ceiling int64
	}{
		"max_wakes":           {func(n int64) request { return request{MaxWakes: pointer(int(n))} }, 1, 64},
		"max_wake_wall_time":  {func(n int64) request { return request{MaxWakeWallTime: pointer(time.Duration(n))} }, int64(time.Second), int64(15 * time.Minute)},
		"max_total_wall_time": {func(n int64) request { return request{MaxTotalWallTime: pointer(time.Duration(n))} }, int64(time.Second), int64(2 * time.Hour)},
		"max_input_tokens":    {func(n int64) request { return request{MaxInputTokens: pointer(int(n))} }, 1, 1_000_000},
		"max_output_tokens":   {func(n int64) request { return request{MaxOutputTokens: pointer(int(n))} }, 1, 200_000},
		"max_wake_depth":      {func(n int64) request { return request{MaxWakeDepth: pointer(int(n))} }, 1, 5},
		"coalesce_window":     {func(n int64) request { return request{CoalesceWindow: pointer(time.Duration(n))} }, int64(100 * time.Millisecond), int64(5 * time.Second)},
	} {
		t.Run(key, func(t *testing.T) {
			for value, good := range map[int64]bool{
				0: false, -1: false, ask.floor - 1: false, ask.floor: true, ask.ceiling: true, ask.ceiling + 1: false,
			} {
				asked := ask.with(value)
				_, problems := core.ResolveBounds("agent", asked, core.BoundsRequest{}, core.BoundsRequest{MaxTotalWallTime: pointer(2 * time.Hour)})
				if text := fmt.Sprint(problems); (len(problems) == 0) != good || (!good && !strings.Contains(text, "agent."+key)) {
					t.Errorf("%d: %v", value, problems)
				}
			}
			if _, problems := core.ResolveBounds("agent", ask.with(ask.ceiling), core.BoundsRequest{}, ask.with(ask.ceiling-1)); len(problems) != 1 {
				t.Errorf("above a configured limit: %v", problems)
			}
		})
	}
}
