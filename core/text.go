package core

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions in this file read single values of JSON text that the strict
// pass of Parse has found valid.

func isString(v []byte) bool { return v[0] == '"' }
func isObject(v []byte) bool { return v[0] == '{' }
func isArray(v []byte) bool  { return v[0] == '[' }
func isNull(v []byte) bool   { return v[0] == 'n' }

// isEmptyString reports whether v is a string without any character.
func isEmptyString(v []byte) bool { return len(v) == 2 && v[0] == '"' }

// unescaped gives the text of a string: a part of it where nothing is escaped,
// else a copy.
func unescaped(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	// The strict pass has refused whatever could be wrong here.
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

// stringOf gives the text of a string, and "" for nil.
func stringOf(v []byte) string {
	if v == nil {
		return ""
	}
	return string(unescaped(v))
}

// texts copies the texts of strings. All of them share one allocation, and
// their lists another.
type texts struct {
	copied  strings.Builder
	entries []string
}

// makeRoom makes room for the texts in the values. No text is longer than it is
// spelled.
func (t *texts) makeRoom(values [][]byte) {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	t.copied.Grow(n)
}

// stringOf gives the text of a string, and "" for nil.
func (t *texts) stringOf(v []byte) string {
	if v == nil {
		return ""
	}
	from := t.copied.Len()
	t.copied.Write(unescaped(v))
	return t.copied.String()[from:]
}

// stringsOf gives the texts of an array of strings, and false where it is
// anything else. The list of an empty array is empty, not nil.
func (t *texts) stringsOf(v []byte) ([]string, bool) {
	if !isArray(v) {
		return nil, false
	}
	if t.entries == nil {
		t.entries = make([]string, 0, fewEntries)
	}
	from := len(t.entries)
	for e := (elements{buf: v}); e.next(); {
		if !isString(e.value()) {
			return nil, false
		}
		t.entries = append(t.entries, t.stringOf(e.value()))
	}
	return slices.Clip(t.entries[from:]), true
}

// fewEntries is for how many entries of lists there is room at first.
const fewEntries = 4
