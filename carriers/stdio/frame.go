package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// readBuffer is how much is read from a pipe at once.
const readBuffer = 64 << 10

// lineReader splits a stream at line feeds before anything looks into the
// lines, so that no line can spoil the next. It holds no more than one line of
// at most max bytes.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), max: max}
}

// line is one line without its line feed.
type line struct {
	// data is the line, or its first bytes where it is longer than the limit. It
	// is the caller's.
	data []byte
	// size is the true length in bytes.
	size int64
}

func (l line) cut() bool { return l.size > int64(len(l.data)) }

// next reads the next line. What stands at the end without a line feed is a
// line too, returned together with the error.
func (l *lineReader) next() (line, error) {
	var out line
	for {
		part, err := l.r.ReadSlice('\n')
		text := bytes.TrimSuffix(part, []byte{'\n'})
		out.size += int64(len(text))
		if room := l.max - len(out.data); room > 0 {
			out.data = append(out.data, text[:min(room, len(text))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return out, err
		}
	}
}

// lineKind says what a line from an agent is.
type lineKind uint8

const (
	lineBlank lineKind = iota
	// lineNoise is neither an envelope nor about the carrier: a banner, a log
	// line.
	lineNoise
	// lineEnvelope is for the intake to judge.
	lineEnvelope
	// lineControl is about the carrier.
	lineControl
)

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// classify tells what a complete line is, by its beginning. It returns the line
// without the white space around it. A byte-order mark before an object is left
// in place, for the intake to refuse.
func classify(data []byte) ([]byte, lineKind, control) {
	data = bytes.Trim(data, " \t\r")
	switch {
	case len(data) == 0:
		return data, lineBlank, control{}
	case bytes.HasPrefix(bytes.TrimPrefix(data, byteOrderMark), []byte{'{'}):
	default:
		return data, lineNoise, control{}
	}
	if c, ok := parseControl(data); ok {
		return data, lineControl, c
	}
	return data, lineEnvelope, control{}
}

// ackLine and nackLine are what an agent is told of its own envelopes.
type (
	ackLine struct {
		Ack       string `json:"ack"`
		Seq       *int64 `json:"seq"`
		Duplicate bool   `json:"duplicate,omitempty"`
		Parked    bool   `json:"parked,omitempty"`
	}
	nackLine struct {
		Nack       *string `json:"nack"`
		ReasonCode string  `json:"reason_code"`
		Detail     string  `json:"detail,omitempty"`
	}
	// wakeLine begins a wake, and omittedLine stands for a message that is too
	// long for it or came too late. What the messages say is not to be trusted.
	wakeLine struct {
		Wake      string `json:"wake"`
		Deadline  int64  `json:"deadline"`
		Messages  int    `json:"messages"`
		Untrusted bool   `json:"untrusted"`
	}
	omittedLine struct {
		Omitted string `json:"omitted"`
		Bytes   int    `json:"bytes"`
		// Expired is true where its time was over before it could be written.
		Expired bool `json:"expired,omitempty"`
	}
)

// controlLine writes {"carrier":body} and a line feed. Text that is not UTF-8
// is mended, and what could break a line is escaped.
func controlLine(body any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	frame := struct {
		Carrier any `json:"carrier"`
	}{body}
	if err := enc.Encode(frame); err != nil {
		return nil // Strings, integers and booleans always encode.
	}
	return b.Bytes()
}
