package integration

import (
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixBodyCases is step 5: the body of each kind.
func matrixBodyCases() []matrixCase {
	malformed := matrixRefused(core.StepBody, core.ReasonMalformed)
	committed := matrixVerdict("committed")
	var cases []matrixCase
	add := func(kind core.Kind, want matrixOutcome, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, matrixCase{name: "body: " + string(kind) + ": " + body, frames: func(w *matrixWorld) []matrixFrame {
				var frames []matrixFrame
				if want == committed && (kind == core.KindReceipt || kind == core.KindTrace) {
					frames = append(frames, w.taken(w.open()))
				}
				body := strings.NewReplacer("CARD", matrixCard(w.a)).Replace(body)
				return append(frames, w.frame(w.valid(kind).set("body", body), want))
			}})
		}
	}
	add(core.KindSay, committed,
		`{"text":"a","intent":null,"artifacts":null}`, `{"text":" a ","intent":"","artifacts":[{}],"x":1}`, `{"text":"\n😀"}`)
	add(core.KindSay, malformed,
		`{}`, `{"text":null}`, `{"text":""}`, `{"text":" \t\n\u00a0"}`, `{"text":1}`, `{"Text":"a"}`,
		`{"text":"a","intent":1}`, `{"text":"a","artifacts":{}}`)
	add(core.KindGreet, committed, `{"peer_card":CARD}`, `{"peer_card":CARD,"summary":null}`, `{"peer_card":CARD,"summary":"s"}`)
	add(core.KindGreet, malformed, `{}`, `{"peer_card":null}`, `{"peer_card":[]}`, `{"peer_card":CARD,"summary":1}`)
	add(core.KindWhois, committed, `{"type":"request"}`, `{"type":"request","query":"x","peer_card":null}`)
	add(core.KindWhois, malformed,
		`{}`, `{"type":"Request"}`, `{"type":1}`, `{"type":"answer"}`, `{"type":"request","query":1}`, `{"type":"request","peer_card":CARD}`,
		`{"type":"response","peer_card":CARD}`) // a response without reply_to
	cases = append(cases, matrixCardCases()...)
	cases = append(cases, matrixCapabilityCases()...)

	for _, status := range core.ReceiptStatuses() {
		bare, reasoned := malformed, committed
		switch status {
		case core.ReceiptAccepted:
			bare, reasoned = committed, malformed
		case core.ReceiptCanceled:
			bare = committed
		}
		head := `{"for_id":"x","status":"` + string(status) + `"`
		add(core.KindReceipt, bare, head+`}`, head+`,"reason_code":null,"detail":null}`)
		add(core.KindReceipt, reasoned, head+`,"reason_code":"somebody's own","detail":"d"}`, head+`,"reason_code":"`+strings.Repeat("é", 32)+`"}`)
		add(core.KindReceipt, malformed, head+`,"reason_code":""}`, head+`,"reason_code":1}`, head+`,"detail":1,"reason_code":"busy"}`,
			head+`,"reason_code":"`+strings.Repeat("x", 65)+`"}`)
	}
	for _, code := range core.ReasonCodes() {
		add(core.KindReceipt, committed, `{"for_id":"x","status":"rejected","reason_code":"`+string(code)+`"}`)
	}
	add(core.KindReceipt, malformed,
		`{}`, `{"status":"accepted"}`, `{"for_id":"","status":"accepted"}`, `{"for_id":1,"status":"accepted"}`,
		`{"for_id":"x"}`, `{"for_id":"x","status":""}`, `{"for_id":"x","status":"Accepted"}`, `{"for_id":"x","status":"committed"}`)
	for _, state := range core.WorkStates() {
		if state != core.WorkSubmitted { // well formed and refused by the rules of work
			add(core.KindTrace, committed, `{"state":"`+string(state)+`"}`)
		}
	}
	add(core.KindTrace, committed, `{"state":"working","message":"m","result":{},"artifact_refs":[]}`)
	add(core.KindTrace, malformed,
		`{}`, `{"state":null}`, `{"state":""}`, `{"state":"Working"}`, `{"state":"done"}`, `{"state":1}`,
		`{"state":"working","message":1}`, `{"state":"working","result":[]}`, `{"state":"working","artifact_refs":{}}`)
	// A say with work, so that a receipt is owed.
	return append(cases, matrixOne("body: a blank text in work", malformed, func(w *matrixWorld) *matrixDraft {
		return w.open().set("body", `{"text":" "}`)
	}))
}

