package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	nethttp "net/http"
	"sync"
	"time"
)

const (
	// batchWindow is how many lines of one body may be on their way: read, and
	// not yet settled.
	batchWindow = 4096
	// batchWrite is how many bytes of answers are written at once.
	batchWrite = 16 << 10
	// batchBackoff bounds how long TCP may pause between two tries to hand over what
	// a client has had no room for (RFC 6298, section 2.5, and Linux).
	batchBackoff = 2 * time.Minute
	// batchPatience is how long a line waits for its place where the line before
	// it has waited in vain.
	batchPatience = 250 * time.Millisecond
)

// pendingLine is one line of a body whose answer has its place already.
type pendingLine struct {
	line   int
	ticket *ticket
	// failure is the answer where there is no ticket.
	failure error
}

// The two shapes of a line's answer: what a single answer has, and the line.
type (
	lineTaken struct {
		Line   int `json:"line"`
		Status int `json:"status"`
		taken
	}
	lineProblem struct {
		Line int `json:"line"`
		*problem
	}
)

// postBatch takes one envelope a line and answers each in order, as it settles:
// many are on their way at the same time. Blank lines are no frames; they count
// for the numbers of the lines, and are not answered. Answers that the client
// does not take yet are spooled, within bounds, while it still sends.
func (s *server) postBatch(w nethttp.ResponseWriter, r *request) error {
	rc := nethttp.NewResponseController(w)
	if err := rc.EnableFullDuplex(); err != nil {
		return err
	}
	w.Header().Set("Content-Type", typeNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(nethttp.StatusOK)

	// broken is done when answers cannot be written any more.
	broken, breakOff := context.WithCancel(r.alive)
	defer breakOff()
	interrupt := func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) }
	defer context.AfterFunc(s.closing, interrupt)()
	defer context.AfterFunc(broken, interrupt)()
	defer context.AfterFunc(r.caller.revocation(), interrupt)()

	began := time.Now()
	extend := func() { s.extendAnswers(w, began) }
	pending := make(chan pendingLine, batchWindow)
	answers := newSpool(&s.spooled)
	var writeErr error
	var tasks sync.WaitGroup
	tasks.Go(func() { s.answerLines(r, pending, answers) })
	tasks.Go(func() {
		if writeErr = s.writeAnswers(w, extend, answers); writeErr != nil {
			breakOff()
		}
		answers.abandon()
	})
	s.readLines(broken, r, w, extend, pending)
	close(pending)
	tasks.Wait()
	if writeErr != nil {
		return errHungUp
	}
	return nil
}

// readLines offers line after line until the body ends. As long as the client
// sends, it need not take answers yet: each piece of its body gives the answer
// that it may be keeping waiting its time anew.
func (s *server) readLines(broken context.Context, r *request, w nethttp.ResponseWriter, extend func(), pending chan<- pendingLine) {
	rc := nethttp.NewResponseController(w)
	limit := s.host.MaxEnvelopeBytes + spaceAllowance
	revocation := r.caller.revocation()
	lines := newLineReader(&timedReader{
		src:     r.Body,
		left:    s.cfg.MaxBody,
		perLine: s.cfg.BodyTimeout,
		setDeadline: func(t time.Time) error {
			if s.closing.Err() != nil || broken.Err() != nil || revocation.Err() != nil {
				return errStopReading
			}
			return rc.SetReadDeadline(t)
		},
		came: extend,
	}, limit)
	patience := s.cfg.AcceptTimeout
	for {
		raw, size, err := lines.next()
		if err == nil {
			err = revocation.Err()
		}
		if err != nil {
			if p := s.lastLine(r, err); p != nil {
				pending <- pendingLine{line: lines.line, failure: p}
			}
			return
		}
		payload := trimSpace(raw)
		if len(payload) == 0 && size <= int64(limit) {
			continue
		}
		in := r.inbound(payload, 0)
		if size > int64(limit) {
			in = r.inbound(bytes.Clone(raw[:keptPrefix]), size)
		}
		t, err := s.offer(r.alive, in, patience)
		patience = s.cfg.AcceptTimeout
		if err != nil {
			patience = min(patience, batchPatience)
		}
		pending <- pendingLine{line: lines.line, ticket: t, failure: err}
	}
}

var errStopReading = errors.New("reading stops here")

// lastLine is the answer for the line at which reading ended; nil at a good end,
// and where there is nobody to read it.
func (s *server) lastLine(r *request, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	case errors.Is(err, errBodyTooLarge):
		return newProblem(nethttp.StatusRequestEntityTooLarge, errBodyTooLarge.Error())
	case s.closing.Err() != nil:
		return unavailable("the gateway is stopping", retrySoon)
	case r.caller.revocation().Err() != nil:
		return newProblem(nethttp.StatusUnauthorized, "the bearer token was revoked")
	}
	return bodyError(err)
}

// answerLines spools the answers of the lines in order, as they settle.
func (s *server) answerLines(r *request, pending <-chan pendingLine, answers *spool) {
	defer answers.finish()
	for l := range pending {
		if !answers.add(encode(s.lineAnswer(r, l))) {
			for range pending { // What is offered is settled; nobody is told.
			}
		}
	}
}

// writeAnswers writes what is spooled until it is complete. Answers are held
// back only while more of them are ready.
func (s *server) writeAnswers(w nethttp.ResponseWriter, extend func(), answers *spool) error {
	rc := nethttp.NewResponseController(w)
	piece := make([]byte, batchWrite)
	extend()
	if err := rc.Flush(); err != nil {
		return err
	}
	for {
		n, more := answers.take(piece)
		if n == 0 {
			return nil
		}
		extend()
		if _, err := w.Write(piece[:n]); err != nil {
			return err
		}
		if more {
			continue
		}
		if err := rc.Flush(); err != nil {
			return err
		}
	}
}

// extendAnswers gives the next write of answers its time: as long as the client
// has been sending by now, where that is more. For where it has taken nothing
// meanwhile, TCP may have backed off, and hand on no sooner what it begins to read.
func (s *server) extendAnswers(w nethttp.ResponseWriter, began time.Time) {
	patience := max(s.cfg.WriteTimeout, min(time.Since(began), batchBackoff))
	_ = nethttp.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // Only the writers of tests have no deadlines.
}

// lineAnswer waits for the line's settlement.
func (s *server) lineAnswer(r *request, l pendingLine) any {
	err := l.failure
	if l.ticket != nil {
		st, waitErr := l.ticket.wait(r.alive)
		if err = waitErr; err == nil {
			status, body, answerErr := settlementAnswer(st)
			if answerErr == nil {
				return lineTaken{Line: l.line, Status: status, taken: body}
			}
			err = answerErr
		}
	}
	p, known := asProblem(err)
	if !known {
		s.host.Logger.Error("line failed", "line", l.line, "error", err)
	}
	return lineProblem{Line: l.line, problem: p}
}
