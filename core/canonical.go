package core

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// append appends the document as encoding/json writes it.
func (c *canonical) append(form []byte) []byte {
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
