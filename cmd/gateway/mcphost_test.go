package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is an MCP host that runs the command as one peer.
type host struct {
	t       *testing.T
	session *mcp.ClientSession
	stdin   *io.PipeWriter
	stderr  lockedBuffer
	done    chan struct{}
	stop    context.CancelFunc
	status  int
}

func startHost(t *testing.T, url, peer string, more ...string) *host {
	t.Helper()
	fromHost, stdin := io.Pipe()
	fromServer, stdout := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	h := &host{t: t, stdin: stdin, done: make(chan struct{}), stop: stop}
	go func() {
		defer close(h.done)
		defer stdout.Close()
		p := &process{stdin: fromHost, stdout: stdout, stderr: &h.stderr, program: "gateway"}
		h.status = p.run(ctx, append([]string{"mcp", "--workspace", "demo", "--channel", "general", "--peer", peer, "--url", url}, more...))
	}()
	t.Cleanup(func() {
		stop()
		h.end()
		if t.Failed() {
			t.Logf("stderr of %s: %s", peer, &h.stderr)
		}
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	var err error
	if h.session, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: stdin}, nil); err != nil {
		t.Fatalf("connect: %v; stderr: %s", err, &h.stderr)
	}
	return h
}

// end closes the command's stdin and waits for its end.
func (h *host) end() {
	h.t.Helper()
	h.stdin.Close()
	if h.session != nil {
		_ = h.session.Close()
	}
	select {
	case <-h.done:
	case <-time.After(patience):
		h.t.Fatalf("the command does not end: %s", &h.stderr)
	}
}

type arguments = map[string]any

func (h *host) try(tool string, in arguments) *mcp.CallToolResult {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*patience)
	defer cancel()
	result, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		h.t.Fatalf("%s %v: %v", tool, in, err)
	}
	return result
}

// call wants the call to succeed.
func (h *host) call(tool string, in arguments) toolOutput {
	h.t.Helper()
	result := h.try(tool, in)
	if result.IsError {
		h.t.Fatalf("%s %v: %s", tool, in, textOf(result))
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		h.t.Fatal(err)
	}
	var out toolOutput
	if err := json.Unmarshal(raw, &out); err != nil {
		h.t.Fatal(err)
	}
	out.raw = string(raw)
	return out
}

// refused wants the call to fail and gives what it says.
func (h *host) refused(tool string, in arguments) (text string, meta toolError) {
	h.t.Helper()
	result := h.try(tool, in)
	if !result.IsError || result.StructuredContent != nil {
		h.t.Fatalf("%s %v succeeds with %v", tool, in, result.StructuredContent)
	}
	raw, err := json.Marshal(result.Meta["compozy-network/error"])
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		h.t.Fatal(err)
	}
	return textOf(result), meta
}

func textOf(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

type toolError struct {
	ReasonCode string `json:"reason_code"`
	Retryable  bool   `json:"retryable"`
	MessageID  string `json:"message_id"`
}

type toolMessage struct {
	Position, Seq      int64
	ID, Kind, From, To string
	ThreadID           string `json:"thread_id"`
	DirectID           string `json:"direct_id"`
	WorkID             string `json:"work_id"`
	ReplyTo            string `json:"reply_to"`
	Text               string `json:"untrusted_text"`
	Body               string `json:"untrusted_body"`
	ExpiresAt          string `json:"expires_at"`
	Truncated          bool
	CausationID        string `json:"causation_id"`
	BodyBytes          int    `json:"body_bytes"`
}

// toolOutput has the members of all tools that the tests read.
type toolOutput struct {
	raw        string
	Notice     string
	MessageID  string `json:"message_id"`
	Committed  bool
	Duplicate  bool
	Parked     bool
	Seq        *int64
	DirectID   string `json:"direct_id"`
	Messages   []toolMessage
	Message    toolMessage
	AckThrough int64 `json:"ack_through"`
	More       bool
	Next       *int64
	State      string
	Initiator  string
	Target     string
	Threads    []struct {
		ThreadID string `json:"thread_id"`
		URI      string
		Messages int
	}
	Peers []struct {
		Peer     string
		Attached []string
		Card     string `json:"untrusted_card"`
	}
	Deliveries []core.Delivery
	Receipts   []struct{ ID, From, Status string }
}

func ids(messages []toolMessage) []string {
	out := []string{}
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return out
}
