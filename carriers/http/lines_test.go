package http

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func readAll(src io.Reader, limit int, left int64) (lines []string, sizes []int64, err error) {
	l := newLineReader(&timedReader{src: src, left: left, setDeadline: func(time.Time) error { return nil }, came: func() {}}, limit)
	for {
		kept, size, err := l.next()
		if errors.Is(err, io.EOF) {
			return lines, sizes, nil
		}
		if err != nil {
			return lines, sizes, err
		}
		lines, sizes = append(lines, string(kept)), append(sizes, size)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), 10)
	f.Add([]byte("\n\n\nabc"), 2)
	f.Add([]byte(strings.Repeat("x", 40_000)+"\ny"), 50)
	f.Fuzz(func(t *testing.T, body []byte, limit int) {
		limit = max(limit&0xffff, 0)
		lines, sizes, err := readAll(iotest.HalfReader(bytes.NewReader(body)), limit, int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.SplitAfter(body, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d", len(lines), len(want))
		}
		for i, line := range want {
			if sizes[i] != int64(len(line)) || lines[i] != string(line[:min(limit, len(line))]) {
				t.Fatalf("line %d is %q of %d bytes, want %q", i, lines[i], sizes[i], line)
			}
		}
	})
}

func TestABodyThatIsCutOffGivesNoHalfLine(t *testing.T) {
	cut := io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF))
	lines, _, err := readAll(cut, 10, 100)
	if len(lines) != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("lines %q, error %v", lines, err)
	}
}

func TestABodyMayEndAtItsBound(t *testing.T) {
	if lines, _, err := readAll(strings.NewReader("a\nb\n"), 10, 4); len(lines) != 2 || err != nil {
		t.Errorf("lines %q, error %v", lines, err)
	}
	if lines, _, err := readAll(strings.NewReader("a\nb\nc"), 10, 4); len(lines) != 2 || !errors.Is(err, errBodyTooLarge) {
		t.Errorf("lines %q, error %v", lines, err)
	}
}
