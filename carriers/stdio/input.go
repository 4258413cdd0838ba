package stdio

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// mostUnread bounds the control lines that wait for an agent to read them, in
// bytes.
const mostUnread = 1 << 20

// input is the standard input of one process: the only place where lines to an
// agent are written, whole and one after the other. Control lines go before
// deliveries, for what they tell of was committed before.
type input struct {
	agent        string
	pipe         *os.File
	writeTimeout time.Duration
	now          func() time.Time
	// wrote is told of each whole line of a delivery, without the lock. It does
	// not block.
	wrote func()

	mu   sync.Mutex
	wake *sync.Cond
	// controls wait to be written; controlBytes is their size.
	controls     [][]byte
	controlBytes int
	// lost counts control lines that were dropped because the agent reads too
	// little.
	lost uint64
	// sends wait to be written, in the order of the calls of Send.
	sends []*send
	// current is what is being written, nil in between.
	current *written
	awaited awaited
	// stalled is true from the time a delivery was given up because the agent does
	// not read, until a line has been written again.
	stalled bool
	// owed counts the envelopes of the agent that are offered and not settled.
	owed int
	// idle is closed when nothing is owed and nothing is to be told; nil unless
	// somebody waits for it.
	idle chan struct{}
	// closed is why nothing is taken any more, nil before.
	closed *core.SendError
	// broken is closed when a write failed: the agent has closed its end, or has
	// just died.
	broken chan struct{}
}

// written is the line that is being written.
type written struct {
	rest []byte
	// begun is true once a byte of it is in the pipe. The lines of a wake are one.
	begun bool
	// send is whose line it is; nil for a control line.
	send *send
}

func newInput(agent string, pipe *os.File, timeout time.Duration, now func() time.Time, wrote func()) *input {
	in := &input{agent: agent, pipe: pipe, writeTimeout: timeout, now: now, wrote: wrote, broken: make(chan struct{})}
	in.wake = sync.NewCond(&in.mu)
	return in
}

// change runs f with the lock held, and afterwards, without it, tells the
// outcomes that f gives.
func (in *input) change(f func() outcomes) {
	in.mu.Lock()
	given := f()
	in.mu.Unlock()
	given.tell()
}

// run writes until the input is closed or the agent takes nothing more. It is
// called once.
func (in *input) run() {
	for {
		line := in.next()
		if line == nil {
			return
		}
		if err := in.write(line); err != nil {
			in.close(errInputClosed(in.agent, err))
			close(in.broken)
			return
		}
	}
}

// next waits for the next line; nil when the input is closed.
func (in *input) next() *written {
	in.mu.Lock()
	defer in.mu.Unlock()
	for {
		switch {
		case in.closed != nil:
			return nil
		case len(in.controls) > 0:
			line := in.controls[0]
			in.controls[0] = nil
			in.controls = in.controls[1:]
			in.controlBytes -= len(line)
			in.current = &written{rest: line}
			return in.current
		case len(in.sends) > 0:
			s := in.sends[0]
			in.sends[0] = nil
			in.sends = in.sends[1:]
			s.state = sendWriting
			in.current = &written{rest: s.line, send: s}
			return in.current
		}
		in.wake.Wait()
	}
}

