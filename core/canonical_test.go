package core_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// canonicalForm is a capability with all members of its digest, in their order.
type canonicalForm struct {
	ID                string   `json:"id"`
	Summary           string   `json:"summary"`
	Outcome           string   `json:"outcome"`
	Version           string   `json:"version,omitempty"`
	ContextNeeded     []string `json:"context_needed,omitempty"`
	ArtifactsExpected []string `json:"artifacts_expected,omitempty"`
	ExecutionOutline  []string `json:"execution_outline,omitempty"`
	Constraints       []string `json:"constraints,omitempty"`
	Examples          []string `json:"examples,omitempty"`
	Requirements      []string `json:"requirements,omitempty"`
}

// sameDigest holds that the digest of the form is the hash of what encoding/json
// writes.
func sameDigest(t *testing.T, form canonicalForm) {
	t.Helper()
	raw, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	want := "sha256:" + hex.EncodeToString(sum[:])
	if got, err := core.CapabilityDigest(raw); err != nil || got != want {
		t.Errorf("%.200s: %s, %v, want %s", raw, got, err, want)
	}
}

func TestDigestIsThatOfWhatEncodingJSONWrites(t *testing.T) {
	least := canonicalForm{ID: "a", Summary: "s", Outcome: "o"}
	full := canonicalForm{
		ID: "a", Summary: "s", Outcome: "o", Version: "1", ContextNeeded: []string{"c"}, ArtifactsExpected: []string{"d", "e"},
		ExecutionOutline: []string{"f"}, Constraints: []string{"g"}, Examples: []string{"h", "h"}, Requirements: []string{"i", "j"},
	}
	version, list := least, least
	version.Version, list.Examples = "1", []string{"h"}
	long := full
	long.Outcome = strings.Repeat("A long outcome. ", 1000) + "."
	for name, form := range map[string]canonicalForm{
		"least": least, "full": full, "a version": version, "a list": list, "long": long,
	} {
		t.Run(name, func(t *testing.T) { sameDigest(t, form) })
	}
}

// Texts are looked at in words of eight bytes, so a character may stand
// anywhere in one.
func TestDigestSpellsCharactersAsEncodingJSONDoes(t *testing.T) {
	const runes, batch, word = 0x3000, 0x100, 8
	for first := rune(0); first < runes; first += batch {
		form := canonicalForm{ID: "a", Summary: "s", Outcome: "o"}
		for r := first; r < first+batch; r++ {
			for before := range word {
				form.Examples = append(form.Examples, strings.Repeat("x", before+1)+string(r)+strings.Repeat("y", word))
			}
		}
		sameDigest(t, form)
	}
}
