package core

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// canonical is a capability as its digest sees it (section 2 of
// docs/protocol.md): these members in this order, written as encoding/json
// writes them.
type canonical struct {
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

// canonical gives the document with white space trimmed, blank entries dropped
// and requirements sorted. Its lists may be those of the document.
func (c *Capability) canonical() canonical {
	requirements := trimmed(c.Requirements)
	if !slices.IsSorted(requirements) {
		requirements = slices.Sorted(slices.Values(requirements))
	}
	return canonical{
		ID:                strings.TrimSpace(c.ID),
		Summary:           strings.TrimSpace(c.Summary),
		Outcome:           strings.TrimSpace(c.Outcome),
		Version:           strings.TrimSpace(c.Version),
		ContextNeeded:     trimmed(c.ContextNeeded),
		ArtifactsExpected: trimmed(c.ArtifactsExpected),
		ExecutionOutline:  trimmed(c.ExecutionOutline),
		Constraints:       trimmed(c.Constraints),
		Examples:          trimmed(c.Examples),
		Requirements:      requirements,
	}
}

// trimmed gives the entries without white space around them, and without those
// that are blank: the list itself where that changes nothing, else a new one.
func trimmed(list []string) []string {
	changes := func(s string) bool { return s == "" || len(strings.TrimSpace(s)) != len(s) }
	if !slices.ContainsFunc(list, changes) {
		return list
	}
	kept := make([]string, 0, len(list))
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// appendTo appends the document as encoding/json writes it. It is written by
// hand because a digest is computed for each capability that comes in.
func (c *canonical) appendTo(form []byte) []byte {
	form = appendText(append(form, `{"id":`...), c.ID)
	form = appendText(append(form, `,"summary":`...), c.Summary)
	form = appendText(append(form, `,"outcome":`...), c.Outcome)
	if c.Version != "" {
		form = appendText(append(form, `,"version":`...), c.Version)
	}
	form = appendList(form, `,"context_needed":`, c.ContextNeeded)
	form = appendList(form, `,"artifacts_expected":`, c.ArtifactsExpected)
	form = appendList(form, `,"execution_outline":`, c.ExecutionOutline)
	form = appendList(form, `,"constraints":`, c.Constraints)
	form = appendList(form, `,"examples":`, c.Examples)
	form = appendList(form, `,"requirements":`, c.Requirements)
	return append(form, '}')
}

// appendList appends a member that is left out where its list is empty.
func appendList(form []byte, name string, list []string) []byte {
	if len(list) == 0 {
		return form
	}
	form = append(form, name...)
	for i, s := range list {
		before := byte(',')
		if i == 0 {
			before = '['
		}
		form = appendText(append(form, before), s)
	}
	return append(form, ']')
}

func appendText(form []byte, s string) []byte {
	if plain(s) {
		form = append(form, '"')
		form = append(form, s...)
		return append(form, '"')
	}
	// A string cannot fail to encode.
	quoted, _ := json.Marshal(s)
	return append(form, quoted...)
}

// plain reports whether encoding/json writes s as it is, between quotes.
func plain(s string) bool {
	for len(s) >= 8 && plainWord(binary.LittleEndian.Uint64([]byte(s[:8]))) {
		s = s[8:]
	}
	for i := range len(s) {
		switch s[i] {
		case '"', '\\', '<', '>', '&':
			return false
		case "\u2028"[0]:
			if strings.HasPrefix(s[i:], "\u2028") || strings.HasPrefix(s[i:], "\u2029") {
				return false
			}
		default:
			if s[i] < ' ' {
				return false
			}
		}
	}
	return utf8.ValidString(s)
}

// plainWord reports whether the eight bytes of the word are ASCII that
// encoding/json writes as it is. The highest bit of each byte says whether
// something is wrong with it; a borrow can raise that of a byte above one that
// is wrong already, which changes nothing.
func plainWord(w uint64) bool {
	const ones = 0x0101010101010101
	zeros := func(w uint64) uint64 { return (w - ones) &^ w }
	wrong := w | (w - ones*' ') |
		zeros(w^ones*'"') | zeros(w^ones*'\\') | zeros(w^ones*'<') | zeros(w^ones*'>') | zeros(w^ones*'&')
	return wrong&(ones<<7) == 0
}
