package http

import (
	"context"
	"mime"
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// getInbox gives what an attached peer receives: a page at once, or the next
// entries as they come, by long poll or as server-sent events. Opening an inbox
// attaches the peer, and asking for what lies behind an entry that was served
// acknowledges it.
func (s *server) getInbox(w nethttp.ResponseWriter, r *request) error {
	if r.Method == nethttp.MethodHead {
		return methodNotAllowed(nethttp.MethodGet)
	}
	at, err := s.pulledPeer(r)
	if err != nil {
		return err
	}
	wait, err := r.wait()
	if err != nil {
		return err
	}
	limit, err := r.limit()
	if err != nil {
		return err
	}
	position, _, unknown, err := r.resume()
	if err != nil {
		return err
	}
	if unknown {
		return badRequest("Last-Event-ID is not a position of this inbox")
	}
	leave, err := s.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	p, err := s.openInbox(r, at, position)
	if err != nil {
		return err
	}
	ctx, cancel := s.untilClosing(r)
	defer cancel()
	if acceptsEvents(r.Request) {
		return s.streamInbox(ctx, w, p)
	}
	entries, err := p.next(ctx, limit, wait)
	if err != nil {
		return err
	}
	return writeBody(w, nethttp.StatusOK, typeJSON, inboxPage(entries, p.position))
}

// openInbox attaches the peer and acknowledges what its cursor has passed. A
// cursor behind which nothing can stand, because no inbox ever came so far, would
// starve its reader: it is given what was never served, and then the real end.
func (s *server) openInbox(r *request, at core.Attachment, position int64) (*poll, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.AcceptTimeout)
	defer cancel()
	if err := s.in.Attach(ctx, at); err != nil {
		return nil, err
	}
	if position == 0 {
		return &poll{s: s, at: at}, nil
	}
	// Asked for before reading: what comes meanwhile stands behind it.
	last, err := s.backend.Inboxes.LastPosition(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.ackThrough(ctx, at, position); err != nil {
		return nil, err
	}
	if position > last {
		return &poll{s: s, at: at, lost: true, cursor: position, end: last}, nil
	}
	return &poll{s: s, at: at, position: position}, nil
}

// poll reads one inbox.
type poll struct {
	s  *server
	at core.Attachment
	// position is the last entry that was served.
	position int64
	// lost is true while the reader's cursor is one that no inbox ever gave; end
	// is the real one at that moment.
	lost        bool
	cursor, end int64
}

// next gives the next entries, recorded as served, and waits for them. After
// the wait there may be none.
func (p *poll) next(ctx context.Context, limit int, wait time.Duration) ([]core.InboxEntry, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	woken := false
	for {
		committed := p.s.backend.Reader.Committed()
		entries, err := p.page(ctx, limit)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		if woken {
			pause(ctx, quietPause)
		}
		select {
		case <-committed:
			woken = true
		case <-end.C:
			return nil, nil
		case <-ctx.Done():
			// The gateway stops, or nobody listens any more: an empty page is true.
			return nil, nil
		}
	}
}

// page reads up to limit entries, in small reads and up to the page budget, and
// records them as served before anybody sees them: an acknowledgement that comes
// back at once finds them served.
func (p *poll) page(ctx context.Context, limit int) ([]core.InboxEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, p.s.cfg.ReadTimeout)
	defer cancel()
	var entries []core.InboxEntry
	position, used, size := p.position, 0, newReadSize()
	for len(entries) < limit && used < pageBudget {
		want := min(limit-len(entries), size.limit)
		more, err := p.s.backend.Inboxes.Inbox(ctx, p.at, position, want)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			used += len(e.Envelope)
			position = e.Position
		}
		entries = append(entries, more...)
		size.learn(len(entries), used)
		if len(more) < want {
			break
		}
	}
	if len(entries) == 0 {
		p.position = max(p.position, p.end)
		return nil, nil
	}
	if err := p.s.backend.Inboxes.Served(ctx, p.at, position); err != nil {
		return nil, err
	}
	p.position = position
	return entries, nil
}

// streamInbox writes entries as events until the reader or the gateway ends. The
// id of an event is its position: a reader that reconnects acknowledges by it.
func (s *server) streamInbox(ctx context.Context, w nethttp.ResponseWriter, p *poll) error {
	es, stop, err := s.startEvents(w)
	defer stop()
	if err != nil {
		return errHungUp
	}
	for ctx.Err() == nil {
		entries, err := p.nextOf(ctx, es)
		for i := 0; err == nil && i < len(entries); i++ {
			err = es.write(envelopeEvent(entries[i].Position, entries[i].Envelope))
		}
		if err == nil {
			err = es.flushOrBeat()
		}
		if err != nil {
			return s.endOfStream(ctx, err)
		}
	}
	return nil
}

// nextOf gives the next entries for a stream. A reader whose cursor was lost is
// told first where its inbox goes on.
func (p *poll) nextOf(ctx context.Context, es *eventStream) ([]core.InboxEntry, error) {
	if !p.lost {
		return p.next(ctx, defaultLimit, p.s.cfg.Heartbeat)
	}
	p.lost = false
	entries, err := p.page(ctx, defaultLimit)
	if err != nil {
		return nil, err
	}
	goesOn := p.position
	if len(entries) > 0 {
		goesOn = entries[0].Position - 1
	}
	return entries, es.gap(p.cursor, goesOn)
}

// inboxPage writes entries around their envelopes, whose bytes stay as they
// came.
func inboxPage(entries []core.InboxEntry, next int64) []byte {
	body := []byte(`{"entries":[`)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"position":`...)
		body = strconv.AppendInt(body, e.Position, 10)
		body = append(body, `,"seq":`...)
		body = strconv.AppendInt(body, e.Seq, 10)
		body = append(body, `,"envelope":`...)
		body = append(body, e.Envelope...)
		body = append(body, '}')
	}
	body = append(body, `],"next":`...)
	body = strconv.AppendInt(body, next, 10)
	return append(body, '}', '\n')
}

// acceptsEvents reports whether the client asks for server-sent events.
func acceptsEvents(r *nethttp.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			if mediaType, _, err := mime.ParseMediaType(part); err == nil && mediaType == typeSSE {
				return true
			}
		}
	}
	return false
}
