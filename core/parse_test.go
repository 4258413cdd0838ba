package core_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestStrictness(t *testing.T) {
	good := string(valid(core.KindSay).raw())
	body := func(b string) string { return string(valid(core.KindSay).set("body", b).raw()) }
	ext := func(x string) string { return string(valid(core.KindSay).set("ext", x).raw()) }
	nested := func(levels int) string {
		return ext(`{"d":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}`)
	}
	for name, c := range map[string]struct {
		raw  string
		want refusal
	}{
		"as it is":                           {good, ok},
		"white space around":                 {" \t\r\n" + good + "\n ", ok},
		"empty":                              {"", syntax},
		"white space only":                   {" \r\n", syntax},
		"byte-order mark":                    {"\xef\xbb\xbf" + good, syntax},
		"byte-order mark after white space":  {" \xef\xbb\xbf" + good, syntax},
		"byte-order mark at the end":         {good + "\xef\xbb\xbf", syntax},
		"no-break space in front":            {"\u00a0" + good, syntax},
		"form feed in front":                 {"\f" + good, syntax},
		"NUL behind":                         {good + "\x00", syntax},
		"array":                              {"[" + good + "]", syntax},
		"string":                             {`"x"`, syntax},
		"number":                             {`1`, syntax},
		"null":                               {`null`, syntax},
		"cut off":                            {good[:len(good)-1], syntax},
		"cut off in a string":                {good[:20], syntax},
		"second value":                       {good + "{}", syntax},
		"second value after white space":     {good + "\n" + good, syntax},
		"comma behind":                       {good + ",", syntax},
		"brace behind":                       {good + "}", syntax},
		"trailing comma":                     {good[:len(good)-1] + ",}", syntax},
		"comment":                            {"/**/" + good, syntax},
		"single quotes":                      {strings.ReplaceAll(good, `"`, `'`), syntax},
		"raw control character in a string":  {body("{\"text\":\"a\nb\"}"), syntax},
		"unknown escape":                     {body(`{"text":"\x41"}`), syntax},
		"number with a leading zero":         {ext(`{"n":01}`), syntax},
		"number with a plus":                 {ext(`{"n":+1}`), syntax},
		"NaN":                                {ext(`{"n":NaN}`), syntax},
		"any spelling of numbers":            {ext(`{"n":[-0,1.10,1e400,-1E-9,9007199254740993,123456789012345678901234567890]}`), ok},
		"invalid UTF-8":                      {body("{\"text\":\"a\xff\"}"), syntax},
		"overlong UTF-8":                     {body("{\"text\":\"\xc0\xaf\"}"), syntax},
		"surrogate as UTF-8":                 {body("{\"text\":\"\xed\xa0\x80\"}"), syntax},
		"invalid UTF-8 in an unknown key":    {ext("{\"\xff\":1}"), syntax},
		"lone high surrogate":                {body(`{"text":"\ud800"}`), syntax},
		"lone high surrogate before a text":  {body(`{"text":"\ud800abcdef"}`), syntax},
		"lone low surrogate":                 {body(`{"text":"\udc00"}`), syntax},
		"two high surrogates":                {body(`{"text":"\ud800\ud800"}`), syntax},
		"lone surrogate in an unknown key":   {ext(`{"\ud800":1}`), syntax},
		"lone surrogate in proof":            {string(valid(core.KindSay).set("proof", `{"x":"\udfff"}`).raw()), syntax},
		"surrogate pair":                     {body(`{"text":"\ud83d\ude00"}`), ok},
		"noncharacter":                       {body(`{"text":"\uffff"}`), ok},
		"line separators in a string":        {body("{\"text\":\"a\u2028b\u2029\"}"), ok},
		"duplicate key":                      {good[:len(good)-1] + `,"id":"m-1"}`, syntax},
		"duplicate key by an escape":         {good[:len(good)-1] + `,"\u0069d":"m-1"}`, syntax},
		"duplicate unknown key":              {good[:len(good)-1] + `,"x":1,"x":1}`, syntax},
		"duplicate key in body":              {body(`{"text":"a","text":"a"}`), syntax},
		"duplicate key in ext":               {ext(`{"a":{"b":[{"c":1,"c":2}]}}`), syntax},
		"duplicate key in proof":             {string(valid(core.KindSay).set("proof", `{"a":1,"\u0061":2}`).raw()), syntax},
		"same key in different objects":      {ext(`{"a":{"a":1},"b":{"a":1}}`), ok},
		"exactly 64 levels":                  {nested(62), ok},
		"65 levels":                          {nested(63), syntax},
		"65 levels of objects":               {ext(strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64)), syntax},
		"65 levels beside shallow ones":      {ext(`{"a":[[1],[[2]]],"b":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`), syntax},
		"brackets in strings are no levels":  {ext(`{"a":"` + strings.Repeat("[{", 100) + `"}`), ok},
		"brackets behind an escaped quote":   {ext(`{"a":"\\\"` + strings.Repeat("[", 100) + `\\"}`), ok},
		"a great many levels":                {strings.Repeat("[", 1<<20), syntax},
		"a great many levels in an envelope": {ext(strings.Repeat(`{"a":`, 1<<17)), syntax},
	} {
		t.Run(name, func(t *testing.T) {
			_, rej := check([]byte(c.raw))
			c.want.verify(t, rej)
			if rej != nil && len(rej.Detail) > 120 {
				t.Errorf("detail of %d bytes", len(rej.Detail))
			}
		})
	}
}

