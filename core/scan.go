package core

import "bytes"

// The readers in this file walk JSON text that the strict pass of Parse has
// found valid, so they only find where things begin and end; on text that is
// not valid they would panic or stop early.

// members reads the members of an object one after the other:
//
//	for m := (members{buf: object}); m.next(); {
type members struct {
	buf []byte
	// pos is the brace or comma from which the next member is sought.
	pos int

	// The offsets in buf of the member's name, with its quotes, of the colon and
	// of the value.
	nameStart, nameEnd   int
	colon                int
	valueStart, valueEnd int
	// comma is the offset of the comma before the member, 0 for the first one.
	comma int
	// depth is how many levels the value nests: 0 for a scalar.
	depth int
	// spaced says that white space stands between tokens inside the value.
	spaced bool
}

func (m *members) next() bool {
	if m.buf[m.pos] == '}' {
		return false
	}
	m.comma = m.pos
	m.nameStart = skipSpace(m.buf, m.pos+1)
	if m.buf[m.nameStart] == '}' {
		return false
	}
	m.nameEnd = skipString(m.buf, m.nameStart)
	m.colon = skipSpace(m.buf, m.nameEnd)
	m.valueStart = skipSpace(m.buf, m.colon+1)
	m.valueEnd, m.depth, m.spaced = skipValue(m.buf, m.valueStart)
	m.pos = skipSpace(m.buf, m.valueEnd)
	return true
}

// name is the member's name without escapes.
func (m *members) name() []byte { return unescaped(m.buf[m.nameStart:m.nameEnd]) }

// value is the member's value as it is spelled.
func (m *members) value() []byte { return m.buf[m.valueStart:m.valueEnd:m.valueEnd] }

// elements reads the elements of an array one after the other.
type elements struct {
	buf []byte
	pos int

	start, end int
}

func (e *elements) next() bool {
	if e.buf[e.pos] == ']' {
		return false
	}
	e.start = skipSpace(e.buf, e.pos+1)
	if e.buf[e.start] == ']' {
		return false
	}
	e.end, _, _ = skipValue(e.buf, e.start)
	e.pos = skipSpace(e.buf, e.end)
	return true
}

// value is the element as it is spelled.
func (e *elements) value() []byte { return e.buf[e.start:e.end:e.end] }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(b []byte, i int) int {
	for isSpace(b[i]) {
		i++
	}
	return i
}

// skipString gives the offset behind the string that begins at b[i].
func skipString(b []byte, i int) int {
	i++
	for {
		quote := i + bytes.IndexByte(b[i:], '"')
		slashes := 0
		for b[quote-1-slashes] == '\\' {
			slashes++
		}
		i = quote + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue gives the offset behind the value that begins at b[i], how many
// levels of objects and arrays it has, and whether white space stands between
// its tokens.
func skipValue(b []byte, i int) (end, depth int, spaced bool) {
	switch b[i] {
	case '"':
		return skipString(b, i), 0, false
	case '{', '[':
	default:
		return skipScalar(b, i), 0, false
	}
	open := 0
	for {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			open++
			depth = max(depth, open)
		case '}', ']':
			open--
			if open == 0 {
				return i + 1, depth, spaced
			}
		case ' ', '\n', '\t', '\r':
			spaced = true
		}
		i++
	}
}

// skipScalar gives the offset behind a number or literal.
func skipScalar(b []byte, i int) int {
	for {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
}
