package core

import (
	"crypto/sha256"
	"hash"
)

// content computes Envelope.Content while the envelope's members are read. All
// that is hashed stands somewhere in raw, so it is handed on as ranges of raw,
// and ranges that touch become one write.
type content struct {
	hash     hash.Hash
	raw      []byte
	from, to int
	// kept says that a member was kept, so the next one follows a comma.
	kept bool
}

// newContent begins with the opening brace.
func newContent(raw []byte) content {
	return content{hash: sha256.New(), raw: raw, from: 0, to: 1}
}

// keep takes in a member of the envelope.
func (c *content) keep(m *members) {
	if c.kept {
		c.add(m.comma, m.comma+1)
	}
	c.kept = true
	c.add(m.nameStart, m.nameEnd)
	c.add(m.colon, m.colon+1)
	if !m.spaced {
		c.add(m.valueStart, m.valueEnd)
		return
	}
	c.addTokens(m.valueStart, m.valueEnd)
}

// addTokens takes in a range without the white space between its tokens.
func (c *content) addTokens(from, to int) {
	for i := from; i < to; {
		switch {
		case isSpace(c.raw[i]):
			c.add(from, i)
			i = skipSpace(c.raw, i)
			from = i
		case c.raw[i] == '"':
			i = skipString(c.raw, i)
		default:
			i++
		}
	}
	c.add(from, to)
}

func (c *content) add(from, to int) {
	if from == c.to {
		c.to = to
		return
	}
	c.flush()
	c.from, c.to = from, to
}

func (c *content) flush() { c.hash.Write(c.raw[c.from:c.to]) }

// sum closes the object and writes the hash.
func (c *content) sum(into *[sha256.Size]byte) {
	c.add(len(c.raw)-1, len(c.raw))
	c.flush()
	c.hash.Sum(into[:0])
}
