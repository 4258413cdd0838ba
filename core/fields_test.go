package core_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func quote(s string) string { return strconv.Quote(s) }

func TestEachKindIsAccepted(t *testing.T) {
	for _, kind := range core.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			e := mustCheck(t, valid(kind).raw())
			if e.Kind != kind || !e.Kind.Valid() {
				t.Errorf("kind %q", e.Kind)
			}
		})
	}
}

// Every row of the table of section 1 of docs/protocol.md.
func TestFieldRules(t *testing.T) {
	a := func(n int) string { return strings.Repeat("a", n) }
	unsupported := refusal{core.ReasonUnsupportedKind, core.StepFields}
	for _, row := range []struct {
		field string
		value string
		want  refusal
	}{
		{"protocol", `"compozy-network\/v0"`, ok},
		{"protocol", `"compozy-network/v1"`, badField},
		{"protocol", `"Compozy-Network/v0"`, badField},
		{"protocol", `""`, badField},
		{"protocol", `0`, badField},

		{"id", quote(a(256)), ok},
		{"id", quote(a(257)), badField},
		{"id", `"` + strings.Repeat("é", 128) + `"`, ok},
		{"id", `"` + strings.Repeat("é", 128) + `a"`, badField},
		{"id", `"a b/*>.\"é"`, ok},
		{"id", `""`, badField},
		{"id", `" a"`, badField},
		{"id", `"a "`, badField},
		{"id", `"\u00a0a"`, badField},
		{"id", `"a\u2003"`, badField},
		{"id", `"a\u0085"`, badField},
		{"id", `"a\u00a0b"`, ok},
		{"id", `"a\u0000b"`, badField},
		{"id", `"a\nb"`, badField},
		{"id", `"a\u001fb"`, badField},
		{"id", `"a\u007fb"`, badField},
		{"id", `"a\u0080b"`, ok},
		{"id", `7`, badField},

		{"workspace_id", `"a/b+c#d%e$f-é_1"`, ok},
		{"workspace_id", quote(a(256)), ok},
		{"workspace_id", quote(a(257)), badField},
		{"workspace_id", `"a.b"`, badField},
		{"workspace_id", `"a b"`, badField},
		{"workspace_id", `"a*b"`, badField},
		{"workspace_id", `"a>b"`, badField},
		{"workspace_id", `"a\tb"`, badField},
		{"workspace_id", `"a\u3000"`, badField},
		{"workspace_id", `["a"]`, badField},

		{"kind", `"direct"`, unsupported},
		{"kind", `"Say"`, unsupported},
		{"kind", `"say "`, unsupported},
		{"kind", `"s\u0061y"`, ok},
		{"kind", `""`, badField},
		{"kind", `{}`, badField},

		{"channel", `"a"`, ok},
		{"channel", quote("0" + strings.Repeat("_", 62) + "-"), ok},
		{"channel", quote(a(65)), badField},
		{"channel", `"-a"`, badField},
		{"channel", `"_a"`, badField},
		{"channel", `"A"`, badField},
		{"channel", `"a.b"`, badField},
		{"channel", `"a b"`, badField},
		{"channel", `"é"`, badField},
		{"channel", `""`, badField},
		{"channel", `true`, badField},

		{"surface", `"room"`, badSurface},
		{"surface", `"Thread"`, badSurface},
		{"surface", `""`, badSurface},
		{"surface", `1`, badField},

		{"thread_id", `"thread_abc"`, ok},
		{"thread_id", `"thread_a_-"`, ok},
		{"thread_id", quote("thread_" + a(96)), ok},
		{"thread_id", quote("thread_" + a(97)), badSurface},
		{"thread_id", `"thread_ab"`, badSurface},
		{"thread_id", `"thread_-bc"`, badSurface},
		{"thread_id", `"thread_Abc"`, badSurface},
		{"thread_id", `"thread_a.c"`, badSurface},
		{"thread_id", `"abc"`, badSurface},
		{"thread_id", `" thread_abc"`, badSurface},
		{"thread_id", `""`, badSurface},
		{"thread_id", `1`, badField},

		{"from", `"a._-9"`, ok},
		{"from", quote(a(128)), ok},
		{"from", quote(a(129)), badField},
		{"from", `".a"`, badField},
		{"from", `"-a"`, badField},
		{"from", `"_a"`, badField},
		{"from", `"A"`, badField},
		{"from", `"a/b"`, badField},
		{"from", `"a@b"`, badField},
		{"from", `"a\u0000"`, badField},
		{"from", `""`, badField},
		{"from", `1`, badField},

		{"to", `"a._-9"`, ok},
		{"to", quote(a(129)), badField},
		{"to", `"a@b"`, badField},
		{"to", `""`, badField},
		{"to", `1`, badField},
		{"to", `"planner.sess-1"`, ok},

		{"mentions", `[]`, ok},
		{"mentions", `["a","b.c","a"]`, ok},
		{"mentions", `["A"]`, badField},
		{"mentions", `[""]`, badField},
		{"mentions", `[null]`, badField},
		{"mentions", `[1]`, badField},
		{"mentions", `"a"`, badField},
		{"mentions", `{}`, badField},

		{"work_id", `"  w 1\t"`, ok},
		{"work_id", `"\u2003w\u00a0"`, ok},
		{"work_id", quote(" " + a(128) + " "), ok},
		{"work_id", quote(a(129)), badField},
		{"work_id", `"   "`, badField},
		{"work_id", `""`, badField},
		{"work_id", `"a/b"`, badField},
		{"work_id", `"a\\b"`, badField},
		{"work_id", `"a\u0000b"`, badField},
		{"work_id", `"a\u001fb"`, badField},
		{"work_id", `"a\u007fb"`, badField},
		{"work_id", `"a\u0080b"`, ok},
		{"work_id", `1`, badField},

		{"ts", `1800000000.0`, badField},
		{"ts", `18e8`, badField},
		{"ts", `0`, badField},
		{"ts", `-1`, badField},
		{"ts", `-0`, badField},
		{"ts", `"1800000000"`, badField},
		{"ts", `9223372036854775808`, badField},
		{"ts", `253402300800`, badField},
		{"ts", `253402300799`, refusal{core.ReasonExpired, core.StepFreshness}},
		{"ts", `1800000000000`, badField},

		{"expires_at", `1800000001`, ok},
		{"expires_at", `1800000001.0`, badField},
		{"expires_at", `1e3`, badField},
		{"expires_at", `"1800000001"`, badField},
		{"expires_at", `9223372036854775808`, badField},
		{"expires_at", `253402300800`, badField},
		{"expires_at", `0`, refusal{core.ReasonExpired, core.StepFreshness}},
		{"expires_at", `-9223372036854775808`, refusal{core.ReasonExpired, core.StepFreshness}},

		{"body", `[]`, badField},
		{"body", `"text"`, badField},
		{"body", `{}`, badBody},

		{"proof", `{"profile":"x","Profile":"y"}`, ok},
		{"proof", `[]`, badField},
		{"proof", `"x"`, badField},
		{"ext", `{"foo":{"a":1,"A":2},"Foo":1}`, ok},
		{"ext", `[]`, badField},
		{"ext", `0`, badField},

		{"interaction_id", `"x"`, refusal{core.ReasonLegacyFieldRejected, core.StepParse}},
		{"interaction_id", `null`, refusal{core.ReasonLegacyFieldRejected, core.StepParse}},
		{"carrier", `{}`, syntax},
		{"carrier", `null`, syntax},
		{"unknown_field", `{"a":[1.10,1e400,9007199254740993]}`, ok},
		{"TS", `1`, syntax},
		{"Thread-Id", `1`, ok},
	} {
		t.Run(row.field+" "+shorten(row.value), func(t *testing.T) {
			_, rej := check(valid(core.KindSay).set(row.field, row.value).raw())
			row.want.verify(t, rej)
		})
	}
	for _, field := range []string{"reply_to", "trace_id", "causation_id"} {
		for value, want := range map[string]refusal{
			`"x y"`: ok, quote(a(1000)): ok,
			`""`: badField, `" x"`: badField, `"x\u00a0"`: badField, `"\nx"`: badField,
			`"x\u0000"`: badField, `"x\u007fy"`: badField, `1`: badField, `[]`: badField,
		} {
			t.Run(field+" "+shorten(value), func(t *testing.T) {
				_, rej := check(valid(core.KindSay).set(field, value).raw())
				want.verify(t, rej)
			})
		}
	}
}

