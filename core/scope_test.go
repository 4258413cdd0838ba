package core_test

import (
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

func TestMatchPattern(t *testing.T) {
	for pattern, values := range map[string]map[string]bool{
		"":      {"": true, "a": false},
		"a":     {"a": true, "": false, "ab": false, "A": false},
		"*":     {"": true, "a": true, "a/b.c": true},
		"a*":    {"a": true, "abc": true, "ba": false, "": false},
		"*a":    {"a": true, "ba": true, "ab": false},
		"a*b":   {"ab": true, "axb": true, "a": false, "aba": false, "abab": true},
		"a*a":   {"a": false, "aa": true, "aba": true},
		"*a*":   {"a": true, "bab": true, "b": false},
		"a**b":  {"ab": true, "axb": true},
		"a*b*c": {"abc": true, "axbxc": true, "acb": false, "abcb": false},
		"a.b":   {"a.b": true, "axb": false},
		"a?":    {"a?": true, "ab": false},
	} {
		for value, want := range values {
			if got := core.MatchPattern(pattern, value); got != want {
				t.Errorf("%q on %q: %t", pattern, value, got)
			}
		}
	}
}

func TestAPatternMatchesWhatItWasMadeFrom(t *testing.T) {
	pieces := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,3}`), 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		parts := pieces.Draw(t, "parts")
		value := parts[0]
		for _, p := range parts[1:] {
			value += rapid.StringMatching(`[ab]{0,3}`).Draw(t, "between") + p
		}
		if pattern := strings.Join(parts, "*"); !core.MatchPattern(pattern, value) {
			t.Fatalf("%q does not match %q", pattern, value)
		}
	})
}

func TestScope(t *testing.T) {
	nothing := []string{}
	for name, c := range map[string]struct {
		scope core.Scope
		peer  string
		want  bool
	}{
		"everything":                   {core.Scope{}, "p", true},
		"everything, nobody":           {core.Scope{}, "", true},
		"the workspace":                {core.Scope{Workspaces: []string{"x", "w*"}}, "p", true},
		"another workspace":            {core.Scope{Workspaces: []string{"x"}}, "p", false},
		"no workspace":                 {core.Scope{Workspaces: nothing}, "p", false},
		"the channel":                  {core.Scope{Channels: []string{"c"}}, "p", true},
		"another channel":              {core.Scope{Channels: []string{"d"}}, "p", false},
		"no channel":                   {core.Scope{Channels: nothing}, "p", false},
		"the peer":                     {core.Scope{Peers: []string{"p"}}, "p", true},
		"another peer":                 {core.Scope{Peers: []string{"q"}}, "p", false},
		"no peer":                      {core.Scope{Peers: nothing}, "p", false},
		"broadcast with some peers":    {core.Scope{Peers: []string{"q"}}, "", true},
		"broadcast with no peer":       {core.Scope{Peers: nothing}, "", false},
		"broadcast in another channel": {core.Scope{Channels: []string{"d"}, Peers: []string{"q"}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.scope.Allows("w", "c", c.peer); got != c.want {
				t.Errorf("allows: %t", got)
			}
		})
	}
}
