package core

import (
	"strings"
	"testing"
	"time"
)

func TestACatalogueEntryLeavesOutWhatIsEmpty(t *testing.T) {
	peer := hosted(false)
	peer.Catalogue = []Capability{
		{ID: "bare", Summary: "S.", Outcome: "O.", Examples: []string{}, Constraints: []string{" "}},
		{ID: "full", Summary: "S.", Outcome: "O.", ExecutionOutline: []string{"second", "first"}, Requirements: []string{"b", "a"}},
	}
	raw, err := peer.Answer(whois(t, "bot", "", `{"compozy.include":["capability_catalog"]}`), time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	bare, full := peer.Catalogue[0].digest(), peer.Catalogue[1].digest()
	want := `"compozy.capability_catalog":{"capabilities":[` +
		`{"id":"bare","summary":"S.","outcome":"O.","digest":"` + bare + `"},` +
		`{"id":"full","summary":"S.","outcome":"O.","execution_outline":["second","first"],"requirements":["a","b"],"digest":"` + full + `"}]}`
	if !strings.Contains(string(raw), want) {
		t.Fatalf("answer\n%s\nwant in it\n%s", raw, want)
	}
}

// Whatever the gateway says in an envelope of its own, it says that it has no
// proof, and a greet that it has no recipient.
func TestTheGatewaysOwnEnvelopesSayWhatTheyLack(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	greet, err := hosted(true).Greet("g1", now)
	if err != nil || !strings.Contains(string(greet), `"to":null`) || !strings.Contains(string(greet), `"proof":null`) {
		t.Errorf("greet %s, %v", greet, err)
	}
	answer, err := hosted(true).Answer(whois(t, "bot", "", "null"), now)
	if err != nil || !strings.Contains(string(answer), `"proof":null`) {
		t.Errorf("answer %s, %v", answer, err)
	}
	refused := valid(t, []byte(`{"protocol":"compozy-network/v0","id":"m","workspace_id":"ws","kind":"say","channel":"ops","surface":"thread",`+
		`"thread_id":"thread_one","from":"ann","to":"bob","work_id":"w","ts":1800000000,"body":{"text":"x"}}`), nil)
	receipt, ok := BuildReceipt("gateway.local", refused, &Rejection{Reason: ReasonBusy}, now)
	if !ok || !strings.Contains(string(receipt), `"proof":null`) {
		t.Errorf("receipt %s", receipt)
	}
}
