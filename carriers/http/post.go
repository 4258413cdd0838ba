package http

import (
	"bytes"
	"io"
	nethttp "net/http"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// postEnvelopes takes one envelope, or as NDJSON many.
func (s *server) postEnvelopes(w nethttp.ResponseWriter, r *request) error {
	mediaType, err := bodyType(r.Request)
	if err != nil {
		return err
	}
	if mediaType == typeNDJSON {
		return s.postBatch(w, r)
	}
	in, whole, err := s.readEnvelope(w, r)
	if err != nil {
		return err
	}
	if !whole {
		w.Header().Set("Connection", "close")
	}
	status, body, err := s.take(r, in)
	if err != nil {
		return err
	}
	return writeJSON(w, status, body)
}

// take offers the frame and waits for its settlement.
func (s *server) take(r *request, in core.Inbound) (int, taken, error) {
	t, err := s.offer(r.alive, in, s.cfg.AcceptTimeout)
	if err != nil {
		return 0, taken{}, err
	}
	st, err := t.wait(r.alive)
	if err != nil {
		return 0, taken{}, err
	}
	return settlementAnswer(st)
}

// readEnvelope reads the body as one frame. A body that is too large is not
// read further than the limit (with a Content-Length not at all), and whole is
// false; it is a frame all the same, whose refusal is to be recorded.
func (s *server) readEnvelope(w nethttp.ResponseWriter, r *request) (in core.Inbound, whole bool, err error) {
	limit := int64(s.host.MaxEnvelopeBytes)
	if r.ContentLength > limit+spaceAllowance {
		return r.inbound(nil, r.ContentLength), false, nil
	}
	rc := nethttp.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)) // Only the writers of tests have no deadlines.
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	n, err := body.ReadFrom(io.LimitReader(r.Body, limit+spaceAllowance+1))
	if err != nil {
		return core.Inbound{}, false, bodyError(err)
	}
	_ = rc.SetReadDeadline(time.Time{})
	if n > limit+spaceAllowance {
		return r.inbound(bytes.Clone(body.Bytes()[:keptPrefix]), n), false, nil
	}
	return r.inbound(trimSpace(body.Bytes()), 0), true, nil
}