func shorten(s string) string { return s[:min(len(s), 24)] }

func TestRequiredFields(t *testing.T) {
	for _, kind := range core.Kinds() {
		for _, field := range []string{"protocol", "id", "workspace_id", "kind", "channel", "from", "ts", "body"} {
			t.Run(string(kind)+" without "+field, func(t *testing.T) {
				_, rej := check(valid(kind).drop(field).raw())
				badField.verify(t, rej)
			})
			t.Run(string(kind)+" with null "+field, func(t *testing.T) {
				_, rej := check(valid(kind).set(field, "null").raw())
				badField.verify(t, rej)
			})
		}
	}
}

func TestNullIsAbsent(t *testing.T) {
	for _, kind := range core.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			d := valid(kind)
			for _, field := range []string{
				"surface", "thread_id", "direct_id", "to", "mentions", "work_id", "reply_to",
				"trace_id", "causation_id", "expires_at", "proof", "ext",
			} {
				if _, set := d.values[field]; !set {
					d.set(field, "null")
				}
			}
			e := mustCheck(t, d.raw())
			if e.HasExpiry || e.Ext != nil || e.Proof != nil || e.Mentions != nil || e.ReplyTo != "" {
				t.Errorf("a null field was read: %+v", e)
			}
		})
	}
}

