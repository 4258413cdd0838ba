//go:build brokers

package integration

import (
	"fmt"
	"strings"
	"time"
)

// refusal is an envelope that every carrier refuses for the same reason.
type refusal struct {
	name   string
	reason string
	// status is that of HTTP.
	status int
	// text is the envelope. Up to step 5 of the validation it is the same on every
	// carrier, down to the last byte; after it, it comes from the given peer, for
	// whom prepare has made the state.
	text func(from string) string
}

// prepare are the envelopes that make the state which the refusals of steps 8
// and 9 need. Those of the peer bob are told apart.
func prepare(from string) (own, ofBob []string) {
	closed, bound := opener("closed-open-"+from, from, "bob", "closed-"+from), opener("bound-open-"+from, from, "bob", "bound-"+from)
	own = []string{say("known-"+from, from, "as it was").String(), closed.String(), bound.String()}
	for n := range mostParked {
		own = append(own, trace(fmt.Sprintf("parked-%d-%s", n, from), from, "bob", fmt.Sprintf("parked-%d-%s", n, from), "working").String())
	}
	return own, []string{trace("closed-end-"+from, "bob", from, "closed-"+from, "completed").String()}
}

// mostParked is how many early messages of one sender may wait.
const mostParked = 100

// same makes an envelope that is the same from whatever carrier.
func same(text string) func(string) string { return func(string) string { return text } }

// plain is a say that nothing is wrong with but what is replaced in it.
func plain(old, replacement string) func(string) string {
	text := say("refused", "alice", "hello").String()
	changed := strings.Replace(text, old, replacement, 1)
	if changed == text {
		panic("nothing to replace: " + old)
	}
	return same(changed)
}

func refusals() []refusal {
	now := time.Now().Unix()
	aged := func(by int64) message {
		m := say("refused", "alice", "hello")
		m.ts = now + by
		return m
	}
	expiring := func(by int64) message {
		m := say("refused", "alice", "hello")
		m.more = fmt.Sprintf(`"expires_at":%d`, now+by)
		return m
	}
	work := func(m message) message {
		m.to, m.work = "bob", "w"
		return m
	}
	bare := func(kind, body string) message { return message{id: "refused", kind: kind, from: "alice", body: body} }
	card := `{"peer_id":"%s","profiles_supported":[],"capabilities":[],"artifacts_supported":[],"trust_modes_supported":[]}`
	unbound := say("refused", "alice", "x")
	unbound.surface, unbound.container = "direct", "direct_"+strings.Repeat("a", 32)
	greeting := bare("greet", `{"peer_card":`+fmt.Sprintf(card, "alice")+`}`)
	greeting.to = "bob"
	digest := work(bare("capability", `{"capability":{"id":"c","summary":"s","outcome":"o","digest":"sha256:`+strings.Repeat("0", 64)+`"}}`))
	own := func(make func(from string) message) func(string) string {
		return func(from string) string { return make(from).String() }
	}
	return []refusal{
		{"cut off", "malformed", 422, plain(`}}`, `}`)},
		{"a second value", "malformed", 422, plain(`}}`, `}}{}`)},
		{"a duplicate key", "malformed", 422, plain(`"kind"`, `"id":"other","kind"`)},
		{"a duplicate key deep inside", "malformed", 422, plain(`"text"`, `"x":{"a":1,"a":1},"text"`)},
		{"a key-case twin", "malformed", 422, plain(`"kind"`, `"ID":"other","kind"`)},
		{"a lone surrogate", "malformed", 422, plain(`hello`, `\ud800`)},
		{"invalid UTF-8", "malformed", 422, plain(`hello`, "\xff")},
		{"a byte-order mark", "malformed", 422, plain(`{"protocol`, "\uFEFF"+`{"protocol`)},
		{"nested too deep", "malformed", 422, plain(`"text"`, `"x":`+strings.Repeat(`[`, 70)+strings.Repeat(`]`, 70)+`,"text"`)},
		{"a byte too large", "malformed", 413, same(exactly(1<<20 + 1))},
		{"the retired field", "legacy_field_rejected", 422, plain(`"kind"`, `"interaction_id":null,"kind"`)},
		{"the field carrier", "malformed", 422, plain(`"kind"`, `"carrier":{},"kind"`)},

		{"another protocol", "malformed", 422, plain(`/v0`, `/v1`)},
		{"no id", "malformed", 422, plain(`"id":"refused",`, ``)},
		{"an unknown kind", "unsupported_kind", 422, plain(`"kind":"say"`, `"kind":"direct"`)},
		{"a workspace with a space", "malformed", 422, plain(`"demo"`, `"de mo"`)},
		{"a channel in capitals", "malformed", 422, plain(`"general"`, `"General"`)},
		{"a time with a fraction", "malformed", 422, plain(`"ts":`, `"ts":1.5,"was":`)},

		{"too old", "expired", 422, same(aged(-400).String())},
		{"from the future", "expired", 422, same(aged(400).String())},
		{"past its end", "expired", 422, same(expiring(-1).String())},
		{"an end too far away", "malformed", 422, same(expiring(3000 * 3600).String())},

		{"no surface", "invalid_surface", 422, plain(`"surface":"thread",`, ``)},
		{"a thread without its id", "invalid_surface", 422, plain(`"thread_id":"thread_main",`, ``)},
		{"both containers", "invalid_surface", 422, plain(`"from"`, `"direct_id":"direct_`+strings.Repeat("a", 32)+`","from"`)},
		{"a greet to somebody", "malformed", 422, same(greeting.String())},
		{"a trace without work", "malformed", 422, same(bare("trace", `{"state":"working"}`).String())},
		{"work for nobody", "malformed", 422, plain(`"ts"`, `"work_id":"w","ts"`)},

		{"a blank text", "malformed", 422, plain(`hello`, `  `)},
		{"a wrong digest", "verification_failed", 422, same(digest.String())},
		{"a refusing receipt without its reason", "malformed", 422, same(work(bare("receipt", `{"for_id":"x","status":"rejected"}`)).String())},
		{"an unknown state", "malformed", 422, same(work(bare("trace", `{"state":"done"}`)).String())},
		{"somebody else's card", "malformed", 422, same(bare("greet", `{"peer_card":`+fmt.Sprintf(card, "bob")+`}`).String())},

		{"the gateway's own name", "not_target", 403, plain(`"alice"`, `"gateway.local"`)},

		{"an id with other content", "duplicate", 409, own(func(from string) message { return say("known-"+from, from, "otherwise") })},
		{"a closed work", "work_closed", 409, own(func(from string) message { return opener("refused", from, "bob", "closed-"+from) })},
		{"another container", "work_container_mismatch", 409, own(func(from string) message {
			m := opener("refused", from, "bob", "bound-"+from)
			m.container = "thread_other"
			return m
		})},
		{"a third party", "not_target", 403, own(func(from string) message { return opener("refused", from, "carol", "bound-"+from) })},
		{"a room that nobody knows", "conversation_not_found", 422, own(func(from string) message {
			m := unbound
			m.from = from
			return m
		})},
		{"back to submitted", "malformed", 422, own(func(from string) message { return trace("refused", from, "bob", "unknown", "submitted") })},
		{"too much that is early", "busy", 429, own(func(from string) message { return trace("refused", from, "bob", "unknown", "working") })},
	}
}

// exactly is a valid envelope of that many bytes.
func exactly(size int) string {
	text := say("large", "alice", "").String()
	filling := size - len(text)
	return strings.Replace(text, `"text":""`, `"text":"`+strings.Repeat("x", filling)+`"`, 1)
}
