package core_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestSayBody(t *testing.T) {
	for body, want := range map[string]refusal{
		`{"text":"a"}`:    ok,
		`{"text":" a\n"}`: ok,
		`{"text":"a","intent":null,"artifacts":null}`: ok,
		`{"text":"a","artifacts":[1,{"x":[]},"y"]}`:   ok,
		`{"text":"a","foo":{"text":1}}`:               ok,
		`{"\u0074ext":"a"}`:                           ok,
		`{}`:                                          badBody,
		`{"Text":"a"}`:                                badBody,
		`{"text":null}`:                               badBody,
		`{"text":""}`:                                 badBody,
		`{"text":" \n\t\u00a0\u2003"}`:                badBody,
		`{"text":1}`:                                  badBody,
		`{"text":["a"]}`:                              badBody,
		`{"text":"a","intent":1}`:                     badBody,
		`{"text":"a","artifacts":{}}`:                 badBody,
		`{"text":"a","artifacts":"x"}`:                badBody,
	} {
		t.Run(body, func(t *testing.T) {
			_, rej := check(valid(core.KindSay).set("body", body).raw())
			want.verify(t, rej)
		})
	}
	e := mustCheck(t, valid(core.KindSay).set("body", `{"text":" \"a\"\n\ud83d\ude00 "}`).raw())
	if e.Text != " \"a\"\n😀 " {
		t.Errorf("text %q", e.Text)
	}
}

func TestReceiptBodyForEveryStatus(t *testing.T) {
	type rule struct{ without, with refusal }
	rules := map[core.ReceiptStatus]rule{
		core.ReceiptAccepted:    {ok, badBody},
		core.ReceiptRejected:    {badBody, ok},
		core.ReceiptDuplicate:   {badBody, ok},
		core.ReceiptExpired:     {badBody, ok},
		core.ReceiptUnsupported: {badBody, ok},
		core.ReceiptCanceled:    {ok, ok},
	}
	if len(rules) != len(core.ReceiptStatuses()) {
		t.Fatal("not every status has a rule")
	}
	for _, status := range core.ReceiptStatuses() {
		head := `{"for_id":"m-0","status":"` + string(status) + `"`
		for tail, want := range map[string]refusal{
			`}`:                           rules[status].without,
			`,"reason_code":null}`:        rules[status].without,
			`,"reason_code":"busy"}`:      rules[status].with,
			`,"reason_code":"somebodys"}`: rules[status].with,
			`,"reason_code":"` + strings.Repeat("é", 32) + `"}`:  rules[status].with,
			`,"reason_code":"` + strings.Repeat("é", 32) + `a"}`: badBody,
			`,"reason_code":""}`:                    badBody,
			`,"reason_code":1}`:                     badBody,
			`,"reason_code":"busy","detail":"x"}`:   rules[status].with,
			`,"reason_code":"busy","detail":null}`:  rules[status].with,
			`,"reason_code":"busy","detail":["x"]}`: badBody,
		} {
			t.Run(string(status)+" "+tail, func(t *testing.T) {
				e, rej := check(valid(core.KindReceipt).set("body", head+tail).raw())
				want.verify(t, rej)
				if rej == nil && (e.Receipt.Status != status || e.Receipt.ForID != "m-0") {
					t.Errorf("receipt %+v", e.Receipt)
				}
			})
		}
	}
	for _, body := range []string{
		`{}`, `{"status":"accepted"}`, `{"for_id":"","status":"accepted"}`, `{"for_id":null,"status":"accepted"}`,
		`{"for_id":1,"status":"accepted"}`, `{"for_id":"a"}`, `{"for_id":"a","status":null}`, `{"for_id":"a","status":1}`,
		`{"for_id":"a","status":""}`, `{"for_id":"a","status":"Accepted"}`, `{"for_id":"a","status":"busy","reason_code":"busy"}`,
	} {
		t.Run(body, func(t *testing.T) {
			_, rej := check(valid(core.KindReceipt).set("body", body).raw())
			badBody.verify(t, rej)
		})
	}
	for _, code := range core.ReasonCodes() {
		body := `{"for_id":"a","status":"rejected","detail":"d","reason_code":"` + string(code) + `"}`
		e := mustCheck(t, valid(core.KindReceipt).set("body", body).raw())
		if *e.Receipt != (core.Receipt{ForID: "a", Status: core.ReceiptRejected, ReasonCode: string(code), Detail: "d"}) {
			t.Errorf("receipt %+v", e.Receipt)
		}
	}
}

