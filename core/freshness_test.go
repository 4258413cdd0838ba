package core_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

func TestFreshnessBoundaries(t *testing.T) {
	const t0 = 1_800_000_000
	expired := refusal{core.ReasonExpired, core.StepFreshness}
	tooLong := refusal{core.ReasonMalformed, core.StepFreshness}
	const lifetime = 720 * 3600
	for name, c := range map[string]struct {
		ts, expires int64 // an expires of 0 is none
		at          time.Duration
		want        refusal
	}{
		"now":                                  {t0, 0, 0, ok},
		"as old as may be":                     {t0 - 300, 0, 0, ok},
		"as old as may be, in the last second": {t0 - 300, 0, 999 * time.Millisecond, ok},
		"a second too old":                     {t0 - 301, 0, 0, expired},
		"too old but not yet expired":          {t0 - 301, t0 + 1, 0, ok},
		"very old but not yet expired":         {1, t0 + 1, 0, ok},
		"as far ahead as may be":               {t0 + 300, 0, 0, ok},
		"too far ahead":                        {t0 + 301, 0, 0, expired},
		"too far ahead with expires_at":        {t0 + 301, t0 + 400, 0, expired},
		"ahead within the second":              {t0 + 300, 0, -time.Millisecond, expired},
		"expires now":                          {t0, t0, 0, expired},
		"expires in a second":                  {t0, t0 + 1, 0, ok},
		"expires within this second":           {t0, t0 + 1, 999 * time.Millisecond, ok},
		"expired a second ago":                 {t0, t0 - 1, 0, expired},
		"lives as long as may be":              {t0, t0 + lifetime, 0, ok},
		"lives too long":                       {t0, t0 + lifetime + 1, 0, tooLong},
		"lives too long and from the future":   {t0 + 301, t0 + lifetime + 1, 0, expired},
	} {
		t.Run(name, func(t *testing.T) {
			d := valid(core.KindSay).set("ts", strconv.FormatInt(c.ts, 10))
			if c.expires != 0 {
				d.set("expires_at", strconv.FormatInt(c.expires, 10))
			}
			e, rej := core.Parse(d.raw())
			if rej != nil {
				t.Fatal(rej)
			}
			c.want.verify(t, e.CheckFresh(time.Unix(t0, 0).Add(c.at), policy()))
		})
	}
}

func TestPolicyCountsWholeSeconds(t *testing.T) {
	e := &core.Envelope{TS: 1000}
	p := core.FreshnessPolicy{MaxReplayAge: 1999 * time.Millisecond, MaxLifetime: time.Hour}
	if rej := e.CheckFresh(time.Unix(1001, 999e6), p); rej != nil {
		t.Error(rej)
	}
	if rej := e.CheckFresh(time.Unix(1002, 0), p); rej == nil {
		t.Error("a fraction of the replay window counted")
	}
}

// As long as an envelope could be accepted its key is known, and FreshUntil is
// exactly where its age ends.
func TestNothingIsFreshAfterItsKeyIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &core.Envelope{TS: rapid.Int64Range(1, 5000).Draw(t, "ts")}
		if e.HasExpiry = rapid.Bool().Draw(t, "has expiry"); e.HasExpiry {
			e.ExpiresAt = rapid.Int64Range(-10, 9000).Draw(t, "expires")
		}
		p := core.FreshnessPolicy{
			MaxReplayAge: time.Duration(rapid.Int64Range(0, 2e12).Draw(t, "replay")),
			MaxLifetime:  time.Duration(rapid.Int64Range(0, 5e12).Draw(t, "lifetime")),
		}
		at := time.Unix(0, rapid.Int64Range(0, 12e12).Draw(t, "now"))
		fresh := e.CheckFresh(at, p) == nil
		if fresh && !at.Before(e.KnownUntil(p)) {
			t.Fatalf("fresh at %v although its key is known until %v only", at, e.KnownUntil(p))
		}
		if fresh && !at.Before(e.FreshUntil(p)) {
			t.Fatalf("fresh at %v, after %v", at, e.FreshUntil(p))
		}
		last := e.FreshUntil(p).Add(-time.Nanosecond)
		if rej := e.CheckFresh(last, p); rej != nil && rej.Reason == core.ReasonExpired && last.Unix() >= e.TS {
			t.Fatalf("%v although FreshUntil is %v", rej, e.FreshUntil(p))
		}
		if e.KnownUntil(p).Before(e.FreshUntil(p)) {
			t.Fatal("forgotten while fresh")
		}
	})
}