// The objects whose members the protocol names, as functions from further
// members to an envelope.
func namedObjects() map[string]struct {
	names  []string
	inside func(members string) []byte
} {
	type object = struct {
		names  []string
		inside func(members string) []byte
	}
	into := func(object, members string) string { return object[:len(object)-1] + members + "}" }
	inCard := func(m string) []byte {
		return valid(core.KindGreet).set("body", `{"peer_card":`+into(card, m)+`}`).raw()
	}
	inBody := func(kind core.Kind) func(string) []byte {
		return func(m string) []byte { return valid(kind).set("body", into(valid(kind).values["body"], m)).raw() }
	}
	capabilityNames := strings.Fields("id summary outcome digest version context_needed artifacts_expected execution_outline constraints examples requirements")
	return map[string]object{
		"the envelope": {
			strings.Fields("protocol id workspace_id kind channel surface thread_id direct_id from to work_id reply_to trace_id causation_id mentions ts expires_at body proof ext"),
			func(m string) []byte { return []byte(into(string(valid(core.KindSay).raw()), m)) },
		},
		"say":        {strings.Fields("text intent artifacts"), inBody(core.KindSay)},
		"greet":      {strings.Fields("peer_card summary"), inBody(core.KindGreet)},
		"whois":      {strings.Fields("type query peer_card"), inBody(core.KindWhois)},
		"receipt":    {strings.Fields("for_id status reason_code detail"), inBody(core.KindReceipt)},
		"trace":      {strings.Fields("state message result artifact_refs"), inBody(core.KindTrace)},
		"capability": {[]string{"capability"}, inBody(core.KindCapability)},
		"peer card": {
			strings.Fields("peer_id display_name profiles_supported capabilities artifacts_supported trust_modes_supported ext"), inCard,
		},
		"peer card of a response": {[]string{"peer_id"}, func(m string) []byte {
			return valid(core.KindWhois).set("reply_to", `"q"`).set("body", `{"type":"response","peer_card":`+into(card, m)+`}`).raw()
		}},
		"card ext": {[]string{"compozy.capabilities_brief"}, func(m string) []byte {
			return inCard(`,"ext":{"x":1` + m + `}`)
		}},
		"brief entry": {strings.Fields("id summary"), func(m string) []byte {
			return inCard(`,"ext":{"compozy.capabilities_brief":[{},{"x":1` + m + `}]}`)
		}},
		"capability document": {capabilityNames, func(m string) []byte {
			return valid(core.KindCapability).set("body", `{"capability":`+into(capabilityDoc, m)+`}`).raw()
		}},
		"ext": {strings.Fields("compozy.include compozy.capability_ids compozy.capability_catalog"), func(m string) []byte {
			return valid(core.KindWhois).set("ext", `{"x":1`+m+`}`).raw()
		}},
		"catalogue": {[]string{"capabilities"}, func(m string) []byte {
			return valid(core.KindWhois).set("ext", `{"compozy.capability_catalog":{"x":1`+m+`}}`).raw()
		}},
		"catalogue entry": {capabilityNames, func(m string) []byte {
			return valid(core.KindWhois).set("ext", `{"compozy.capability_catalog":{"capabilities":[1,{"x":1`+m+`}]}}`).raw()
		}},
	}
}