func TestTraceBodyForEveryState(t *testing.T) {
	for _, state := range core.WorkStates() {
		t.Run(string(state), func(t *testing.T) {
			e := mustCheck(t, valid(core.KindTrace).set("body", `{"state":"`+string(state)+`"}`).raw())
			if e.Trace.State != state {
				t.Errorf("state %q", e.Trace.State)
			}
		})
	}
	for body, want := range map[string]refusal{
		`{"state":"working","message":null,"result":null,"artifact_refs":null}`:   ok,
		`{"state":"working","message":"","result":{"a":[]},"artifact_refs":[{}]}`: ok,
		`{}`:                                     badBody,
		`{"state":null}`:                         badBody,
		`{"state":""}`:                           badBody,
		`{"state":"Working"}`:                    badBody,
		`{"state":"done"}`:                       badBody,
		`{"state":1}`:                            badBody,
		`{"state":"working","message":1}`:        badBody,
		`{"state":"working","result":[]}`:        badBody,
		`{"state":"working","result":"x"}`:       badBody,
		`{"state":"working","artifact_refs":{}}`: badBody,
	} {
		t.Run(body, func(t *testing.T) {
			_, rej := check(valid(core.KindTrace).set("body", body).raw())
			want.verify(t, rej)
		})
	}
}

func TestPeerCard(t *testing.T) {
	lists := []string{"profiles_supported", "capabilities", "artifacts_supported", "trust_modes_supported"}
	draftCard := func() *draft {
		d := (&draft{values: map[string]string{}}).set("peer_id", `"planner.sess-1"`)
		for _, l := range lists {
			d.set(l, `[]`)
		}
		return d
	}
	cases := map[string]struct {
		card *draft
		want refusal
	}{
		"least":               {draftCard(), ok},
		"null optionals":      {draftCard().set("display_name", "null").set("ext", "null"), ok},
		"ext":                 {draftCard().set("ext", `{"compozy.capabilities_brief":[{"id":"a","summary":"b"}]}`), ok},
		"unknown member":      {draftCard().set("foo", "1"), ok},
		"no peer_id":          {draftCard().drop("peer_id"), badBody},
		"another's peer_id":   {draftCard().set("peer_id", `"other"`), badBody},
		"peer_id no string":   {draftCard().set("peer_id", `1`), badBody},
		"display_name number": {draftCard().set("display_name", `1`), badBody},
		"ext array":           {draftCard().set("ext", `[]`), badBody},
	}
	for _, l := range lists {
		cases["no "+l] = struct {
			card *draft
			want refusal
		}{draftCard().drop(l), badBody}
		for value, want := range map[string]refusal{
			`["a","b"]`: ok, `[""]`: ok, `null`: badBody, `"a"`: badBody, `[1]`: badBody, `[null]`: badBody, `{}`: badBody,
		} {
			cases[l+" "+value] = struct {
				card *draft
				want refusal
			}{draftCard().set(l, value), want}
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := string(c.card.raw())
			_, rej := check(valid(core.KindGreet).set("body", `{"peer_card":`+raw+`}`).raw())
			c.want.verify(t, rej)
			_, rej = check(valid(core.KindWhois).set("reply_to", `"q"`).set("to", `"asker"`).
				set("body", `{"type":"response","peer_card":`+raw+`}`).raw())
			c.want.verify(t, rej)
		})
	}
}

func TestGreetBody(t *testing.T) {
	for body, want := range map[string]refusal{
		`{"peer_card":` + card + `}`:                ok,
		`{"peer_card":` + card + `,"summary":null}`: ok,
		`{"peer_card":` + card + `,"summary":1}`:    badBody,
		`{}`:                                        badBody,
		`{"peer_card":null}`:                        badBody,
		`{"peer_card":[]}`:                          badBody,
		`{"peer_card":"x"}`:                         badBody,
	} {
		_, rej := check(valid(core.KindGreet).set("body", body).raw())
		want.verify(t, rej)
	}
	e := mustCheck(t, valid(core.KindGreet).raw())
	if c := e.Card; c.PeerID != "planner.sess-1" || c.DisplayName != "Planner" || string(c.Raw) != card ||
		!slices.Equal(c.Capabilities, []string{"compare-readings"}) ||
		!slices.Equal(c.ProfilesSupported, []string{"compozy-network/v0"}) ||
		!slices.Equal(c.ArtifactsSupported, []string{"capability"}) ||
		!slices.Equal(c.TrustModes, []string{"none"}) {
		t.Errorf("card %+v", c)
	}
}

