package stdio

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

type settlementCase struct {
	name       string
	settlement core.Settlement
	// want is empty where nothing is told.
	want string
}

func settlementCases() []settlementCase {
	refused := func(id, detail string) core.Settlement {
		return core.Settlement{
			Verdict: core.VerdictRejected, ID: id,
			Rejection: &core.Rejection{Reason: core.ReasonMalformed, Detail: detail},
		}
	}
	return []settlementCase{
		{"a commit", core.Settlement{Verdict: core.VerdictCommitted, ID: "a", Seq: 7}, `{"carrier":{"ack":"a","seq":7}}`},
		{"a duplicate", core.Settlement{Verdict: core.VerdictCommitted, ID: "a", Seq: 7, Duplicate: true}, `{"carrier":{"ack":"a","seq":7,"duplicate":true}}`},
		{"parking", core.Settlement{Verdict: core.VerdictCommitted, ID: "a", Parked: true}, `{"carrier":{"ack":"a","seq":null,"parked":true}}`},
		{"a parked duplicate", core.Settlement{Verdict: core.VerdictCommitted, ID: "a", Parked: true, Duplicate: true}, `{"carrier":{"ack":"a","seq":null,"duplicate":true,"parked":true}}`},
		{"an echo", core.Settlement{Verdict: core.VerdictCommitted, ID: "a", Echo: true}, ""},
		{"the zero verdict", core.Settlement{ID: "a", Seq: 7}, ""},
		{"a refusal", refused("a", "body.text is empty"), `{"carrier":{"nack":"a","reason_code":"malformed","detail":"body.text is empty"}}`},
		{"a refusal without id", refused("", "not a JSON object"), `{"carrier":{"nack":null,"reason_code":"malformed","detail":"not a JSON object"}}`},
		{"a refusal of a long id", refused(strings.Repeat("x", 257), "id"), `{"carrier":{"nack":null,"reason_code":"malformed","detail":"id"}}`},
		{"a refusal that says nothing", core.Settlement{Verdict: core.VerdictRejected, ID: "a"}, `{"carrier":{"nack":"a","reason_code":"internal"}}`},
		{"odd text", refused("<a>\"\n", "b\r\nc\u2028d\xff"), `{"carrier":{"nack":"<a>\"\n","reason_code":"malformed","detail":"b\r\nc\u2028d` + `\ufffd` + `"}}`},
		{"a retry", core.Settlement{Verdict: core.VerdictRetry, ID: "a", RetryAfter: 1500 * time.Millisecond}, `{"carrier":{"nack":"a","reason_code":"busy","detail":"nothing was kept: send it again in 1.5s"}}`},
	}
}

func TestSettlementLines(t *testing.T) {
	for _, c := range settlementCases() {
		t.Run(c.name, func(t *testing.T) {
			got := string(settlementLine(c.settlement))
			if c.want == "" && got == "" {
				return
			}
			if want := c.want + "\n"; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if !json.Valid([]byte(got)) || strings.Count(got, "\n") != 1 {
				t.Errorf("not one line of JSON: %q", got)
			}
		})
	}
}

func TestDetailIsBounded(t *testing.T) {
	s := core.Settlement{Verdict: core.VerdictRejected, Rejection: &core.Rejection{Detail: strings.Repeat("ž", 10_000)}}
	if got := settlementLine(s); len(got) > 1000 || !json.Valid(got) || strings.Contains(string(got), `\ufffd`) {
		t.Errorf("a long detail became %d bytes: %s", len(got), got)
	}
}
