package core

import (
	"encoding/json"
	"fmt"
	"time"
)

// Bounds bound the wakes of one participation (section 8 of docs/protocol.md).
// All are positive: there is no "unlimited".
type Bounds struct {
	// MaxWakes is how many wakes may be admitted.
	MaxWakes int
	// MaxWakeWallTime is how long one wake may run.
	MaxWakeWallTime time.Duration
	// MaxTotalWallTime is how long all wakes together may run.
	MaxTotalWallTime time.Duration
	// MaxInputTokens and MaxOutputTokens bound what all wakes together may use of
	// a model.
	MaxInputTokens, MaxOutputTokens int
	// MaxWakeDepth is how many wakes may follow one from the other.
	MaxWakeDepth int
	// CoalesceWindow is how long a new wake waits for further messages of the same
	// root.
	CoalesceWindow time.Duration
}

// BoundsRequest are bounds as somebody asks for them: nil leaves one open.
type BoundsRequest struct {
	MaxWakes         *int           `koanf:"max_wakes"`
	MaxWakeWallTime  *time.Duration `koanf:"max_wake_wall_time"`
	MaxTotalWallTime *time.Duration `koanf:"max_total_wall_time"`
	MaxInputTokens   *int           `koanf:"max_input_tokens"`
	MaxOutputTokens  *int           `koanf:"max_output_tokens"`
	MaxWakeDepth     *int           `koanf:"max_wake_depth"`
	CoalesceWindow   *time.Duration `koanf:"coalesce_window"`
}

// wallTimeKey and totalKey name the two bounds that depend on each other.
const (
	wallTimeKey = "max_wake_wall_time"
	totalKey    = "max_total_wall_time"
)

// shortestWake is the least that a wake may be bounded to: with less no agent
// gets so far as to read its messages.
const shortestWake = time.Second

// bound is one row of the table of section 8. Durations are in nanoseconds.
type bound struct {
	key                      string
	fallback, floor, ceiling int64
	duration                 bool
	asked                    func(*BoundsRequest) *int64
	get                      func(*Bounds) int64
	set                      func(*Bounds, int64)
}

func countBound(key string, fallback, ceiling int64, asked func(*BoundsRequest) *int, at func(*Bounds) *int) bound {
	return bound{
		key: key, fallback: fallback, floor: 1, ceiling: ceiling,
		asked: func(r *BoundsRequest) *int64 {
			v := asked(r)
			if v == nil {
				return nil
			}
			n := int64(*v)
			return &n
		},
		get: func(b *Bounds) int64 { return int64(*at(b)) },
		set: func(b *Bounds, v int64) { *at(b) = int(v) },
	}
}

func timeBound(key string, fallback, floor, ceiling time.Duration, asked func(*BoundsRequest) *time.Duration, at func(*Bounds) *time.Duration) bound {
	return bound{
		key: key, fallback: int64(fallback), floor: int64(floor), ceiling: int64(ceiling), duration: true,
		asked: func(r *BoundsRequest) *int64 { return (*int64)(asked(r)) },
		get:   func(b *Bounds) int64 { return int64(*at(b)) },
		set:   func(b *Bounds, v int64) { *at(b) = time.Duration(v) },
	}
}

// boundTable is the table of section 8: defaults, floors and ceilings.
func boundTable() []bound {
	return []bound{
		countBound("max_wakes", 8, 64,
			func(r *BoundsRequest) *int { return r.MaxWakes }, func(b *Bounds) *int { return &b.MaxWakes }),
		timeBound(wallTimeKey, 5*time.Minute, shortestWake, 15*time.Minute,
			func(r *BoundsRequest) *time.Duration { return r.MaxWakeWallTime },
			func(b *Bounds) *time.Duration { return &b.MaxWakeWallTime }),
		timeBound(totalKey, 30*time.Minute, shortestWake, 2*time.Hour,
			func(r *BoundsRequest) *time.Duration { return r.MaxTotalWallTime },
			func(b *Bounds) *time.Duration { return &b.MaxTotalWallTime }),
		countBound("max_input_tokens", 200_000, 1_000_000,
			func(r *BoundsRequest) *int { return r.MaxInputTokens }, func(b *Bounds) *int { return &b.MaxInputTokens }),
		countBound("max_output_tokens", 50_000, 200_000,
			func(r *BoundsRequest) *int { return r.MaxOutputTokens }, func(b *Bounds) *int { return &b.MaxOutputTokens }),
		countBound("max_wake_depth", 3, 5,
			func(r *BoundsRequest) *int { return r.MaxWakeDepth }, func(b *Bounds) *int { return &b.MaxWakeDepth }),
		timeBound("coalesce_window", 500*time.Millisecond, 100*time.Millisecond, 5*time.Second,
			func(r *BoundsRequest) *time.Duration { return r.CoalesceWindow },
			func(b *Bounds) *time.Duration { return &b.CoalesceWindow }),
	}
}

