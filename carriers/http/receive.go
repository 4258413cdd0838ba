package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	nethttp "net/http"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// spaceAllowance is how much white space may stand around an envelope: it is
	// not part of it, so it does not count against the envelope's size.
	spaceAllowance = 4 << 10
	// keptPrefix is how much of a frame that is too large is offered with its
	// size, so that the log of refusals tells such frames apart.
	keptPrefix = 4 << 10
)

// errHungUp says that the client went away in the middle of its request. There
// is nobody to answer.
var errHungUp = errors.New("the client hung up")

// errNoReason says that the gateway refused a frame without saying why, which is
// a fault of its own.
var errNoReason = errors.New("a frame was rejected without a reason")

// ticket is a frame's place in the order, and the way to its settlement.
type ticket struct {
	settled chan core.Settlement
	// deadline is when the client is told to come again.
	deadline time.Time
}

// offer gives a frame its place, and waits for that at most as long as patience
// says. A frame that has its place is settled whatever becomes of the request.
func (s *server) offer(alive context.Context, in core.Inbound, patience time.Duration) (*ticket, error) {
	s.received()
	t := &ticket{settled: make(chan core.Settlement, 1), deadline: time.Now().Add(patience)}
	ctx, cancel := context.WithDeadline(alive, t.deadline)
	defer cancel()
	err := s.in.Offer(ctx, in, func(st core.Settlement) { t.settled <- st })
	if err != nil {
		return nil, err
	}
	return t, nil
}

// wait gives the settlement, or an error once the client has waited enough. The
// frame may be committed after that all the same: the client sends it again and
// learns that it is a duplicate.
func (t *ticket) wait(alive context.Context) (core.Settlement, error) {
	select {
	case st := <-t.settled:
		return st, nil
	default:
	}
	timer := time.NewTimer(time.Until(t.deadline))
	defer timer.Stop()
	select {
	case st := <-t.settled:
		return st, nil
	case <-timer.C:
		return core.Settlement{}, context.DeadlineExceeded
	case <-alive.Done():
		return core.Settlement{}, alive.Err()
	}
}

// taken is the answer for an envelope that is durably taken.
type taken struct {
	ID string `json:"id"`
	// Seq is null while the message is parked.
	Seq         *int64    `json:"seq"`
	CommittedAt time.Time `json:"committed_at"`
	Duplicate   bool      `json:"duplicate"`
	Parked      bool      `json:"parked"`
}

// settlementAnswer gives the status and the members of the answer, or the
// problem that the settlement is.
func settlementAnswer(st core.Settlement) (int, taken, error) {
	switch st.Verdict {
	case core.VerdictCommitted:
	case core.VerdictRejected:
		if st.Rejection == nil {
			return 0, taken{}, errNoReason
		}
		return 0, taken{}, refusal(st.Rejection, st.ID)
	default:
		return 0, taken{}, unavailable("the gateway cannot take it now", max(st.RetryAfter, retrySoon))
	}
	// Milliseconds are what is kept, and so what a duplicate is told later.
	t := taken{ID: st.ID, CommittedAt: st.CommittedAt.UTC().Truncate(time.Millisecond), Duplicate: st.Duplicate || st.Echo, Parked: st.Parked}
	if !st.Parked {
		t.Seq = &st.Seq
	}
	if t.Duplicate {
		return nethttp.StatusOK, t, nil
	}
	return nethttp.StatusAccepted, t, nil
}

// inbound is a frame of this request.
func (r *request) inbound(payload []byte, size int64) core.Inbound {
	return core.Inbound{Payload: payload, Size: size, Arrival: core.ArrivalIngress, Principal: r.caller.principal()}
}

// trimSpace takes away the white space around a JSON text.
func trimSpace(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

// bodyType checks what is said of the body, and gives its media type. A page in
// a browser cannot say application/json without asking first.
func bodyType(r *nethttp.Request) (string, error) {
	unsupported := func(detail string) error { return newProblem(nethttp.StatusUnsupportedMediaType, detail) }
	if len(r.Header.Values("Content-Type")) > 1 {
		return "", unsupported("the Content-Type is there twice")
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || (mediaType != typeJSON && mediaType != typeNDJSON) {
		return "", unsupported("the Content-Type must be " + typeJSON + " or " + typeNDJSON)
	}
	if charset, set := params["charset"]; set && !strings.EqualFold(charset, "utf-8") {
		return "", unsupported("the charset must be utf-8")
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if c := strings.TrimSpace(coding); c != "" && !strings.EqualFold(c, "identity") {
			return "", unsupported("the body must not be encoded")
		}
	}
	return mediaType, nil
}

// bodyError says why a body could not be read.
func bodyError(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		p := newProblem(nethttp.StatusRequestTimeout, "the body did not come in time")
		p.hangUp = true
		return p
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errHungUp
	}
	p := badRequest("the body cannot be read")
	p.hangUp = true
	return p
}