// matrixCardCases are peer cards, in a greet and in an answer to a whois.
func matrixCardCases() []matrixCase {
	malformed := matrixRefused(core.StepBody, core.ReasonMalformed)
	var cases []matrixCase
	both := func(name string, want matrixOutcome, change func(card string) string) {
		cases = append(cases,
			matrixOne("body: card of a greet: "+name, want, func(w *matrixWorld) *matrixDraft {
				return w.greet().set("body", `{"peer_card":`+change(matrixCard(w.a))+`}`)
			}),
			matrixOne("body: card of an answer: "+name, want, func(w *matrixWorld) *matrixDraft {
				return w.whoisResponse().set("body", `{"type":"response","peer_card":`+change(matrixCard(w.a))+`}`)
			}))
	}
	insert := func(members string) func(string) string {
		return func(card string) string { return `{` + members + `,` + card[1:] }
	}
	both("the least", matrixVerdict("committed"), func(card string) string { return card })
	both("everything", matrixVerdict("committed"), insert(`"display_name":"n","ext":{"compozy.capabilities_brief":[]},"x":1`))
	both("another's", malformed, func(string) string { return matrixCard("somebody") })
	both("display_name 1", malformed, insert(`"display_name":1`))
	both("ext []", malformed, insert(`"ext":[]`))
	for _, list := range []string{"profiles_supported", "capabilities", "artifacts_supported", "trust_modes_supported"} {
		for _, value := range []string{"null", `"x"`, "[1]", "{}"} {
			both(list+" "+value, malformed, func(card string) string {
				return strings.Replace(card, `"`+list+`":[]`, `"`+list+`":`+value, 1)
			})
		}
	}
	return append(cases, matrixOne("body: an answer without a card", malformed, func(w *matrixWorld) *matrixDraft {
		return w.whoisResponse().set("body", `{"type":"response"}`)
	}))
}

// matrixCapabilityCases are capability documents and their digests.
func matrixCapabilityCases() []matrixCase {
	malformed := matrixRefused(core.StepBody, core.ReasonMalformed)
	failed := matrixRefused(core.StepBody, core.ReasonVerificationFailed)
	var cases []matrixCase
	add := func(name string, want matrixOutcome, body string) {
		cases = append(cases, matrixOne("body: capability: "+name, want, func(w *matrixWorld) *matrixDraft {
			return w.capability().set("body", body)
		}))
	}
	valid := matrixCapability("")
	add("the least", matrixVerdict("committed"), valid)
	add("every member", matrixVerdict("committed"), matrixCapability(
		`"version":"1","context_needed":["a"],"artifacts_expected":[],"execution_outline":["<b>"],"constraints":null,"examples":["\u2028"],"requirements":["b"," a "],`))
	add("no document", malformed, `{}`)
	add("a list", malformed, `{"capability":[]}`)
	for _, member := range []string{"id", "summary", "outcome", "digest"} {
		for _, value := range []string{"null", `""`, "1"} {
			from := strings.Index(valid, `"`+member+`":`) + len(member) + 3
			to := from + strings.IndexAny(valid[from:], ",}")
			add(member+" "+value, malformed, valid[:from]+value+valid[to:])
		}
	}
	for _, list := range []string{"context_needed", "artifacts_expected", "execution_outline", "constraints", "examples", "requirements"} {
		for _, value := range []string{`"x"`, "[1]", "{}"} {
			add(list+" "+value, malformed, strings.Replace(valid, `"id"`, `"`+list+`":`+value+`,"id"`, 1))
		}
	}
	add("version 1", malformed, strings.Replace(valid, `"id"`, `"version":1,"id"`, 1))
	add("a blank requirement", malformed, strings.Replace(valid, `"id"`, `"requirements":[" "],"id"`, 1))
	add("a requirement twice", malformed, strings.Replace(valid, `"id"`, `"requirements":["a"," a"],"id"`, 1))
	add("the digest of another document", failed, strings.Replace(valid, `"outcome":"o"`, `"outcome":"p"`, 1))
	add("a digest in capitals", failed, strings.Replace(valid, "sha256:", "SHA256:", 1))
	add("a digest cut short", failed, strings.Replace(valid, `"}}`, `","x":1}}`, 1)[:len(valid)-4]+`"}}`)
	return cases
}