func TestWhoisBody(t *testing.T) {
	for name, c := range map[string]struct {
		draft *draft
		want  refusal
	}{
		"request":                   {valid(core.KindWhois).set("body", `{"type":"request"}`), ok},
		"request with a null card":  {valid(core.KindWhois).set("body", `{"type":"request","peer_card":null,"query":null}`), ok},
		"request with a card":       {valid(core.KindWhois).set("body", `{"type":"request","peer_card":`+card+`}`), badBody},
		"request with an odd query": {valid(core.KindWhois).set("body", `{"type":"request","query":1}`), badBody},
		"no type":                   {valid(core.KindWhois).set("body", `{"query":"x"}`), badBody},
		"null type":                 {valid(core.KindWhois).set("body", `{"type":null}`), badBody},
		"other type":                {valid(core.KindWhois).set("body", `{"type":"Request"}`), badBody},
		"type no string":            {valid(core.KindWhois).set("body", `{"type":1}`), badBody},
		"response": {
			valid(core.KindWhois).set("reply_to", `"q"`).set("body", `{"type":"response","peer_card":`+card+`}`), ok,
		},
		"response without reply_to": {
			valid(core.KindWhois).set("body", `{"type":"response","peer_card":`+card+`}`), badBody,
		},
		"response without a card": {
			valid(core.KindWhois).set("reply_to", `"q"`).set("body", `{"type":"response"}`), badBody,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, rej := check(c.draft.raw())
			c.want.verify(t, rej)
		})
	}
	e := mustCheck(t, valid(core.KindWhois).raw())
	if *e.Whois != (core.Whois{Type: core.WhoisRequest, Query: "reviewer"}) || e.Card != nil {
		t.Errorf("whois %+v", e.Whois)
	}
}

func TestQueryMatchesWhatTheCardSays(t *testing.T) {
	c := mustCheck(t, valid(core.KindGreet).raw()).Card
	for query, want := range map[string]bool{
		"": true, "planner.sess-1": true, "Planner": true, "compare-readings": true,
		"compozy-network/v0": true, "capability": true, "none": true,
		"planner": false, "compare": false, " ": false, "Compare-Readings": false,
	} {
		if got := c.Matches(query); got != want {
			t.Errorf("query %q: %t", query, got)
		}
	}
	nameless := core.PeerCard{PeerID: "a"}
	if nameless.Matches("b") {
		t.Error("a card without a name matches a query")
	}
}

func TestCatalogueQuery(t *testing.T) {
	for ext, want := range map[string]struct {
		ids   []string
		asked bool
	}{
		`null`: {nil, false},
		`{}`:   {nil, false},
		`{"compozy.include":["capability_catalog"]}`:                                    {nil, true},
		`{"compozy.include":["x",1,"capability_catalog"]}`:                              {nil, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":["b","a"]}`: {[]string{"b", "a"}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":[]}`:        {[]string{}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":null}`:      {nil, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":"a"}`:       {[]string{}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":7}`:         {[]string{}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":{"a":"b"}}`: {[]string{}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":[1,["a"]]}`: {[]string{}, true},
		`{"compozy.include":["capability_catalog"],"compozy.capability_ids":[1,"a"]}`:   {[]string{"a"}, true},
		`{"compozy.include":["x"],"compozy.capability_ids":["a"]}`:                      {nil, false},
		`{"compozy.include":"capability_catalog"}`:                                      {nil, false},
		`{"compozy.capability_ids":["a"]}`:                                              {nil, false},
	} {
		e := mustCheck(t, valid(core.KindWhois).set("ext", ext).raw())
		ids, asked := e.CatalogueQuery()
		if asked != want.asked || !slices.Equal(ids, want.ids) || (ids == nil) != (want.ids == nil) {
			t.Errorf("%s: %v %t", ext, ids, asked)
		}
	}
}
