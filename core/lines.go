package core

import "bytes"

// OneLine gives the JSON text with CR and LF replaced by spaces, for carriers
// that frame by lines. In valid JSON both can stand between tokens only, so the
// meaning and the length stay the same. The slice is raw itself where nothing
// had to be replaced, else a copy.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	line := bytes.Clone(raw)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}
