package integration

import (
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixMaxBytes is the largest envelope that a gateway takes by default.
const matrixMaxBytes = 1 << 20

// matrixByteCases is step 1: from bytes to one JSON object with one reading.
func matrixByteCases() []matrixCase {
	malformed := matrixRefused(core.StepParse, core.ReasonMalformed)
	raw := func(name string, payload func(w *matrixWorld) string) matrixCase {
		return matrixCase{name: "bytes: " + name, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{w.bytes(payload(w), malformed)}
		}}
	}
	fixed := func(name, payload string) matrixCase {
		return raw(name, func(*matrixWorld) string { return payload })
	}
	// inside puts text between the braces of a valid envelope.
	inside := func(name, text string) matrixCase {
		return raw(name, func(w *matrixWorld) string {
			return strings.TrimSuffix(w.say().String(), "}") + "," + text + "}"
		})
	}
	body := func(name, body string) matrixCase {
		return raw(name, func(w *matrixWorld) string { return w.say().set("body", body).String() })
	}
	cases := []matrixCase{
		matrixNoise("empty", "", true),
		matrixNoise("white space alone", " \t ", true),
		matrixNoise("an array", "[]", false),
		matrixNoise("a string", `"hello"`, false),
		matrixNoise("a number", "1", false),
		matrixNoise("null", "null", false),
		matrixNoise("a banner", "listening on port 80", false),
		fixed("a brace alone", "{"),
		fixed("an empty object", "{}"),
		fixed("a comma too many", `{"id":"x",}`),
		fixed("single quotes", `{'id':'x'}`),
		fixed("not a number", `{"ts":NaN}`),
		raw("cut off", func(w *matrixWorld) string { return strings.TrimSuffix(w.say().String(), "}") }),
		raw("a second object behind", func(w *matrixWorld) string { return w.say().String() + w.say().String() }),
		raw("a word behind", func(w *matrixWorld) string { return w.say().String() + " x" }),
		raw("a brace behind", func(w *matrixWorld) string { return w.say().String() + "}" }),
		raw("a byte-order mark before", func(w *matrixWorld) string { return "\xef\xbb\xbf" + w.say().String() }),
		inside("a key twice", `"channel":"general"`),
		inside("a key twice, one of them escaped", `"\u0063hannel":"general"`),
		inside("an unknown key twice", `"x":1,"x":2`),
		inside("a key twice deep inside ext", `"ext":{"a":[{"b":1,"b":1}]}`),
		inside("a lone surrogate in a key", `"\ud800":1`),
		inside("two low surrogates", `"x":"\udc00\udc00"`),
		inside("a control frame inside", `"carrier":{"ack":"x"}`),
		inside("a control frame inside that is null", `"carrier":null`),
		body("a lone surrogate", `{"text":"\ud800"}`),
		body("a high surrogate before a character", `{"text":"\ud83dx"}`),
		body("invalid UTF-8", "{\"text\":\"\xff\"}"),
		body("UTF-8 that is too long", "{\"text\":\"\xc0\xaf\"}"),
		body("a surrogate in UTF-8", "{\"text\":\"\xed\xa0\x80\"}"),
		body("a NUL byte in a string", "{\"text\":\"a\x00b\"}"),
		body("a tab in a string", "{\"text\":\"a\tb\"}"),
		body("an escape that is none", `{"text":"\x41"}`),
		body("a key twice in the body", `{"text":"a","text":"a"}`),
		raw("nested 65 deep", func(w *matrixWorld) string { return w.say().set("ext", matrixNested(64)).String() }),
		matrixOne("bytes: nested 64 deep", matrixVerdict("committed"), func(w *matrixWorld) *matrixDraft {
			return w.say().set("ext", matrixNested(63))
		}),
		matrixOne("bytes: an escaped NUL in a text", matrixVerdict("committed"), func(w *matrixWorld) *matrixDraft {
			return w.say().set("body", `{"text":"a\u0000b"}`)
		}),
		matrixOne("bytes: unknown members and unusual spellings", matrixVerdict("committed"), func(w *matrixWorld) *matrixDraft {
			return w.say().set("x", `[1.10,1e400,9007199254740993,-0,"\u0041\/","é😀\u2028"]`)
		}),
		matrixOne("bytes: a retired field", matrixRefused(core.StepParse, core.ReasonLegacyFieldRejected), func(w *matrixWorld) *matrixDraft {
			return w.say().text("interaction_id", "x")
		}),
		matrixOne("bytes: a retired field that is null", matrixRefused(core.StepParse, core.ReasonLegacyFieldRejected), func(w *matrixWorld) *matrixDraft {
			return w.say().set("interaction_id", "null")
		}),
	}
	return append(append(cases, matrixTwinCases()...), matrixSizeCases()...)
}

