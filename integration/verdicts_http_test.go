package integration

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// matrixAnswer is what HTTP says of one envelope, and of one line of many.
type matrixAnswer struct {
	Line      int     `json:"line"`
	Status    int     `json:"status"`
	ID        *string `json:"id"`
	Seq       *int64  `json:"seq"`
	Duplicate *bool   `json:"duplicate"`
	Parked    *bool   `json:"parked"`

	Type       string      `json:"type"`
	Title      string      `json:"title"`
	ReasonCode core.Reason `json:"reason_code"`
}

// outcome reads the answer, which must be whole.
func (a matrixAnswer) outcome(t *testing.T, f matrixFrame, on matrixWay) string {
	t.Helper()
	taken := a.ID != nil && a.Duplicate != nil && a.Parked != nil && (a.Seq == nil) == *a.Parked
	switch {
	case a.Status == http.StatusAccepted && taken && *a.Parked:
		return "parked"
	case a.Status == http.StatusAccepted && taken && !*a.Duplicate:
		return "committed"
	case a.Status == http.StatusOK && taken && *a.Duplicate:
		return "duplicate"
	}
	if want := matrixStatus(f.outcome(on)); a.Status != want {
		t.Errorf("the status is %d, want %d", a.Status, want)
	}
	if a.Type == "" || a.Title == "" {
		t.Errorf("the problem has no type or title: %+v", a)
	}
	return "rejected " + string(a.ReasonCode)
}

// matrixStatus is the HTTP status of an outcome.
func matrixStatus(o matrixOutcome) int {
	switch {
	case o.verdict == "duplicate":
		return http.StatusOK
	case o.verdict != "rejected":
		return http.StatusAccepted
	case o.tooLarge:
		return http.StatusRequestEntityTooLarge
	}
	switch o.reason {
	case core.ReasonNotTarget:
		return http.StatusForbidden
	case core.ReasonDuplicate, core.ReasonWorkClosed, core.ReasonWorkContainerMismatch:
		return http.StatusConflict
	case core.ReasonBusy:
		return http.StatusTooManyRequests
	}
	return http.StatusUnprocessableEntity
}

// post sends a body and gives the answer, read to its end.
func (g *matrixGatewayProcess) post(t *testing.T, mediaType, body string) (*http.Response, string) {
	t.Helper()
	response, err := g.client.Post("http://"+g.http+"/v0/envelopes", mediaType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// matrixPoster posts envelope after envelope.
type matrixPoster struct{ g *matrixGatewayProcess }

func (p *matrixPoster) deliver(t *testing.T, frames []matrixFrame) ([]string, bool) {
	t.Helper()
	var outcomes []string
	for _, f := range frames {
		response, text := p.g.post(t, "application/json", f.payload)
		var a matrixAnswer
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatalf("the answer is %d %s: %v", response.StatusCode, text, err)
		}
		mediaType := "application/json"
		if response.StatusCode >= http.StatusMultipleChoices {
			mediaType = "application/problem+json"
			if a.Status != response.StatusCode {
				t.Errorf("the problem says status %d in an answer of %d", a.Status, response.StatusCode)
			}
		}
		if got := response.Header.Get("Content-Type"); got != mediaType {
			t.Errorf("the answer is declared as %q, want %q", got, mediaType)
		}
		a.Status = response.StatusCode
		outcomes = append(outcomes, a.outcome(t, f, p.g.way))
	}
	return outcomes, true
}

func (*matrixPoster) framed(payload string) string { return payload }

func (*matrixPoster) finish(*testing.T, []matrixSent) {}

// matrixLinePoster posts all frames in one body, a line each.
type matrixLinePoster struct{ g *matrixGatewayProcess }

func (p *matrixLinePoster) deliver(t *testing.T, frames []matrixFrame) ([]string, bool) {
	t.Helper()
	var body strings.Builder
	outcomes := make([]string, len(frames))
	for i, f := range frames {
		body.WriteString(p.framed(f.payload) + "\n")
		outcomes[i] = "unheard"
	}
	response, text := p.g.post(t, "application/x-ndjson", body.String())
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the answer is %d %s", response.StatusCode, text)
	}
	last := 0
	answers := bufio.NewScanner(strings.NewReader(text))
	for answers.Scan() {
		var a matrixAnswer
		if err := json.Unmarshal(answers.Bytes(), &a); err != nil {
			t.Fatalf("a line of the answer is %s: %v", answers.Text(), err)
		}
		if a.Line <= last || a.Line > len(frames) {
			t.Fatalf("line %d of %d comes behind line %d", a.Line, len(frames), last)
		}
		last = a.Line
		outcomes[last-1] = a.outcome(t, frames[last-1], p.g.way)
	}
	return outcomes, true
}

func (*matrixLinePoster) framed(payload string) string { return matrixOneLine(payload) }

func (*matrixLinePoster) finish(*testing.T, []matrixSent) {}

// matrixOneLine is what can stand on a line: the line ends between tokens become
// spaces.
func matrixOneLine(payload string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(payload)
}