func TestKeysThatDifferInCaseOnlyAreRefused(t *testing.T) {
	for where, object := range namedObjects() {
		for _, name := range object.names {
			t.Run(where+" "+name, func(t *testing.T) {
				upper := strings.ToUpper(name)
				twins := fmt.Sprintf(`,%q:null,%q:null`, upper, strings.ToUpper(name[:1])+name[1:])
				if name == upper {
					t.Fatal("the name has no letters")
				}
				_, rej := core.Parse(object.inside(twins))
				syntax.verify(t, rej)
				if rej != nil && !strings.Contains(rej.Detail, name) {
					t.Errorf("detail %q does not name %s", rej.Detail, name)
				}
				folded := strings.NewReplacer("s", "\u017f", "k", "\u212a").Replace(name)
				if folded != name {
					_, rej = core.Parse(object.inside(fmt.Sprintf(`,%q:null,%q:null`, upper, folded)))
					syntax.verify(t, rej)
				}
			})
		}
	}
}

func TestALoneKeyOfOtherCaseIsUnknown(t *testing.T) {
	for name, raw := range map[string][]byte{
		"trace_id":       valid(core.KindSay).set("Trace_ID", `5`).raw(),
		"reply_to":       valid(core.KindSay).set("REPLY_TO", `[]`).raw(),
		"long s":         valid(core.KindSay).set("expire\u017f_at", `1`).raw(),
		"intent":         valid(core.KindSay).set("body", `{"text":"a","INTENT":5}`).raw(),
		"unknown object": valid(core.KindSay).set("ext", `{"foo":{"id":1,"ID":2}}`).raw(),
		"unknown twins":  valid(core.KindSay).set("foo", `1`).set("Foo", `1`).raw(),
		"other kind's":   valid(core.KindSay).set("body", `{"text":"a","state":1,"State":2}`).raw(),
		"camel case":     valid(core.KindSay).set("threadId", `1`).raw(),
		"escaped":        valid(core.KindSay).set(`Trace\u005fid`, `1`).raw(),
	} {
		t.Run(name, func(t *testing.T) { mustCheck(t, raw) })
	}
	_, rej := check(valid(core.KindSay).drop("id").set("ID", `"m-1"`).raw())
	badField.verify(t, rej)
	_, rej = check(valid(core.KindSay).set(`\u0049D`, `"m-1"`).raw())
	syntax.verify(t, rej)
}

func TestRawIsTheBytesThatCame(t *testing.T) {
	object := "{\r\n \"z\" : 1.10,\"n\":[1e400 , 9007199254740993]," + string(valid(core.KindSay).set("id", `"\u006d-1"`).raw()[1:])
	given := []byte("\n\t" + object + " \r\n")
	e := mustCheck(t, given)
	if string(e.Raw) != object {
		t.Errorf("raw %q", e.Raw)
	}
	if &e.Raw[0] != &given[2] {
		t.Error("raw was copied")
	}
	if grown := append(e.Raw, 'x'); &grown[0] == &e.Raw[0] {
		t.Error("appending to raw writes into the caller's bytes")
	}
	if !bytes.Equal(given, []byte("\n\t"+object+" \r\n")) {
		t.Error("the given bytes were changed")
	}
}
