package stdio

import (
	"context"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Send implements core.Carrier. The line is written by the agent's own writer,
// so that an agent that does not read delays no other.
func (c *Carrier) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	to := out.Recipient
	a := c.byPeer[seat{to.WorkspaceID, to.Peer}]
	if a == nil || a.cfg.Channel != to.Channel {
		done(core.Ack{}, errNoSuchAgent(to))
		return
	}
	if a.cfg.Launch == LaunchWake {
		done(core.Ack{}, errNotRunning(a.name, "given its messages in wakes only", time.Minute))
		return
	}
	if ctx.Err() != nil {
		done(core.Ack{}, errGivenUp(a.name, context.Cause(ctx)))
		return
	}
	in, err := a.currentInput()
	if err != nil {
		done(core.Ack{}, err)
		return
	}
	in.put(ctx, newSend(a, out, done))
}

// sendState is how far a send has come.
type sendState uint8

const (
	sendQueued sendState = iota
	sendWriting
	// sendWritten: the whole line is written, and the agent's own acknowledgement
	// is awaited.
	sendWritten
	// sendOver: done is called, or is about to be.
	sendOver
)

// send is one delivery on its way to an agent. It is guarded by the lock of the
// input that it was put to.
type send struct {
	agent    string
	delivery core.DeliveryID
	id       string
	// line is our own copy, with its line feed.
	line     []byte
	deadline time.Time
	explicit bool
	// more are the lines of a wake that follow its first one, without a line of
	// somebody else's between them.
	more []*part
	// patient is true for a wake, which waits for the agent until ctx ends.
	patient bool
	done    func(core.Ack, error)

	state sendState
	// begun is true once a byte of the line is in the pipe, whole when all are.
	begun, whole bool
	// givenUp is set when the time is over while the line is being written.
	givenUp *core.SendError
	// unwatch stops the two clocks of watch.
	unwatch func()
}

// part is one message of a wake.
type part struct {
	line     []byte
	deadline time.Time
	// omitted is the line that stands for it once the deadline has passed, late
	// whether it had.
	omitted []byte
	late    bool
	// send is awaited where the agent acknowledges by itself, which it may do before
	// the wake is whole; else nil.
	send *send
}

// next is what is to be written of the part.
func (p *part) next(now time.Time) []byte {
	if !p.deadline.IsZero() && !now.Before(p.deadline) {
		p.late, p.send = true, nil
		return p.omitted
	}
	return p.line
}

func newSend(a *agent, out core.Outbound, done func(core.Ack, error)) *send {
	raw := core.OneLine(out.Envelope.Raw)
	text := make([]byte, 0, len(raw)+1)
	return &send{
		agent:    a.name,
		delivery: out.Delivery,
		id:       out.Envelope.ID,
		line:     append(append(text, raw...), '\n'),
		deadline: out.Deadline,
		explicit: a.cfg.Ack == AckExplicit,
		done:     done,
	}
}

// unfinished reports whether messages of a wake are still to be written.
func (s *send) unfinished() bool { return s != nil && len(s.more) > 0 }

// late reports whether the line must not be written any more.
func (s *send) late(now time.Time) bool {
	return !s.deadline.IsZero() && !now.Before(s.deadline)
}

// watch sees to it that the send ends: with ctx, and when it could not be
// written in time. An acknowledgement by the agent may take as long as ctx.
func (s *send) watch(ctx context.Context, in *input) {
	patience := in.writeTimeout
	if !s.deadline.IsZero() {
		patience = min(patience, max(s.deadline.Sub(in.now()), 0))
	}
	stopTimer := func() bool { return false }
	if !s.patient {
		stopTimer = time.AfterFunc(patience, func() { in.stuck(s) }).Stop
	}
	stop := context.AfterFunc(ctx, func() { in.expire(s, errGivenUp(s.agent, context.Cause(ctx))) })
	s.unwatch = func() {
		stopTimer()
		stop()
	}
}

// wholeLine notes that the line is written. That ends the send, unless the
// agent's own acknowledgement is awaited.
func (s *send) wholeLine(now time.Time) func() {
	s.whole = true
	if !s.explicit {
		return s.finish(core.Ack{Kind: core.AckStdioWrite, At: now, Detail: "agent " + s.agent}, nil)
	}
	if s.state == sendWriting {
		s.state = sendWritten
	}
	return nil
}

// finish ends the send and gives what is to be called, without the lock, to
// tell its outcome; nil when it had ended before.
func (s *send) finish(ack core.Ack, failure *core.SendError) func() {
	if s.state == sendOver {
		return nil
	}
	s.state = sendOver
	s.line = nil
	if s.unwatch != nil {
		s.unwatch()
	}
	done := s.done
	if failure != nil {
		return func() { done(core.Ack{}, failure) }
	}
	return func() { done(ack, nil) }
}

// outcomes are the outcomes of sends, to be told once no lock is held.
type outcomes []func()

func (o outcomes) add(tell func()) outcomes {
	if tell == nil {
		return o
	}
	return append(o, tell)
}

func (o outcomes) also(more outcomes) outcomes { return append(o, more...) }

func (o outcomes) tell() {
	for _, tell := range o {
		tell()
	}
}
