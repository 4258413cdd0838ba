package http

import (
	"context"
	"errors"
	"io"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/compozy-gateway/gateway/core"
)

// maxAckBody is far above the size of {"position":n}.
const maxAckBody = 4 << 10

// postInboxAck acknowledges the served entries up to a position.
func (s *server) postInboxAck(w nethttp.ResponseWriter, r *request) error {
	at, err := s.pulledPeer(r)
	if err != nil {
		return err
	}
	mediaType, err := bodyType(r.Request)
	if err != nil {
		return err
	}
	if mediaType != typeJSON {
		return newProblem(nethttp.StatusUnsupportedMediaType, "the Content-Type must be "+typeJSON)
	}
	position, err := s.readPosition(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.AcceptTimeout)
	defer cancel()
	acked, err := s.ackThrough(ctx, at, position)
	if err != nil {
		return err
	}
	return writeJSON(w, nethttp.StatusOK, map[string]int{"acked": acked})
}

// readPosition reads {"position":n}.
func (s *server) readPosition(w nethttp.ResponseWriter, r *request) (int64, error) {
	rc := nethttp.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)) // Only the writers of tests have no deadlines.
	raw, err := io.ReadAll(nethttp.MaxBytesReader(w, r.Body, maxAckBody))
	var tooLarge *nethttp.MaxBytesError
	if errors.As(err, &tooLarge) {
		return 0, newProblem(nethttp.StatusRequestEntityTooLarge, "the body is too large")
	}
	if err != nil {
		return 0, bodyError(err)
	}
	_ = rc.SetReadDeadline(time.Time{})
	var body struct {
		Position *int64 `json:"position"`
	}
	// A name that is there twice is an error here, as are others than this one.
	if err := json.Unmarshal(raw, &body, json.RejectUnknownMembers(true)); err != nil || body.Position == nil || *body.Position < 0 {
		return 0, badRequest(`the body must be {"position":n}`)
	}
	return *body.Position, nil
}

// ackThrough acknowledges what was served up to the position.
func (s *server) ackThrough(ctx context.Context, at core.Attachment, position int64) (int, error) {
	ack := core.Ack{Kind: core.AckHTTPCursor, At: s.host.Now(), Detail: "cursor " + strconv.FormatInt(position, 10)}
	return s.backend.Inboxes.AckThrough(ctx, at, position, ack)
}
