package core

import (
	"bytes"

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
	return appendUnescaped(nil, quoted)
}

// appendUnescaped appends the text of a string.
func appendUnescaped(dst, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(dst, quoted[1:len(quoted)-1]...)
	}
	// The strict pass has refused whatever could be wrong here.
	dst, _ = jsontext.AppendUnquote(dst, quoted)
	return dst
}

// stringOf gives the text of a string, and "" for nil.
func stringOf(v []byte) string {
	if v == nil {
		return ""
	}
	return string(unescaped(v))
}

// stringsOf gives the texts of an array of strings, and false where it is
// anything else. The list of an empty array is empty, not nil.
func stringsOf(v []byte) ([]string, bool) {
	if !isArray(v) {
		return nil, false
	}
	n := 0
	for e := (elements{buf: v}); e.next(); n++ {
		if !isString(e.value()) {
			return nil, false
		}
	}
	// The texts share one copy of the array, all but those with escapes.
	list, text := make([]string, 0, n), string(v)
	for e := (elements{buf: v}); e.next(); {
		if bytes.IndexByte(e.value(), '\\') < 0 {
			list = append(list, text[e.start+1:e.end-1])
		} else {
			list = append(list, stringOf(e.value()))
		}
	}
	return list, true
}
