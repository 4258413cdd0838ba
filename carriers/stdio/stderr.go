package stdio

import (
	"context"
	"io"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// mostTail is how much of an agent's standard error is shown, in bytes. A
	// little more is kept, so that no value that is to be hidden is shown in part
	// because its beginning was cut off.
	mostTail = 4 << 10
	mostKept = mostTail + 512
	// leastSecret is the length below which a configured value is taken for no
	// secret: hiding it would make the log unreadable.
	leastSecret = 8
	// saidPerSecond and saidBurst bound how many lines of one process's standard
	// error are logged; the number of the others is.
	saidPerSecond = 10
	saidBurst     = 100
)

// logStderr reads the agent's standard error to its end, whatever is in it, for
// an agent that is not read stands still. It is the agent's log and becomes a part
// of ours, each line by itself and cut where it is long. The end of it is kept for
// the status.
func logStderr(ctx context.Context, a *agent, output io.Reader) {
	lines := newLineReader(io.TeeReader(output, a.stderr), mostTail)
	loud, left := rate.NewLimiter(saidPerSecond, saidBurst), 0
	tellLeft := func() {
		if left > 0 {
			a.log.WarnContext(ctx, "agent says more than is logged", "lines_left_out", left)
			left = 0
		}
	}
	defer tellLeft()
	for {
		l, err := lines.next()
		switch {
		case l.size == 0:
		case loud.Allow():
			tellLeft()
			a.log.InfoContext(ctx, "agent says", "stderr", a.presentable(l.data), "bytes", l.size)
		default:
			left++
		}
		if err != nil {
			return
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) >= mostKept {
		t.data, b = t.data[:0], b[len(b)-mostKept:]
	}
	if over := len(t.data) + len(b) - mostKept; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, b...)
	return n, nil
}

// bytes is a copy of what is kept.
func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.data...)
}

// reset forgets everything.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = nil
}

// censor hides the configured values of an agent's environment in what the
// agent writes.
type censor struct{ hide *strings.Replacer }

func newCensor(cfg AgentConfig) censor {
	var pairs []string
	for _, name := range sortedKeys(cfg.Env) {
		if value := envValue(cfg, name); len(value) >= leastSecret {
			pairs = append(pairs, value, hidden)
		}
	}
	return censor{strings.NewReplacer(pairs...)}
}

// text is the bytes as text without the configured values.
func (c censor) text(data []byte) string {
	return c.hide.Replace(strings.ToValidUTF8(string(data), "\uFFFD"))
}

// ending is the end of the text, at most so many bytes, and no half character.
func ending(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-most:], "")
}
