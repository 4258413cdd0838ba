package core_test

import (
	"slices"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestClosedSets(t *testing.T) {
	check := func(name string, got, want []string) {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	check("kinds", words(core.Kinds()), []string{"greet", "whois", "say", "capability", "receipt", "trace"})
	check("statuses", words(core.ReceiptStatuses()), []string{
		"accepted", "rejected", "duplicate", "expired", "unsupported", "canceled",
	})
	check("states", words(core.WorkStates()), []string{
		"submitted", "working", "needs_input", "completed", "failed", "canceled",
	})
	check("skips", words(core.Skips()), []string{
		"not_live", "not_eligible", "not_addressed", "duplicate", "network_disabled", "depth_exceeded",
		"coalesced", "budget_exhausted", "in_flight",
	})
	check("wakes", words(core.WakeStates()), []string{"queued", "running", "succeeded", "failed", "canceled", "deadline_exceeded"})
	check("usage", words(core.UsageStates()), []string{"reserved", "actual", "usage_unavailable"})
	check("reasons", words(core.ReasonCodes()), []string{
		"malformed", "expired", "duplicate", "unsupported_kind", "unsupported_profile", "verification_failed",
		"not_target", "not_found", "busy", "internal", "invalid_surface", "conversation_not_found",
		"work_closed", "work_container_mismatch", "legacy_field_rejected",
	})
}

func words[S ~string](list []S) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

func TestListsBelongToTheCaller(t *testing.T) {
	core.Kinds()[0], core.ReasonCodes()[0] = "x", "x"
	core.WorkStates()[0], core.ReceiptStatuses()[0] = "x", "x"
	if core.Kinds()[0] != core.KindGreet || core.ReasonCodes()[0] != core.ReasonMalformed ||
		core.WorkStates()[0] != core.WorkSubmitted || core.ReceiptStatuses()[0] != core.ReceiptAccepted {
		t.Error("a list was shared")
	}
}

func TestTerminalStates(t *testing.T) {
	for _, s := range core.WorkStates() {
		want := s == core.WorkCompleted || s == core.WorkFailed || s == core.WorkCanceled
		if s.Terminal() != want {
			t.Errorf("%s terminal: %t", s, s.Terminal())
		}
	}
}

func TestKindsWithAndWithoutAConversation(t *testing.T) {
	for _, k := range core.Kinds() {
		if k.Conversation() == (k == core.KindGreet || k == core.KindWhois) || !k.Valid() {
			t.Errorf("%s: conversation %t, valid %t", k, k.Conversation(), k.Valid())
		}
	}
	for _, k := range []core.Kind{"", "direct", "Say"} {
		if k.Valid() || k.Conversation() {
			t.Errorf("%q is a kind", k)
		}
	}
}
