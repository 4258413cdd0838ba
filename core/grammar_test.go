package core_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

// The grammars are written by hand for speed; these are the same as patterns.
func TestGrammarsAreThoseOfTheProtocol(t *testing.T) {
	texts := rapid.OneOf(
		rapid.StringMatching(`(thread_|direct_)?[a-z0-9._\-A-F /é]{0,40}`),
		rapid.StringMatching(`[a-z0-9][a-z0-9._-]{60,130}`),
		rapid.StringMatching(`direct_[a-f0-9]{31,33}`),
		rapid.StringMatching(`thread_[a-z0-9_-]{0,98}`),
		rapid.String(),
	)
	for name, g := range map[string]struct {
		valid   func(string) bool
		pattern string
	}{
		"peer":      {core.ValidPeerID, `\A[a-z0-9][a-z0-9._-]{0,127}\z`},
		"channel":   {core.ValidChannel, `\A[a-z0-9][a-z0-9_-]{0,63}\z`},
		"thread":    {core.ValidThreadID, `\Athread_[a-z0-9][a-z0-9_-]{2,95}\z`},
		"direct":    {core.ValidDirectID, `\Adirect_[a-f0-9]{32}\z`},
		"workspace": {core.ValidWorkspaceID, `\A[^\x00-\x20.*>\x7f\s\p{Z}\x{85}]([^\x00-\x20.*>\x7f]*[^\x00-\x20.*>\x7f\s\p{Z}\x{85}])?\z`},
	} {
		t.Run(name, func(t *testing.T) {
			want := regexp.MustCompile(g.pattern)
			rapid.Check(t, func(t *rapid.T) {
				s := texts.Draw(t, "text")
				if g.valid(s) != (want.MatchString(s) && len(s) <= 256) {
					t.Fatalf("%q: %t", s, g.valid(s))
				}
			})
		})
	}
	if core.ValidWorkspaceID("a\xffb") {
		t.Error("a workspace id that is not UTF-8 is valid")
	}
}

// A sender is told what the field should have been.
func TestARefusalNamesTheGrammar(t *testing.T) {
	for _, c := range []struct{ name, field, value, grammar string }{
		{"an id", "id", `" m"`, "1 to 256 bytes"},
		{"a workspace", "workspace_id", `"a.b"`, core.WorkspaceGrammar},
		{"a channel", "channel", `"A"`, core.ChannelGrammar},
		{"a sender", "from", `"A"`, core.PeerGrammar},
		{"a recipient", "to", `"-a"`, core.PeerGrammar},
		{"a mentioned peer", "mentions", `["a","B"]`, core.PeerGrammar},
		{"a unit of work", "work_id", `"a/b"`, "1 to 128 bytes"},
		{"a trace", "trace_id", `" "`, "UTF-8"},
		{"a thread", "thread_id", `"main"`, core.ThreadGrammar},
		{"a short thread", "thread_id", `"thread_a"`, core.ThreadGrammar},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, rej := check(valid(core.KindSay).set(c.field, c.value).raw())
			if rej == nil || !strings.Contains(rej.Detail, c.field) || !strings.Contains(rej.Detail, c.grammar) {
				t.Errorf("refused with %v", rej)
			}
		})
	}
	room := valid(core.KindSay).set("surface", `"direct"`).drop("thread_id").set("direct_id", `"direct_1"`)
	if _, rej := check(room.raw()); rej == nil || !strings.Contains(rej.Detail, core.DirectGrammar) {
		t.Errorf("a room is refused with %v", rej)
	}
}