// write writes the line to its end, however long that takes: half a line would
// spoil the next. Only a line of which no byte is written can be left out.
func (in *input) write(line *written) error {
	for {
		more := false
		in.change(func() (given outcomes) {
			more, given = in.admit(line)
			return given
		})
		if !more {
			return nil
		}
		n, err := in.pipe.Write(line.rest)
		in.change(func() (given outcomes) {
			more, given = in.progress(line, n)
			return given
		})
		switch {
		case !more:
			return nil
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
}

// admit looks at the line right before a write: more is false when it is not to
// be written after all.
func (in *input) admit(line *written) (more bool, given outcomes) {
	if in.closed != nil {
		return false, nil
	}
	_ = in.pipe.SetWriteDeadline(time.Time{}) // It may stand in the past since the last expire.
	s := line.send
	if s == nil || line.begun {
		return true, nil
	}
	if s.late(in.now()) {
		given = given.add(s.finish(core.Ack{}, errLate(in.agent)))
	}
	if s.state == sendOver {
		in.leave()
		return false, given
	}
	if s.explicit {
		in.awaited.put(s)
	}
	return true, nil
}

// progress notes the n bytes that a write came to: more is false when the line
// is finished or left out.
func (in *input) progress(line *written, n int) (more bool, given outcomes) {
	line.rest = line.rest[n:]
	line.begun = line.begun || n > 0
	s := line.send
	if s != nil && line.begun {
		s.begun = true
	}
	if len(line.rest) > 0 || s.unfinished() {
		if s != nil && s.state == sendWriting && s.givenUp != nil {
			given = in.giveUp(line)
		}
		if s != nil && s.state == sendOver && (!line.begun || len(line.rest) == 0) {
			in.leave()
			return false, given
		}
		if len(line.rest) == 0 {
			in.nextPart(line)
		}
		return true, given
	}
	in.stalled = false
	if s != nil {
		given = given.add(in.wrote).add(s.wholeLine(in.now()))
	}
	in.leave()
	return false, given
}

// nextPart goes on to the next message of a wake.
func (in *input) nextPart(line *written) {
	p := line.send.more[0]
	line.send.more = line.send.more[1:]
	line.rest = p.next(in.now())
	if p.send != nil {
		in.awaited.put(p.send)
	}
}

// giveUp ends the send whose line is stuck, and those behind it.
func (in *input) giveUp(line *written) outcomes {
	s := line.send
	why := s.givenUp
	in.noteStall(why)
	if line.begun {
		return outcomes{}.add(s.finish(core.Ack{}, errHalfWritten(in.agent))).also(in.failFrom(0, why))
	}
	return outcomes{}.add(s.finish(core.Ack{}, why)).also(in.failFrom(0, why))
}

// failFrom ends the queued sends from index i on, because one before them was
// given up: were they written before that one is tried again, their order would
// be lost. One that is too late is never tried again and holds up nothing.
func (in *input) failFrom(i int, why *core.SendError) (given outcomes) {
	if why.Code == core.CodeExpired {
		return nil
	}
	for _, s := range in.sends[i:] {
		given = given.add(s.finish(core.Ack{}, errNotReading(in.agent)))
	}
	in.sends = in.sends[:i:i]
	return given
}

func (in *input) noteStall(why *core.SendError) {
	if why.Code == core.CodeUnavailable {
		in.stalled = true
	}
}

// leave ends the work on the current line.
func (in *input) leave() {
	in.current = nil
	in.tellIdle()
}

// put gives the send its place behind those before it. Its outcome comes by
// its done function.
func (in *input) put(ctx context.Context, s *send) {
	in.change(func() outcomes {
		if in.closed != nil {
			return outcomes{}.add(s.finish(core.Ack{}, in.closed))
		}
		s.watch(ctx, in)
		c := in.current
		if c != nil && c.begun && c.send != nil && c.send.state == sendOver && c.send.delivery == s.delivery && !s.patient {
			// The rest of this very line is still to be written, so the line need not
			// be written again.
			s.state = sendWriting
			c.send = s
			if s.explicit {
				in.awaited.put(s)
			}
			return nil
		}
		in.sends = append(in.sends, s)
		in.wake.Signal()
		return nil
	})
}

// expire ends a send whose time is over: why says how, for a send of which
// nothing is written.
func (in *input) expire(s *send, why *core.SendError) {
	in.change(func() outcomes {
		switch s.state {
		case sendWritten:
			return outcomes{}.add(s.finish(core.Ack{}, errUnacknowledged(in.agent, why.Err)))
		case sendWriting:
			s.givenUp = why
			_ = in.pipe.SetWriteDeadline(time.Now()) // Now the writer sees how far it came.
		case sendQueued:
			return in.cutQueue(s, why)
		}
		return nil
	})
}

// stuck ends a send that could not be written in time.
func (in *input) stuck(s *send) {
	why := errNotReading(in.agent)
	if s.late(in.now()) {
		why = errLate(in.agent)
	}
	in.mu.Lock()
	unwritten := s.state == sendQueued || s.state == sendWriting
	in.mu.Unlock()
	if unwritten {
		in.expire(s, why)
	}
}

func (in *input) cutQueue(s *send, why *core.SendError) outcomes {
	for i, queued := range in.sends {
		if queued != s {
			continue
		}
		in.noteStall(why)
		in.sends = append(in.sends[:i:i], in.sends[i+1:]...)
		return outcomes{}.add(s.finish(core.Ack{}, why)).also(in.failFrom(i, why))
	}
	return nil
}

// close closes the agent's standard input and ends, with err, all sends that
// wait: those to be written and those to be acknowledged. It is idempotent.
func (in *input) close(err *core.SendError) {
	in.change(func() (given outcomes) {
		if in.closed != nil {
			return nil
		}
		in.closed = err
		given = given.add(func() { in.pipe.Close() })
		for _, s := range in.sends {
			given = given.add(s.finish(core.Ack{}, err))
		}
		if c := in.current; c != nil && c.send != nil {
			given = given.add(c.send.finish(core.Ack{}, err))
		}
		for _, s := range in.awaited.list {
			given = given.add(s.finish(core.Ack{}, err))
		}
		in.sends, in.controls, in.controlBytes = nil, nil, 0
		in.wake.Broadcast()
		in.tellIdle()
		return given
	})
}
