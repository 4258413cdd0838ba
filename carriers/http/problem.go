package http

import (
	"bytes"
	"encoding/json"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// The media types that the interface speaks.
const (
	typeJSON    = "application/json"
	typeNDJSON  = "application/x-ndjson"
	typeProblem = "application/problem+json"
	typeSSE     = "text/event-stream"
)

// retrySoon is what a client is told to wait where nothing better is known.
const retrySoon = 2 * time.Second

// reasonType begins the type of a problem that is a refusal of the protocol; the
// reason code follows. Every other problem is what its status says, and its type
// is about:blank.
const reasonType = "urn:compozy-network:v0:reason:"

// problem is an answer that is not 2xx, as RFC 9457 has it. It is an error, and
// handlers return it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// ReasonCode is the protocol's own code, on refusals of the protocol alone.
	ReasonCode core.Reason `json:"reason_code,omitempty"`
	// ID is the refused envelope's id, where it could be read.
	ID string `json:"id,omitempty"`
	// RetryAfter is in seconds; it is the header of that name, too.
	RetryAfter int64 `json:"retry_after,omitempty"`
	// Carriers says what is not ready.
	Carriers []carrierState `json:"carriers,omitempty"`

	// allow lists the methods that a 405 names.
	allow string
	// hangUp closes the connection, whose request was not read to its end.
	hangUp bool
}

func (p *problem) Error() string {
	return strconv.Itoa(p.Status) + " " + p.Title + ": " + p.Detail
}

// newProblem says what the status says, and why.
func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: nethttp.StatusText(status), Status: status, Detail: detail}
}

func badRequest(detail string) *problem { return newProblem(nethttp.StatusBadRequest, detail) }
func forbidden(detail string) *problem  { return newProblem(nethttp.StatusForbidden, detail) }

// unavailable asks the client to come again.
func unavailable(detail string, after time.Duration) *problem {
	return newProblem(nethttp.StatusServiceUnavailable, detail).later(after)
}

// later sets Retry-After, rounded up to whole seconds and at least one.
func (p *problem) later(after time.Duration) *problem {
	p.RetryAfter = max(1, int64((after+time.Second-1)/time.Second))
	return p
}

// refusal is a refusal of the protocol.
func refusal(rej *core.Rejection, id string) *problem {
	p := newProblem(refusalStatus(rej), rej.Detail)
	p.Type = reasonType + string(rej.Reason)
	p.ReasonCode = rej.Reason
	p.ID = id
	if p.Status == nethttp.StatusTooManyRequests {
		return p.later(retrySoon)
	}
	return p
}

// refusalStatus is the status of a refusal.
func refusalStatus(rej *core.Rejection) int {
	if rej.TooLarge {
		return nethttp.StatusRequestEntityTooLarge
	}
	switch rej.Reason {
	case core.ReasonNotTarget:
		return nethttp.StatusForbidden
	case core.ReasonDuplicate, core.ReasonWorkClosed, core.ReasonWorkContainerMismatch:
		return nethttp.StatusConflict
	case core.ReasonBusy:
		return nethttp.StatusTooManyRequests
	}
	return nethttp.StatusUnprocessableEntity
}

// write sends the problem as the whole answer.
func (p *problem) write(w nethttp.ResponseWriter) error {
	h := w.Header()
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	if p.Status == nethttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="gateway"`)
	}
	if p.Status == nethttp.StatusUnsupportedMediaType {
		h.Set("Accept-Encoding", "identity")
	}
	if p.hangUp {
		h.Set("Connection", "close")
	}
	h.Set("Cache-Control", "no-store")
	return writeBody(w, p.Status, typeProblem, encode(p))
}

// writeJSON answers with one JSON document.
func writeJSON(w nethttp.ResponseWriter, status int, v any) error {
	return writeBody(w, status, typeJSON, encode(v))
}

func writeBody(w nethttp.ResponseWriter, status int, mediaType string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// encode writes one of this package's own documents, which always can be
// written, as one line with its line end.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("http: encode an answer: " + err.Error())
	}
	return b.Bytes()
}