// matrixNoise is what is no frame at all on a stdio agent's output, and where it
// is blank no line of NDJSON either.
func matrixNoise(name, payload string, blank bool) matrixCase {
	return matrixCase{name: "bytes: " + name, frames: func(w *matrixWorld) []matrixFrame {
		f := w.bytes(payload, matrixRefused(core.StepParse, core.ReasonMalformed))
		f.on = map[matrixWay]matrixOutcome{matrixStdio: matrixVerdict("unheard")}
		if blank {
			f.on[matrixNDJSON] = matrixVerdict("unheard")
		}
		return []matrixFrame{f}
	}}
}

// matrixNested is an object of that many levels.
func matrixNested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

// matrixTwinCases puts beside every field that the protocol names one that
// differs in case alone.
func matrixTwinCases() []matrixCase {
	malformed := matrixRefused(core.StepParse, core.ReasonMalformed)
	var cases []matrixCase
	for _, name := range []string{
		"protocol", "id", "workspace_id", "kind", "channel", "surface", "thread_id", "from", "to", "mentions", "work_id",
		"reply_to", "trace_id", "causation_id", "ts", "expires_at", "body", "proof", "ext",
	} {
		cases = append(cases, matrixOne("bytes: a twin of "+name, malformed, func(w *matrixWorld) *matrixDraft {
			d := w.open()
			if _, ok := d.values[name]; !ok {
				d.set(name, "null")
			}
			return d.set(strings.ToUpper(name[:1])+name[1:], "null")
		}))
	}
	for kind, members := range map[core.Kind][]string{
		core.KindSay:        {"text", "intent", "artifacts"},
		core.KindReceipt:    {"for_id", "status", "reason_code", "detail"},
		core.KindTrace:      {"state", "message", "result", "artifact_refs"},
		core.KindGreet:      {"peer_card", "summary"},
		core.KindWhois:      {"type", "query", "peer_card"},
		core.KindCapability: {"capability"},
	} {
		for _, name := range members {
			cases = append(cases, matrixOne("bytes: a twin of "+name+" in the body of "+string(kind), malformed, func(w *matrixWorld) *matrixDraft {
				d := w.valid(kind)
				body := strings.TrimSuffix(d.values["body"], "}")
				if !strings.Contains(body, `"`+name+`":`) {
					body += `,"` + name + `":null`
				}
				return d.set("body", body+`,"`+strings.ToUpper(name)+`":null}`)
			}))
		}
	}
	return append(cases,
		matrixOne("bytes: a twin with a long s", malformed, func(w *matrixWorld) *matrixDraft {
			return w.say().set("body", `{"text":"a","artifact`+"\u017f"+`":[],"artifacts":[]}`)
		}),
		matrixOne("bytes: a twin in the peer card", malformed, func(w *matrixWorld) *matrixDraft {
			return w.greet().set("body", `{"peer_card":`+strings.Replace(matrixCard(w.a), `{`, `{"Peer_ID":"x",`, 1)+`}`)
		}),
		matrixOne("bytes: a twin in the capability", malformed, func(w *matrixWorld) *matrixDraft {
			d := w.capability()
			return d.set("body", strings.Replace(d.values["body"], `"outcome"`, `"Outcome":"x","outcome"`, 1))
		}),
		matrixOne("bytes: twins where the protocol names nothing", matrixVerdict("committed"), func(w *matrixWorld) *matrixDraft {
			return w.say().set("ext", `{"a":1,"A":2}`).set("x", "1").set("X", "2")
		}),
	)
}

// matrixSizeCases are the largest envelope, and one byte more.
func matrixSizeCases() []matrixCase {
	sized := func(name string, size int, before, after string, want matrixOutcome) matrixCase {
		return matrixCase{name: "bytes: " + name, frames: func(w *matrixWorld) []matrixFrame {
			d := w.say()
			room := size - len(d.set("body", `{"text":""}`).String())
			f := w.frame(d.set("body", `{"text":"`+strings.Repeat("a", room)+`"}`), want)
			f.payload = before + f.payload + after
			return []matrixFrame{f}
		}}
	}
	tooLarge := matrixOutcome{verdict: "rejected", reason: core.ReasonMalformed, step: core.StepParse, tooLarge: true}
	return []matrixCase{
		sized("the largest envelope", matrixMaxBytes, "", "", matrixVerdict("committed")),
		sized("one byte too large", matrixMaxBytes+1, "", "", tooLarge),
		sized("the largest envelope, white space around it", matrixMaxBytes, " \t", " \r\n", matrixVerdict("committed")),
		sized("white space around it", 1000, "\r\n \t", "\t \r\n", matrixVerdict("committed")),
	}
}
