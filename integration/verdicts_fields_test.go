package integration

import (
	"strconv"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixFieldCases is step 2: what every envelope has, and the grammars.
func matrixFieldCases() []matrixCase {
	malformed := matrixRefused(core.StepFields, core.ReasonMalformed)
	change := func(name string, want matrixOutcome, field, value string) matrixCase {
		return matrixOne("fields: "+name, want, func(w *matrixWorld) *matrixDraft { return w.say().set(field, value) })
	}
	var cases []matrixCase
	for _, field := range []string{"protocol", "id", "workspace_id", "kind", "channel", "from", "ts", "body"} {
		cases = append(cases, matrixOne("fields: no "+field, malformed, func(w *matrixWorld) *matrixDraft { return w.say().drop(field) }))
		for _, value := range []string{"null", `""`, "true", "[]"} {
			cases = append(cases, change(field+" is "+value, malformed, field, value))
		}
	}
	for _, field := range []string{
		"surface", "thread_id", "direct_id", "to", "mentions", "work_id", "reply_to", "trace_id", "causation_id", "expires_at", "proof", "ext",
	} {
		cases = append(cases, change(field+" is true", malformed, field, "true"))
	}
	for _, field := range []string{"direct_id", "to", "mentions", "work_id", "reply_to", "trace_id", "causation_id", "expires_at", "proof", "ext"} {
		cases = append(cases, change(field+" is null", matrixVerdict("committed"), field, "null"))
	}
	unsupported := matrixRefused(core.StepFields, core.ReasonUnsupportedKind)
	for _, kind := range []string{"direct", "Say", "say ", "ping"} {
		cases = append(cases, change("kind "+kind, unsupported, "kind", matrixQuote(kind)))
	}
	for _, protocol := range []string{"compozy-network/v1", "Compozy-Network/v0", "compozy-network/v0 "} {
		cases = append(cases, change("protocol "+protocol, malformed, "protocol", matrixQuote(protocol)))
	}
	cases = append(cases,
		matrixOne("fields: another protocol and an unknown kind", malformed, func(w *matrixWorld) *matrixDraft {
			return w.say().text("protocol", "other/v9").text("kind", "ping")
		}),
		matrixOne("fields: an unknown kind and a bad id", unsupported, func(w *matrixWorld) *matrixDraft {
			return w.say().text("kind", "ping").text("id", " ")
		}),
	)
	return append(append(cases, matrixGrammarCases()...), matrixNumberCases()...)
}

// matrixGrammarCases is every grammar at its bounds and behind them.
func matrixGrammarCases() []matrixCase {
	malformed := matrixRefused(core.StepFields, core.ReasonMalformed)
	long := func(head string, n int) string { return head + strings.Repeat("x", n-len(head)) }
	var cases []matrixCase
	for field, texts := range map[string][]string{
		"id":           {" x", "x ", "\u00a0x", "a\u0000b", "a\nb", "a\u007fb", long("id-", 257)},
		"workspace_id": {"a.b", "a b", "a*", "a>", " a", "a\u00a0", "a\tb", long("demo", 257)},
		"channel":      {"General", "-a", "a.b", "é", "a b", long("c", 65)},
		"from":         {"A", "-a", "a b", "a/b", "é", "a@b", long("p", 129)},
		"to":           {"", "A", ".a", "a b", "a>b", long("p", 129)},
		"work_id":      {"", "  ", "a/b", `a\b`, "a\u001fb", "a\u007fb", long("w", 129)},
		"reply_to":     {"", " x", "a\u0000b"},
		"trace_id":     {"", "x ", "a\u001fb"},
		"causation_id": {"", "\u2003x", "a\u007fb"},
	} {
		for _, text := range texts {
			shown := text[:min(len(text), 12)] + " of " + strconv.Itoa(len(text))
			cases = append(cases, matrixOne("fields: "+field+" "+strconv.Quote(shown), malformed, func(w *matrixWorld) *matrixDraft {
				return w.open().text(field, text)
			}))
		}
	}
	for name, set := range map[string]func(w *matrixWorld) *matrixDraft{
		"the longest id": func(w *matrixWorld) *matrixDraft { return w.say().text("id", long(w.name+"-", 256)) },
		"an id with spaces and letters of any script": func(w *matrixWorld) *matrixDraft { return w.say().text("id", w.name+" é 漢") },
		"the longest workspace_id": func(w *matrixWorld) *matrixDraft {
			return w.say().text("workspace_id", long("demo-", 256)).text("from", "far")
		},
		"a workspace_id with / + # % and $": func(w *matrixWorld) *matrixDraft {
			return w.say().text("workspace_id", "demo/a+b#c%d$e").text("from", "far")
		},
		"a workspace_id beyond ASCII": func(w *matrixWorld) *matrixDraft {
			return w.say().text("workspace_id", "demo-é-漢").text("from", "far")
		},
		"a directed one in such a workspace": func(w *matrixWorld) *matrixDraft {
			return w.open().text("workspace_id", "demo/a+b#c%d$e").text("from", "far")
		},
		"the longest channel":          func(w *matrixWorld) *matrixDraft { return w.say().text("channel", long("0", 64)).text("from", "wide") },
		"the longest from":             func(w *matrixWorld) *matrixDraft { return w.say().text("from", long("0", 128)) },
		"every character of a peer id": func(w *matrixWorld) *matrixDraft { return w.say().text("from", "0.a_b-c") },
		"the longest to":               func(w *matrixWorld) *matrixDraft { return w.say().text("to", long("p", 128)) },
		"the longest work_id":          func(w *matrixWorld) *matrixDraft { return w.open().text("work_id", long(w.name, 128)) },
		"a work_id that is trimmed":    func(w *matrixWorld) *matrixDraft { return w.open().text("work_id", "\t "+long(w.name, 128)+" \n") },
		"correlation of any script": func(w *matrixWorld) *matrixDraft {
			return w.say().text("reply_to", "é 漢").text("trace_id", "a b").text("causation_id", strings.Repeat("x", 1000))
		},
		"mentions with repeats": func(w *matrixWorld) *matrixDraft { return w.say().set("mentions", `["x","y","x"]`) },
		"no mentions":           func(w *matrixWorld) *matrixDraft { return w.say().set("mentions", `[]`) },
		"proof and ext": func(w *matrixWorld) *matrixDraft {
			return w.say().set("proof", `{"profile":"x"}`).set("ext", `{"x":1}`)
		},
	} {
		cases = append(cases, matrixOne("fields: "+name, matrixVerdict("committed"), set))
	}
	for _, mentions := range []string{`{}`, `"x"`, `[1]`, `[null]`, `["X"]`, `[""]`} {
		cases = append(cases, matrixOne("fields: mentions "+mentions, malformed, func(w *matrixWorld) *matrixDraft {
			return w.say().set("mentions", mentions)
		}))
	}
	return cases
}

// matrixNumberCases are the integers.
func matrixNumberCases() []matrixCase {
	malformed := matrixRefused(core.StepFields, core.ReasonMalformed)
	var cases []matrixCase
	for _, field := range []string{"ts", "expires_at"} {
		for _, value := range []string{"1700000000.0", "17e8", `"1700000000"`, "9223372036854775808", "253402300800", "true", "{}"} {
			cases = append(cases, matrixOne("fields: "+field+" "+value, malformed, func(w *matrixWorld) *matrixDraft {
				return w.say().set(field, value)
			}))
		}
	}
	for _, ts := range []string{"0", "-1", "-0"} {
		cases = append(cases, matrixOne("fields: ts "+ts, malformed, func(w *matrixWorld) *matrixDraft { return w.say().set("ts", ts) }))
	}
	return cases
}

// matrixFreshnessCases is step 3. What is right at the last second alone is
// tested where the clock can be set; here every margin only grows while the test
// is under way, or is wide.
func matrixFreshnessCases() []matrixCase {
	const replayAge, lifetime = 300, 720 * 3600
	expired := matrixRefused(core.StepFreshness, core.ReasonExpired)
	at := func(w *matrixWorld, offset int64) string { return strconv.FormatInt(w.now+offset, 10) }
	var cases []matrixCase
	for _, c := range []struct {
		name string
		want matrixOutcome
		// ts and expires are offsets from now; expires counts only if given.
		ts, expires int64
		given       bool
	}{
		{"expires now", expired, 0, 0, true},
		{"expired a second ago", expired, 0, -1, true},
		{"expired long ago", expired, -10, -1_000_000, true},
		{"expires_at is negative", expired, 0, -10_000_000_000, true},
		{"expires in a minute", matrixVerdict("committed"), 0, 60, true},
		{"just older than the replay window", expired, -replayAge - 1, 0, false},
		{"much older than the replay window", expired, -100_000, 0, false},
		{"inside the replay window", matrixVerdict("committed"), -replayAge + 40, 0, false},
		{"old, with an expires_at to come", matrixVerdict("committed"), -100_000, 60, true},
		{"as far in the future as the window", matrixVerdict("committed"), replayAge, 0, false},
		{"further in the future than the window", expired, replayAge + 60, 0, false},
		{"further in the future, with expires_at", expired, replayAge + 60, 3600, true},
		{"a second in the future", matrixVerdict("committed"), 1, 0, false},
		{"the longest lifetime", matrixVerdict("committed"), 0, lifetime, true},
		{"longer than the longest lifetime", matrixRefused(core.StepFreshness, core.ReasonMalformed), 0, lifetime + 60, true},
	} {
		for kind, draft := range map[string]func(w *matrixWorld) *matrixDraft{
			"": (*matrixWorld).say, ", with work": (*matrixWorld).open,
		} {
			cases = append(cases, matrixOne("freshness: "+c.name+kind, c.want, func(w *matrixWorld) *matrixDraft {
				d := draft(w).set("ts", at(w, c.ts))
				if c.given {
					d.set("expires_at", at(w, c.expires))
				}
				return d
			}))
		}
	}
	return append(cases, matrixOne("freshness: expired comes before the shape", expired, func(w *matrixWorld) *matrixDraft {
		return w.open().set("ts", at(w, -1000)).text("surface", "room")
	}))
}
