package stdio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestWhatAnAgentSaysOfItsWake(t *testing.T) {
	used := &core.Usage{InputTokens: 1, OutputTokens: 2}
	for more, want := range map[string]control{
		``:                            {},
		`,"failed":null`:              {},
		`,"failed":false`:             {},
		`,"failed":"why"`:             {failed: true, why: "why"},
		`,"failed":""`:                {failed: true},
		`,"failed":" \n"`:             {failed: true},
		`,"failed":true`:              {failed: true, unread: []string{"failed"}},
		`,"failed":0`:                 {failed: true, unread: []string{"failed"}},
		`,"failed":{}`:                {failed: true, unread: []string{"failed"}},
		`,"usage":null`:               {},
		`,"usage":7`:                  {unread: []string{"usage"}},
		`,"usage":{}`:                 {unread: []string{"usage"}},
		`,"usage":"much"`:             {unread: []string{"usage"}},
		`,"failed":[],"usage":[]`:     {failed: true, unread: []string{"failed", "usage"}},
		`,"usage":{"input_tokens":1}`: {unread: []string{"usage"}},
		`,"usage":{"input_tokens":1,"output_tokens":null}`:    {unread: []string{"usage"}},
		`,"usage":{"input_tokens":-1,"output_tokens":2}`:      {unread: []string{"usage"}},
		`,"usage":{"input_tokens":1,"output_tokens":2.5}`:     {unread: []string{"usage"}},
		`,"usage":{"input_tokens":"1","output_tokens":2}`:     {unread: []string{"usage"}},
		`,"usage":{"input_tokens":1,"output_tokens":2}`:       {usage: used},
		`,"usage":{"input_tokens":1,"output_tokens":2,"x":3}`: {usage: used},
	} {
		got, ok := parseControl([]byte(`{"carrier":{"done":"w"` + more + `}}`))
		sameUsage := (got.usage == nil) == (want.usage == nil) && (got.usage == nil || *got.usage == *want.usage)
		if !ok || got.done != "w" || got.failed != want.failed || got.why != want.why || !slices.Equal(got.unread, want.unread) || !sameUsage {
			t.Errorf("%s: got %+v, want %+v", more, got, want)
		}
	}
}

func TestTheFirstWordOnAWakeCounts(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			const first, second = `{"carrier":{"done":"wake_7","failed":"first"}}`, `{"carrier":{"done":"wake_7","usage":{"input_tokens":1,"output_tokens":2}}}`
			cfg := shell("ada", fmt.Sprintf(`read -r line; read -r line; echo '%s'; echo '%s'; read -r line`, first, second))
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			o := over(t, b.wake(t.Context(), "ada", &wrote{}, messageOf("a")))
			if o.err != nil || o.outcome.State != core.WakeFailed || !strings.Contains(o.outcome.Detail, "the agent: first") || o.outcome.Usage != nil {
				t.Errorf("it ended as %+v", o)
			}
			until(t, "the second one has no use", func() bool { return b.agent("ada").UnusedControls == 1 })
		})
	}
}

func TestAWordThatCannotBeReadIsToldOnce(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := shell("ada", `read -r line; read -r line; echo '{"carrier":{"done":"wake_7","failed":0,"usage":{"input_tokens":1.5,"output_tokens":2}}}'; while read -r line; do :; done`)
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			o := over(t, b.wake(t.Context(), "ada", &wrote{}, messageOf("a")))
			if o.err != nil || o.outcome.State != core.WakeFailed || !strings.Contains(o.outcome.Detail, "no reason") || o.outcome.Usage != nil {
				t.Errorf("it ended as %+v", o)
			}
			var told string
			until(t, "it is told", func() bool { told = b.warnings(); return told != "" })
			for _, part := range []string{"agent=ada", "wake=wake_7", `members="failed, usage"`, "input_tokens"} {
				if !strings.Contains(told, part) || strings.Count(told, "\n") != 1 {
					t.Errorf("%q is missing, or more is told: %s", part, told)
				}
			}
		})
	}
}

// warnings are the lines of the log that are warnings.
func (b *bench) warnings() string {
	told := ""
	for line := range strings.Lines(b.logs.String()) {
		if strings.Contains(line, "level=WARN") {
			told += line
		}
	}
	return told
}
