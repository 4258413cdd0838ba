package core

import (
	"encoding/json"
	"time"
)

// Parse reads an envelope.
func Parse(raw []byte) (*Envelope, *Rejection) {
	var w struct {
		Protocol    string          `json:"protocol"`
		ID          string          `json:"id"`
		WorkspaceID string          `json:"workspace_id"`
		Kind        Kind            `json:"kind"`
		Channel     string          `json:"channel"`
		Surface     Surface         `json:"surface"`
		ThreadID    string          `json:"thread_id"`
		DirectID    string          `json:"direct_id"`
		From        string          `json:"from"`
		To          string          `json:"to"`
		Mentions    []string        `json:"mentions"`
		WorkID      string          `json:"work_id"`
		ReplyTo     string          `json:"reply_to"`
		TraceID     string          `json:"trace_id"`
		CausationID string          `json:"causation_id"`
		TS          int64           `json:"ts"`
		ExpiresAt   *int64          `json:"expires_at"`
		Body        json.RawMessage `json:"body"`
		Ext         json.RawMessage `json:"ext"`
		Proof       json.RawMessage `json:"proof"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, &Rejection{Step: StepParse, Reason: ReasonMalformed, Detail: "not a JSON object"}
	}
	e := &Envelope{Protocol: w.Protocol, ID: w.ID, WorkspaceID: w.WorkspaceID, Kind: w.Kind, Channel: w.Channel,
		Surface: w.Surface, ThreadID: w.ThreadID, DirectID: w.DirectID, From: w.From, To: w.To, Mentions: w.Mentions,
		WorkID: w.WorkID, ReplyTo: w.ReplyTo, TraceID: w.TraceID, CausationID: w.CausationID, TS: w.TS,
		Body: w.Body, Ext: w.Ext, Proof: w.Proof, Raw: raw}
	if w.ExpiresAt != nil {
		e.ExpiresAt, e.HasExpiry = *w.ExpiresAt, true
	}
	return e, nil
}

// CheckFresh is step 3.
func (e *Envelope) CheckFresh(now time.Time, p FreshnessPolicy) *Rejection { return nil }

// CheckShape is step 4.
func (e *Envelope) CheckShape() *Rejection { return nil }

// CheckAddress is step 4.
func (e *Envelope) CheckAddress(a *Address) *Rejection { return nil }

// CheckBody is step 5.
func (e *Envelope) CheckBody() *Rejection { return nil }

// Validate is steps 3 to 5.
func (e *Envelope) Validate(now time.Time, p FreshnessPolicy, a *Address) *Rejection { return nil }

// CheckRoomAddress is step 9.
func CheckRoomAddress(a *Address, recipient string) *Rejection { return nil }

// KnownUntil is how long the key must stay known.
func (e *Envelope) KnownUntil(p FreshnessPolicy) time.Time { return time.Unix(e.TS, 0).Add(p.MaxReplayAge) }

// FreshUntil is the first instant at which the envelope is not fresh any more.
func (e *Envelope) FreshUntil(p FreshnessPolicy) time.Time { return time.Unix(e.TS, 0).Add(p.MaxReplayAge) }

// RouteToken is the last part of a peer address.
func RouteToken(peer string) string { return peer }

// DirectRoomID derives a room id.
func DirectRoomID(workspace, channel, a, b string) string { return workspace + channel + a + b }

// ValidPeerID reports whether s is a peer id.
func ValidPeerID(s string) bool { return s != "" }

// ValidChannel reports whether s is a channel.
func ValidChannel(s string) bool { return s != "" }

// ValidWorkspaceID reports whether s is a workspace id.
func ValidWorkspaceID(s string) bool { return s != "" }

// ValidThreadID reports whether s is a thread id.
func ValidThreadID(s string) bool { return s != "" }

// ValidDirectID reports whether s is a direct-room id.
func ValidDirectID(s string) bool { return s != "" }

// Work is a unit of work.
type Work struct {
	Channel   string
	Container Container
	Initiator string
	Target    string
	State     WorkState
}

// OpenWork opens a unit of work.
func OpenWork(e *Envelope) Work {
	return Work{Channel: e.Channel, Container: e.Container(), Initiator: e.From, Target: e.To, State: WorkSubmitted}
}

// Apply gives the state after e.
func (w Work) Apply(e *Envelope) (WorkState, *Rejection) { return w.State, nil }

// BuildReceipt builds the gateway's rejection receipt.
func BuildReceipt(gatewayPeer string, refused *Envelope, rej *Rejection, now time.Time) ([]byte, bool) {
	return nil, false
}

// CapabilityDigest is the digest of a capability document.
func CapabilityDigest(raw []byte) (string, error) { return "", ErrNotFound }

// OneLine replaces CR and LF by spaces.
func OneLine(raw []byte) []byte { return raw }

// Kinds lists the kinds.
func Kinds() []Kind { return nil }

// ReceiptStatuses lists the statuses.
func ReceiptStatuses() []ReceiptStatus { return nil }

// WorkStates lists the states.
func WorkStates() []WorkState { return nil }

// ReasonCodes lists the reason codes.
func ReasonCodes() []Reason { return nil }
