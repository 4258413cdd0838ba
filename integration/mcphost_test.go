//go:build brokers

package integration

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"
)

// mcpHost is an MCP host: the npm package @modelcontextprotocol/sdk, in
// testdata/mcp/host.mjs, which runs gateway mcp as one peer.
type mcpHost struct {
	process *program

	mu      sync.Mutex
	number  int
	waiting map[int]chan mcpAnswer
	noise   []string
}

type mcpAnswer struct {
	Answers      int    `json:"answers"`
	Error        string `json:"error"`
	Noise        string `json:"noise"`
	Connected    bool   `json:"connected"`
	Instructions string `json:"instructions"`

	Failed bool            `json:"failed"`
	Text   string          `json:"text"`
	Result json.RawMessage `json:"result"`
	Meta   map[string]struct {
		ReasonCode string `json:"reason_code"`
		Retryable  bool   `json:"retryable"`
		MessageID  string `json:"message_id"`
	} `json:"meta"`

	Tools []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
	} `json:"tools"`
	Resources []struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	} `json:"resources"`
}

// reason is the protocol's code for a call that failed.
func (a mcpAnswer) reason() string { return a.Meta["compozy-network/error"].ReasonCode }

// connectHost starts a host that is the peer at the gateway.
func connectHost(t *testing.T, g *gateway, peer string) *mcpHost {
	t.Helper()
	if _, err := os.Stat("testdata/mcp/node_modules/@modelcontextprotocol/sdk"); err != nil {
		t.Fatalf("the npm package @modelcontextprotocol/sdk is not installed; run npm ci in integration/testdata/mcp: %v", err)
	}
	h := &mcpHost{waiting: map[int]chan mcpAnswer{}}
	connected := make(chan mcpAnswer, 1)
	h.waiting[0] = connected
	h.process = start(t, launch{dir: "testdata/mcp", pipe: true, stdout: &splitter{take: h.take}}, need(t, "node", "nodejs"),
		"host.mjs", gatewayBinary, "mcp", "--url", g.url(""), "--workspace", workspace, "--channel", channel, "--peer", peer)
	select {
	case <-connected:
	case <-time.After(15 * time.Second):
		t.Fatal("the MCP host did not connect")
	}
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.noise) > 0 {
			t.Errorf("the server of %s wrote to stdout what is no MCP: %q", peer, h.noise)
		}
	})
	return h
}

func (h *mcpHost) take(line []byte) {
	var a mcpAnswer
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := json.Unmarshal(line, &a); err != nil || a.Noise != "" {
		h.noise = append(h.noise, string(line))
		return
	}
	if waiting := h.waiting[a.Answers]; waiting != nil {
		waiting <- a
		delete(h.waiting, a.Answers)
	}
}

// ask gives the host a command; its answer comes on the channel.
func (h *mcpHost) ask(t *testing.T, command object) <-chan mcpAnswer {
	t.Helper()
	answer := make(chan mcpAnswer, 1)
	h.mu.Lock()
	h.number++
	command["number"] = h.number
	h.waiting[h.number] = answer
	h.mu.Unlock()
	line, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.process.stdin.Write(append(line, '\n')); err != nil {
		t.Fatalf("command the MCP host: %v", err)
	}
	return answer
}

func (h *mcpHost) do(t *testing.T, command object) mcpAnswer {
	t.Helper()
	select {
	case a := <-h.ask(t, command):
		return a
	case <-time.After(30 * time.Second):
		t.Fatalf("the MCP host does not answer %v", command)
		return mcpAnswer{}
	}
}

// try calls a tool and gives what came of it.
func (h *mcpHost) try(t *testing.T, tool string, arguments object) mcpAnswer {
	t.Helper()
	a := h.do(t, object{"do": "call", "name": tool, "arguments": arguments})
	if a.Error != "" {
		t.Fatalf("%s %v: %s", tool, arguments, a.Error)
	}
	return a
}

// mcpResult has the members of the tools' results that tests read.
type mcpResult struct {
	MessageID  string `json:"message_id"`
	Committed  bool   `json:"committed"`
	Duplicate  bool   `json:"duplicate"`
	AckThrough int64  `json:"ack_through"`
	State      string `json:"state"`
	Messages   []struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
		From string `json:"from"`
		Text string `json:"untrusted_text"`
		Body string `json:"untrusted_body"`
	} `json:"messages"`
	Peers []struct {
		Peer string `json:"peer"`
	} `json:"peers"`
}

// call wants the call to succeed.
func (h *mcpHost) call(t *testing.T, tool string, arguments object) mcpResult {
	t.Helper()
	a := h.try(t, tool, arguments)
	var out mcpResult
	if a.Failed {
		t.Fatalf("%s %v: %s", tool, arguments, a.Text)
	}
	if err := json.Unmarshal(a.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
