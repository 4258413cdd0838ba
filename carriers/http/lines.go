package http

import (
	"bufio"
	"errors"
	"io"
	"time"
)

// errBodyTooLarge says that an NDJSON body went on behind its limit.
var errBodyTooLarge = errors.New("the body is longer than max_body")

// lineReader cuts a body into lines, bounded in memory and in time. A line that
// is too long is read to its end, but only its beginning is kept.
type lineReader struct {
	buf *bufio.Reader
	src *timedReader
	// limit is the longest line that is kept whole.
	limit int
	// line counts from 1, blank lines included.
	line int
}

func newLineReader(src *timedReader, limit int) *lineReader {
	return &lineReader{buf: bufio.NewReaderSize(src, 32<<10), src: src, limit: limit}
}

// next gives the next line without its line end, and its true size. The last
// line may lack its line end; then a body that was cut off is an error, so that
// half a line never looks like one. At the end the error is io.EOF.
func (l *lineReader) next() (kept []byte, size int64, err error) {
	l.src.restart()
	l.line++
	for {
		piece, err := l.buf.ReadSlice('\n')
		size += int64(len(piece))
		if room := l.limit - len(kept); room > 0 {
			kept = append(kept, piece[:min(room, len(piece))]...)
		}
		switch {
		case err == nil:
			return kept, size, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && size > 0:
			return kept, size, nil
		default:
			return nil, size, err
		}
	}
}

// timedReader gives each line its time, and the whole its size.
type timedReader struct {
	src io.Reader
	// left is how much may still come.
	left    int64
	perLine time.Duration
	// setDeadline sets the deadline of the reads to come; its error ends reading.
	setDeadline func(time.Time) error
	// came is called for each piece that has come.
	came  func()
	timed bool
}

// restart begins the time of a line.
func (t *timedReader) restart() { t.timed = false }

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (int, error) {
	if !t.timed {
		if err := t.setDeadline(time.Now().Add(t.perLine)); err != nil {
			return 0, err
		}
		t.timed = true
	}
	if t.left > 0 {
		n, err := t.src.Read(p[:min(int64(len(p)), t.left)])
		t.left -= int64(n)
		if n > 0 {
			t.came()
		}
		return n, err
	}
	// At the limit, a body that ends is told from one that goes on.
	n, err := t.src.Read(p[:1])
	if n > 0 {
		return 0, errBodyTooLarge
	}
	return 0, err
}
