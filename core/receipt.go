package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDetailBytes is the length of the longest detail of the gateway's receipts.
const maxDetailBytes = 200

// rejectionReceipt is the envelope of the gateway's own receipt.
type rejectionReceipt struct {
	Protocol    string               `json:"protocol"`
	ID          string               `json:"id"`
	WorkspaceID string               `json:"workspace_id"`
	Kind        Kind                 `json:"kind"`
	Channel     string               `json:"channel"`
	Surface     Surface              `json:"surface"`
	ThreadID    string               `json:"thread_id"`
	From        string               `json:"from"`
	To          string               `json:"to"`
	WorkID      string               `json:"work_id"`
	ReplyTo     string               `json:"reply_to"`
	TraceID     string               `json:"trace_id,omitempty"`
	CausationID string               `json:"causation_id"`
	TS          int64                `json:"ts"`
	Body        rejectionReceiptBody `json:"body"`
	Proof       *struct{}            `json:"proof"`
}

type rejectionReceiptBody struct {
	ForID      string        `json:"for_id"`
	Status     ReceiptStatus `json:"status"`
	ReasonCode Reason        `json:"reason_code"`
	Detail     string        `json:"detail,omitempty"`
}

// BuildReceipt builds the one receipt that a gateway sends of its own: that it
// refused a say or capability with a work_id in a thread (section 7 of
// docs/protocol.md). It is false for whatever gets no such receipt: another
// kind, no work, no thread, or fields that are not good enough to answer to.
// Whether the refusal is of a step that is answered, and whether the sender may
// be answered at all, is the caller's to know.
//
// The id follows from the workspace, the refused id and the reason, so a
// repeated refusal gives the same message but for its ts. The receipt has no
// expires_at, and a trace_id only if the refused envelope had one.
func BuildReceipt(gatewayPeer string, refused *Envelope, rej *Rejection, now time.Time) ([]byte, bool) {
	if refused == nil || rej == nil || !answerable(refused) || !ValidPeerID(gatewayPeer) {
		return nil, false
	}
	raw, err := json.Marshal(rejectionReceipt{
		Protocol:    Protocol,
		ID:          receiptID(refused, rej.Reason),
		WorkspaceID: refused.WorkspaceID,
		Kind:        KindReceipt,
		Channel:     refused.Channel,
		Surface:     SurfaceThread,
		ThreadID:    refused.ThreadID,
		From:        gatewayPeer,
		To:          refused.From,
		WorkID:      refused.WorkID,
		ReplyTo:     refused.ID,
		TraceID:     refused.TraceID,
		CausationID: refused.ID,
		TS:          now.Unix(),
		Body: rejectionReceiptBody{
			ForID:      refused.ID,
			Status:     receiptStatus(rej.Reason),
			ReasonCode: rej.Reason,
			Detail:     shortened(rej.Detail, maxDetailBytes),
		},
	})
	return raw, err == nil
}

// answerable reports whether a refused envelope is one that gets a receipt and
// has the fields that the receipt must repeat.
func answerable(e *Envelope) bool {
	return (e.Kind == KindSay || e.Kind == KindCapability) &&
		e.Surface == SurfaceThread && ValidThreadID(e.ThreadID) &&
		validWorkID(e.WorkID) && validID(e.ID) &&
		ValidWorkspaceID(e.WorkspaceID) && ValidChannel(e.Channel) && ValidPeerID(e.From) &&
		(e.TraceID == "" || validOpaque(e.TraceID))
}

// receiptID derives the receipt's id. NUL stands in no id, so it separates.
func receiptID(refused *Envelope, reason Reason) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"compozy-network/rejection-receipt/v1", refused.WorkspaceID, refused.ID, string(reason),
	}, "\x00")))
	return "receipt-" + hex.EncodeToString(sum[:16])
}

func receiptStatus(reason Reason) ReceiptStatus {
	switch reason {
	case ReasonExpired:
		return ReceiptExpired
	case ReasonDuplicate:
		return ReceiptDuplicate
	case ReasonUnsupportedKind, ReasonUnsupportedProfile:
		return ReceiptUnsupported
	}
	return ReceiptRejected
}

// shortened cuts s to at most limit bytes, between two characters.
func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