func TestTheFirstStepThatFailsNamesTheReason(t *testing.T) {
	cases := map[string]struct {
		draft *draft
		want  refusal
	}{
		"legacy field before a missing field": {
			valid(core.KindSay).drop("id").set("interaction_id", "null"),
			refusal{core.ReasonLegacyFieldRejected, core.StepParse},
		},
		"twins before the legacy field": {
			valid(core.KindSay).set("Id", "1").set("interaction_id", "null"), syntax,
		},
		"missing field before an unknown kind": {valid("direct").drop("ts"), badField},
		"other protocol before an unknown kind": {
			valid("direct").set("protocol", `"x"`), badField,
		},
		"unknown kind before a bad channel": {
			valid("direct").set("channel", `"A"`).set("to", "1"),
			refusal{core.ReasonUnsupportedKind, core.StepFields},
		},
		"bad channel before expiry": {valid(core.KindSay).set("channel", `"A"`).set("ts", "1"), badField},
		"expiry before a missing surface": {
			valid(core.KindSay).drop("surface").set("ts", "1"),
			refusal{core.ReasonExpired, core.StepFreshness},
		},
		"surface before the work_id":      {valid(core.KindTrace).drop("surface").drop("work_id"), badSurface},
		"missing work_id before the body": {valid(core.KindTrace).drop("work_id").set("body", "{}"), badShape},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, rej := check(c.draft.raw())
			c.want.verify(t, rej)
		})
	}
}

func TestWhatCouldBeReadComesBackWithARefusal(t *testing.T) {
	e, rej := core.Parse(valid(core.KindSay).set("channel", "5").set("to", `"A"`).raw())
	badField.verify(t, rej)
	if e == nil || e.ID != "m-1" || e.WorkspaceID != "ws/alpha" || e.From != "planner.sess-1" || e.To != "A" || e.Channel != "" {
		t.Errorf("envelope %+v", e)
	}
	if e, _ := core.Parse(valid(core.KindSay).set("Id", "1").raw()); e != nil {
		t.Error("an envelope with two readings was read")
	}
}

func TestFieldsAreRead(t *testing.T) {
	e := mustCheck(t, valid(core.KindSay).
		set("id", `"m\u002d1 \ud83d\ude00"`).
		set("work_id", `"\u2003work 1\n"`).
		set("mentions", `["a", "b", "a", "c", "b"]`).
		set("reply_to", `"r"`).set("trace_id", `"t"`).set("causation_id", `"c"`).
		set("expires_at", "1800000009").
		set("ext", `{ "foo" : 1.10 }`).set("proof", `{"x":1}`).raw())
	if e.Protocol != core.Protocol || e.ID != "m-1 😀" || e.WorkID != "work 1" ||
		e.ReplyTo != "r" || e.TraceID != "t" || e.CausationID != "c" ||
		e.TS != 1800000000 || e.ExpiresAt != 1800000009 || !e.HasExpiry ||
		e.Channel != "builders" || e.Surface != core.SurfaceThread || e.ThreadID != "thread_plan-1" ||
		e.To != "reviewer.sess-xyz" || e.Text != "Please review." {
		t.Errorf("envelope %+v", e)
	}
	if got := strings.Join(e.Mentions, " "); got != "a b c" {
		t.Errorf("mentions %q", got)
	}
	if string(e.Ext) != `{ "foo" : 1.10 }` || string(e.Proof) != `{"x":1}` {
		t.Errorf("ext %s proof %s", e.Ext, e.Proof)
	}
}
