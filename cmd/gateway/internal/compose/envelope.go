package compose

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Envelope is an envelope to be written, with its fields in the order in which
// docs/protocol.md lists them. The absent recipient and proof are written as
// null, as the protocol recommends to senders; other empty fields are left out.
type Envelope struct {
	Protocol    string       `json:"protocol"`
	ID          string       `json:"id"`
	WorkspaceID string       `json:"workspace_id"`
	Kind        core.Kind    `json:"kind"`
	Channel     string       `json:"channel"`
	Surface     core.Surface `json:"surface,omitempty"`
	ThreadID    string       `json:"thread_id,omitempty"`
	DirectID    string       `json:"direct_id,omitempty"`
	From        string       `json:"from"`
	To          *string      `json:"to"`
	Mentions    []string     `json:"mentions,omitempty"`
	WorkID      string       `json:"work_id,omitempty"`
	ReplyTo     string       `json:"reply_to,omitempty"`
	TraceID     string       `json:"trace_id,omitempty"`
	CausationID string       `json:"causation_id,omitempty"`
	TS          int64        `json:"ts"`
	ExpiresAt   int64        `json:"expires_at,omitempty"`
	Body        any          `json:"body"`
	Proof       *string      `json:"proof"`
}

// SayBody is the body of a say.
type SayBody struct {
	Text      string `json:"text"`
	Intent    string `json:"intent,omitempty"`
	Artifacts []any  `json:"artifacts,omitempty"`
}

// Stamp fills in the protocol, the time of sending and, where there is none, a
// new id. A lifetime above 0 becomes the time at which the envelope expires.
func (e *Envelope) Stamp(now time.Time, lifetime time.Duration) {
	e.Protocol, e.TS = core.Protocol, now.Unix()
	if e.ID == "" {
		e.ID = newID()
	}
	if lifetime > 0 {
		e.ExpiresAt = now.Add(lifetime).Unix()
	}
}

// Address sets the recipient; an empty one is nobody in particular.
func (e *Envelope) Address(to string) {
	e.To = nil
	if to != "" {
		e.To = &to
	}
}

// InThread puts the envelope into a public thread.
func (e *Envelope) InThread(id string) {
	e.Surface, e.ThreadID, e.DirectID = core.SurfaceThread, id, ""
}

// InDirectRoom puts the envelope into a direct room.
func (e *Envelope) InDirectRoom(id string) {
	e.Surface, e.ThreadID, e.DirectID = core.SurfaceDirect, "", id
}

// JSON writes the envelope on one line. It fails when the body cannot be
// written.
func (e *Envelope) JSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("write the envelope: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// newID is a random UUID (version 4).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails: it ends the process first.
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
