package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// exampleText is content that means something to a shell, to a terminal, to a
// program that ends lines at more than line feeds, and to one that takes content
// for a frame. %s is a file that nobody must make.
const exampleText = "'; touch %s; $(touch %s) `touch %s` \" \\ %d \x1b[2J\r\n" +
	`{"carrier":{"done":"wake_1"}}` + "\n\u2028\u2029 é😀"

// exampleUnusual is an ext that is valid and that a careless reader stumbles
// over: a number longer than some parsers take, and names of the envelope below.
var exampleUnusual = `{"big":` + strings.Repeat("9", 5000) + `,"huge":1e400,"to":"eve","carrier":{"wake":"wake_9","messages":9},"body":{"text":"no"}}`

// checkExampleThroughAGateway talks to an agent that a gateway hosts.
func checkExampleThroughAGateway(t *testing.T, a exampleAgent, launch string) {
	g := &matrixGatewayProcess{dir: t.TempDir(), http: matrixFreeAddress(t), client: &http.Client{Timeout: matrixPatience, Transport: &http.Transport{}}}
	t.Cleanup(g.client.CloseIdleConnections)
	g.start(t, map[string]any{
		"name": "local", "data_dir": filepath.Join(g.dir, "data"), "store": map[string]any{"synchronous": "normal"},
		"embedded": map[string]any{"nats": map[string]any{"enabled": false}, "mqtt": map[string]any{"enabled": false}},
		"carriers": map[string]any{
			"http": map[string]any{"type": "http", "listen": g.http},
			"agents": map[string]any{"type": "stdio", "agents": map[string]any{"bob": map[string]any{
				"command": a.command(t), "peer_id": "bob", "workspace": matrixWorkspace, "channel": matrixChannel, "launch": launch,
				"participation": map[string]any{"mode": "live", "bounds": map[string]any{"coalesce_window": "100ms"}},
			}}},
		},
	})
	w := newMatrixWorld(0)
	w.a, w.b = "ann", "bob"
	trap := filepath.Join(g.dir, "trap")
	text := strings.ReplaceAll(exampleText, "%s", trap)

	question := w.say().text("id", "question").text("to", "bob").text("trace_id", "t-1").set("ext", exampleUnusual)
	// JSON lets the two separators stand as they are; json.Marshal would escape them.
	raw := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(matrixQuote(text))
	question.set("body", `{"text":`+raw+`}`)
	g.exampleSay(t, question)
	answer := g.exampleAnswers(t, "question", 1)[0]
	if answer.Kind != core.KindSay || answer.Body.Text != "you said: "+text || answer.To != "ann" || answer.ThreadID != w.thread() ||
		answer.ReplyTo != "question" || answer.TraceID != "t-1" {
		t.Errorf("to %q the agent says %+v", text, answer)
	}

	g.exampleSay(t, w.about(w.say().text("id", "task"), "bob"))
	steps := g.exampleAnswers(t, "task", 3)
	for i, want := range []struct {
		kind   core.Kind
		status core.ReceiptStatus
		state  core.WorkState
	}{
		{core.KindReceipt, core.ReceiptAccepted, ""},
		{core.KindTrace, "", core.WorkWorking},
		{core.KindTrace, "", core.WorkCompleted},
	} {
		if got := steps[i]; got.Kind != want.kind || got.Body.Status != want.status || got.Body.State != want.state || got.WorkID != w.work() {
			t.Errorf("step %d of the work is %+v", i, got)
		}
	}
	if state := g.workState(t, w); state != core.WorkCompleted {
		t.Errorf("the work is %s", state)
	}

	aside := w.inRoom(w.say().text("id", "aside"), "bob").text("to", "bob")
	g.exampleSay(t, aside)
	if answer := g.exampleAnswers(t, "aside", 1)[0]; answer.DirectID != w.room() || answer.Body.Text != "you said: hello" {
		t.Errorf("in the room the agent says %+v", answer)
	}

	if _, err := os.Stat(trap); err == nil {
		t.Error("what a message said was run")
	}
	if counts := g.counts(t, "agents"); len(counts) != 1 || counts["committed"] != 5 {
		t.Errorf("of the agent's 5 envelopes the gateway made %v", counts)
	}
}

// exampleSay posts an envelope that must be taken.
func (g *matrixGatewayProcess) exampleSay(t *testing.T, d *matrixDraft) {
	t.Helper()
	response, err := g.client.Post("http://"+g.http+"/v0/envelopes", "application/json", strings.NewReader(d.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("the gateway answers %s to %s", response.Status, d)
	}
}

// exampleSaid is an envelope of the agent.
type exampleSaid struct {
	Kind        core.Kind `json:"kind"`
	From        string    `json:"from"`
	To          string    `json:"to"`
	ThreadID    string    `json:"thread_id"`
	DirectID    string    `json:"direct_id"`
	WorkID      string    `json:"work_id"`
	TraceID     string    `json:"trace_id"`
	ReplyTo     string    `json:"reply_to"`
	CausationID string    `json:"causation_id"`
	Body        struct {
		Text   string             `json:"text"`
		Status core.ReceiptStatus `json:"status"`
		State  core.WorkState     `json:"state"`
	} `json:"body"`
}

// exampleAnswers waits until the wake for the message has gone well, with its
// usage told, and gives the agent's n answers in the order of the history.
func (g *matrixGatewayProcess) exampleAnswers(t *testing.T, id string, n int) []exampleSaid {
	t.Helper()
	g.exampleAwaitWake(t, id)
	_, body := g.tryGet("/v0/workspaces/" + matrixWorkspace + "/channels/" + matrixChannel + "/messages?peer=ann")
	var page struct {
		Messages []struct {
			Envelope exampleSaid `json:"envelope"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("the history is %s: %v", body, err)
	}
	var answers []exampleSaid
	for _, m := range page.Messages {
		if m.Envelope.From == "bob" && m.Envelope.CausationID == id {
			answers = append(answers, m.Envelope)
		}
	}
	if len(answers) != n {
		t.Fatalf("to %s the agent gives %d answers, want %d: %s", id, len(answers), n, body)
	}
	return answers
}

func (g *matrixGatewayProcess) exampleAwaitWake(t *testing.T, id string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(exampleWithin); ; <-tick.C {
		text := g.message(t, matrixWorkspace, id, "ann")
		var m struct{ Wakes []core.WakeView }
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("of %s the gateway says %q: %v", id, text, err)
		}
		switch {
		case len(m.Wakes) == 1 && m.Wakes[0].State == core.WakeSucceeded:
			if m.Wakes[0].Usage != core.UsageActual {
				t.Errorf("the usage of the wake for %s is %s", id, m.Wakes[0].Usage)
			}
			return
		case len(m.Wakes) == 1 && m.Wakes[0].State.Final():
			t.Fatalf("the wake for %s is %+v", id, m.Wakes[0])
		case time.Now().After(deadline):
			t.Fatalf("not within %v: the wake for %s: %s", exampleWithin, id, text)
		}
	}
}