// check says what is wrong with a value that was asked for under the key, empty
// when nothing is. The limit is the configured one, or 0.
func (b *bound) check(value, limit int64) string {
	switch {
	case value <= 0:
		return "must be positive; there is no \"unlimited\""
	case value < b.floor:
		return fmt.Sprintf("%s is below the floor of %s", b.show(value), b.show(b.floor))
	case value > b.ceiling:
		return fmt.Sprintf("%s is above the ceiling of %s", b.show(value), b.show(b.ceiling))
	case limit > 0 && value > limit:
		return fmt.Sprintf("%s is above the limit of %s that participation.limits.%s sets", b.show(value), b.show(limit), b.key)
	}
	return ""
}

func (b *bound) show(v int64) string {
	if b.duration {
		return time.Duration(v).String()
	}
	return fmt.Sprint(v)
}

// Check reports everything that is wrong with the request by itself, each
// problem beginning with the key.
func (r BoundsRequest) Check(key string) []error {
	var problems []error
	for _, b := range boundTable() {
		if v := b.asked(&r); v != nil {
			if why := b.check(*v, 0); why != "" {
				problems = append(problems, fmt.Errorf("%s.%s: %s", key, b.key, why))
			}
		}
	}
	if w, t := r.MaxWakeWallTime, r.MaxTotalWallTime; w != nil && t != nil && *w > *t {
		problems = append(problems, fmt.Errorf("%s.%s: %s is more than %s, %s", key, wallTimeKey, *w, totalKey, *t))
	}
	return problems
}

// ResolveBounds gives the bounds of a participation: what is asked for, else the
// configured default, else the built-in one, all of them within the configured
// limits and the ceilings. What nobody asked for gives way: a built-in default
// is lowered to the limit, and a defaulted wall time of one wake to the total.
// It reports every problem of the request, each beginning with the key; the
// defaults and limits themselves are taken to have passed Check.
func ResolveBounds(key string, asked, defaults, limits BoundsRequest) (Bounds, []error) {
	var resolved Bounds
	problems := asked.Check(key)
	reported := len(problems) > 0
	for _, b := range boundTable() {
		limit := b.ceiling
		if v := b.asked(&limits); v != nil {
			limit = *v
		}
		value := min(b.fallback, limit)
		if v := b.asked(&defaults); v != nil {
			value = min(*v, limit)
		}
		if v := b.asked(&asked); v != nil {
			value = *v
			if why := b.check(value, limit); why != "" && b.check(value, 0) == "" {
				problems = append(problems, fmt.Errorf("%s.%s: %s", key, b.key, why))
			}
		}
		b.set(&resolved, value)
	}
	if resolved.MaxWakeWallTime > resolved.MaxTotalWallTime {
		if asked.MaxWakeWallTime != nil && !reported {
			problems = append(problems, fmt.Errorf("%s.%s: %s is more than %s, %s",
				key, wallTimeKey, resolved.MaxWakeWallTime, totalKey, resolved.MaxTotalWallTime))
		}
		resolved.MaxWakeWallTime = resolved.MaxTotalWallTime
	}
	return resolved, problems
}

// boundsJSON is how bounds are written: durations with their units.
type boundsJSON struct {
	MaxWakes         int    `json:"max_wakes"`
	MaxWakeWallTime  string `json:"max_wake_wall_time"`
	MaxTotalWallTime string `json:"max_total_wall_time"`
	MaxInputTokens   int    `json:"max_input_tokens"`
	MaxOutputTokens  int    `json:"max_output_tokens"`
	MaxWakeDepth     int    `json:"max_wake_depth"`
	CoalesceWindow   string `json:"coalesce_window"`
}

// MarshalJSON writes durations with their units.
func (b Bounds) MarshalJSON() ([]byte, error) {
	return json.Marshal(boundsJSON{
		b.MaxWakes, b.MaxWakeWallTime.String(), b.MaxTotalWallTime.String(),
		b.MaxInputTokens, b.MaxOutputTokens, b.MaxWakeDepth, b.CoalesceWindow.String(),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Bounds) UnmarshalJSON(data []byte) error {
	var j boundsJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read bounds: %w", err)
	}
	*b = Bounds{
		MaxWakes: j.MaxWakes, MaxInputTokens: j.MaxInputTokens, MaxOutputTokens: j.MaxOutputTokens, MaxWakeDepth: j.MaxWakeDepth,
	}
	for _, d := range []struct {
		text string
		into *time.Duration
	}{{j.MaxWakeWallTime, &b.MaxWakeWallTime}, {j.MaxTotalWallTime, &b.MaxTotalWallTime}, {j.CoalesceWindow, &b.CoalesceWindow}} {
		var err error
		if *d.into, err = time.ParseDuration(d.text); err != nil {
			return fmt.Errorf("read bounds: %w", err)
		}
	}
	return nil
}
