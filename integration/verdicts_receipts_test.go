package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// matrixReceipts collects the receipts that the gateway sends to peers on a bus.
type matrixReceipts struct {
	mu   sync.Mutex
	seen map[string]int
	// fenced is true once the last message of all has come by.
	fenced bool
	// wrong are receipts that say something wrong of themselves.
	wrong []string
}

// matrixFence is the peer to whom the last message of all goes.
const matrixFence = "fence"

// take is called with whatever comes by on a peer's address. It may be called
// from any goroutine.
func (r *matrixReceipts) take(token string, payload []byte) {
	var m struct {
		ID          string    `json:"id"`
		WorkspaceID string    `json:"workspace_id"`
		Kind        core.Kind `json:"kind"`
		Surface     string    `json:"surface"`
		From        string    `json:"from"`
		To          string    `json:"to"`
		ReplyTo     string    `json:"reply_to"`
		CausationID string    `json:"causation_id"`
		Body        struct {
			ForID      string      `json:"for_id"`
			Status     string      `json:"status"`
			ReasonCode core.Reason `json:"reason_code"`
		} `json:"body"`
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if json.Unmarshal(payload, &m) != nil {
		return // somebody's frame that was refused as well
	}
	if m.To == matrixFence && token == core.RouteToken(matrixFence) {
		r.fenced = true
	}
	if m.From != matrixGateway || m.Kind != core.KindReceipt {
		return
	}
	if m.ReplyTo != m.Body.ForID || m.CausationID != m.Body.ForID || m.Surface != "thread" || token != core.RouteToken(m.To) {
		r.wrong = append(r.wrong, string(payload))
	}
	if r.seen == nil {
		r.seen = map[string]int{}
	}
	r.seen[matrixReceiptName(m.WorkspaceID, m.Body.ForID, m.To, m.Body.Status, m.Body.ReasonCode)]++
}

func matrixReceiptName(workspace, forID, to, status string, reason core.Reason) string {
	return fmt.Sprintf("%s %s of %s to %s: %s", status, reason, forID, to, workspace)
}

// check wants the receipts that the frames are owed, and no other. The fence has
// been sent.
func (r *matrixReceipts) check(t *testing.T, sent []matrixSent) {
	t.Helper()
	matrixEventually(t, "the fence comes by", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.fenced
	})
	owed := map[string]bool{}
	for _, s := range sent {
		if name := matrixOwed(s); name != "" {
			owed[name] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range owed {
		if r.seen[name] != 1 {
			t.Errorf("%d receipts came that say %s; one is owed", r.seen[name], name)
		}
	}
	for name := range r.seen {
		if !owed[name] {
			t.Errorf("a receipt came that nobody is owed: %s", name)
		}
	}
	for _, receipt := range r.wrong {
		t.Errorf("a receipt is not right in itself: %s", receipt)
	}
}

// matrixOwed names the receipt that section 7 of docs/protocol.md owes for a
// frame, empty where it owes none.
func matrixOwed(s matrixSent) string {
	reason, step := s.outcome.reason, s.outcome.step
	if s.outcome.verdict == "duplicate" {
		reason, step = core.ReasonDuplicate, core.StepDedup
	}
	switch step {
	case core.StepFreshness, core.StepShape, core.StepBody, core.StepDedup, core.StepState:
	default:
		return ""
	}
	var m struct {
		ID          string    `json:"id"`
		WorkspaceID string    `json:"workspace_id"`
		Kind        core.Kind `json:"kind"`
		Surface     string    `json:"surface"`
		ThreadID    string    `json:"thread_id"`
		From        string    `json:"from"`
		WorkID      string    `json:"work_id"`
	}
	if json.Unmarshal([]byte(s.payload), &m) != nil || strings.TrimSpace(m.WorkID) == "" {
		return ""
	}
	if m.Kind != core.KindSay && m.Kind != core.KindCapability || m.Surface != "thread" || !core.ValidThreadID(m.ThreadID) {
		return ""
	}
	// What fails in step 7 too is not answered.
	if m.From == matrixGateway || !strings.HasPrefix(m.WorkspaceID, "demo") {
		return ""
	}
	status := "rejected"
	if reason == core.ReasonExpired || reason == core.ReasonDuplicate {
		status = string(reason)
	}
	return matrixReceiptName(m.WorkspaceID, m.ID, m.From, status, reason)
}
