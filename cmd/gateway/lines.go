package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLineBytes bounds what one line of input may take in memory. It is far
// above what any gateway takes, so that the gateway is the one to refuse.
const maxLineBytes = 32 << 20

// errLineTooLong says that a line was skipped to its end.
var errLineTooLong = fmt.Errorf("line is longer than %d bytes", maxLineBytes)

// lineReader reads lines of any length up to a bound. A longer line is skipped
// to its end with constant memory, and reading goes on behind it.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: maxLineBytes}
}

// next returns the next line without its line feed, and a carriage return
// before that. The last line needs no line feed. It returns errLineTooLong for
// a line that was skipped and io.EOF at the end. The line is the caller's.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	tooLong, any := false, false
	for {
		part, err := l.r.ReadSlice('\n')
		any = any || len(part) > 0
		if len(line)+len(part) > l.max+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && !any:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, errLineTooLong
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		return bytes.TrimSuffix(line, []byte("\r")), nil
	}
}
