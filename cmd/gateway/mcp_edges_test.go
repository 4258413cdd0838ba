package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestRefusalsNameTheirReason(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	alice := startHost(t, s.http, "alice")
	alice.call("send_say", arguments{"text": "open", "thread_id": "thread_main", "to": "bob", "work_id": "w-1", "message_id": "m-1"})
	document := arguments{"id": "c", "summary": "s", "outcome": "o", "requirements": []string{"a", " a "}}
	cases := []struct {
		name, tool string
		in         arguments
		reason     string
	}{
		{"no place", "send_say", arguments{"text": "x"}, ""},
		{"two places", "send_say", arguments{"text": "x", "thread_id": "thread_main", "direct": true, "to": "bob"}, ""},
		{"direct room with nobody", "send_say", arguments{"text": "x", "direct": true}, ""},
		{"bad thread", "send_say", arguments{"text": "x", "thread_id": "main"}, "invalid_surface"},
		{"blank text", "send_say", arguments{"text": " ", "thread_id": "thread_main"}, "malformed"},
		{"id used before", "send_say", arguments{"text": "other", "thread_id": "thread_main", "message_id": "m-1"}, "duplicate"},
		{"other container", "send_say", arguments{"text": "x", "thread_id": "thread_other", "to": "bob", "work_id": "w-1"}, "work_container_mismatch"},
		{"receipt without its reason", "send_receipt", arguments{"thread_id": "thread_main", "to": "bob", "work_id": "w-1", "for_id": "m-1", "status": "rejected"}, "malformed"},
		{"capability that names a requirement twice", "send_capability", arguments{"thread_id": "thread_main", "to": "bob", "work_id": "w-1", "capability": document}, "malformed"},
		{"room that nobody opened", "send_say", arguments{"text": "x", "direct_id": "direct_0123456789abcdef0123456789abcdef"}, "conversation_not_found"},
		{"unknown work", "get_work", arguments{"work_id": "none"}, "not_found"},
		{"unknown message", "inspect_message", arguments{"message_id": "none"}, "not_found"},
		{"unknown thread", "read_thread", arguments{"thread_id": "thread_none"}, "not_found"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if text, meta := alice.refused(c.tool, c.in); meta.ReasonCode != c.reason || meta.Retryable || strings.Contains(text, "reason_code ") != (c.reason != "") || !strings.Contains(text, c.reason) {
				t.Errorf("got %q, %+v, want %s", text, meta, c.reason)
			}
		})
	}
	again := alice.call("send_say", arguments{"text": "open", "thread_id": "thread_main", "to": "bob", "work_id": "w-1", "message_id": "m-1"})
	if !again.Duplicate || !again.Committed {
		t.Errorf("the same call again gives %s", again.raw)
	}
	early := alice.call("send_trace", arguments{"thread_id": "thread_main", "to": "bob", "work_id": "w-early", "state": "working"})
	if !early.Parked || early.Seq != nil {
		t.Errorf("a trace whose work is not known gives %s", early.raw)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	alice := startHost(t, s.http, "alice")
	for name, c := range map[string]struct {
		tool string
		in   arguments
	}{
		"a sender of one's choice": {"send_say", arguments{"text": "x", "thread_id": "thread_main", "from": "bob"}},
		"a digest of one's choice": {"send_capability", arguments{"thread_id": "thread_main", "to": "b", "work_id": "w", "capability": arguments{"id": "c", "summary": "s", "outcome": "o", "digest": "x"}}},
		"a state that is none":     {"send_trace", arguments{"thread_id": "thread_main", "to": "b", "work_id": "w", "state": "submitted"}},
		"a status that is none":    {"send_receipt", arguments{"thread_id": "thread_main", "to": "b", "work_id": "w", "for_id": "m", "status": "ok"}},
		"an endless wait":          {"wait_for_messages", arguments{"timeout_seconds": 3600}},
		"a boundless page":         {"read_inbox", arguments{"limit": 100_000}},
		"a lifetime of nothing":    {"send_say", arguments{"text": "x", "thread_id": "thread_main", "expires_in_seconds": 0}},
	} {
		if text, meta := alice.refused(c.tool, c.in); meta.ReasonCode != "" || !strings.Contains(text, "arguments") {
			t.Errorf("%s: got %q, %+v", name, text, meta)
		}
	}
}

func TestAGatewayThatRestartsFailsACallAndServesTheNext(t *testing.T) {
	dir := t.TempDir()
	s := serveGateway(t, dir)
	alice := startHost(t, s.http, "alice")
	alice.call("send_say", arguments{"text": "before", "thread_id": "thread_main"})
	s.end(t)

	say := arguments{"text": "during", "thread_id": "thread_main"}
	text, meta := alice.refused("send_say", say)
	if !strings.Contains(text, "no answer from the gateway at "+s.http) || !meta.Retryable || meta.MessageID == "" || meta.ReasonCode != "" {
		t.Errorf("got %q, %+v", text, meta)
	}
	if _, meta := alice.refused("read_inbox", nil); !meta.Retryable {
		t.Errorf("got %+v", meta)
	}
	if _, err := alice.session.ListResources(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no answer from the gateway") {
		t.Errorf("got %v", err)
	}

	listen := "GATEWAY_CARRIERS__HTTP__LISTEN=" + strings.TrimPrefix(s.http, "http://")
	serveGatewayIn(t, append(freePorts(), listen), dir)
	say["message_id"] = meta.MessageID
	if sent := alice.call("send_say", say); !sent.Committed || sent.Duplicate || sent.MessageID != meta.MessageID {
		t.Errorf("got %s", sent.raw)
	}
	if thread := alice.call("read_thread", arguments{"thread_id": "thread_main"}); len(thread.Messages) != 2 {
		t.Errorf("got %s", thread.raw)
	}
}

func TestAHostMayStartBeforeTheGateway(t *testing.T) {
	dir := t.TempDir()
	s := serveGateway(t, dir)
	s.end(t)
	bob := startHost(t, s.http, "bob")
	if _, meta := bob.refused("read_inbox", nil); !meta.Retryable {
		t.Errorf("got %+v", meta)
	}
	listen := "GATEWAY_CARRIERS__HTTP__LISTEN=" + strings.TrimPrefix(s.http, "http://")
	serveGatewayIn(t, append(freePorts(), listen), dir)
	if peers := bob.call("list_peers", nil).Peers; len(peers) != 1 || peers[0].Peer != "bob" || len(peers[0].Attached) != 1 {
		t.Errorf("after the first call the peers are %+v", peers)
	}
}

func TestTheCommandEndsWithItsStdinAndWhenItIsTold(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	attached := func() bool {
		return strings.Contains(command(t, "", "peers", "--workspace", "demo", "--url", s.http, "-o", "json").stdout, `"attached":["general"]`)
	}
	waiting := func(h *host) {
		go func() {
			_, _ = h.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait_for_messages", Arguments: arguments{"timeout_seconds": 50}})
		}()
	}
	for _, c := range []struct {
		name  string
		flags []string
		end   func(h *host)
		keeps bool
	}{
		{"stdin", nil, func(h *host) { h.stdin.Close() }, true},
		{"being told", nil, func(h *host) { h.stop() }, true},
		{"stdin, and detached", []string{"--detach"}, func(h *host) { h.stdin.Close() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := startHost(t, s.http, "bob", c.flags...)
			waiting(h)
			eventually(t, "the peer is attached", attached)
			began := time.Now()
			c.end(h)
			select {
			case <-h.done:
			case <-time.After(patience):
				t.Fatal("the command goes on")
			}
			if took := time.Since(began); h.status != exitGood || took > 10*time.Second {
				t.Errorf("status %d after %v: %s", h.status, took, &h.stderr)
			}
			if attached() != c.keeps {
				t.Errorf("attached afterwards: %v", !c.keeps)
			}
		})
	}
}

func TestMCPRefusesASeatThatCannotBe(t *testing.T) {
	seat := func(workspace, channel, peer string) []string {
		return []string{"mcp", "--workspace", workspace, "--channel", channel, "--peer", peer}
	}
	for flag, args := range map[string][]string{
		"--workspace": seat("a b", "general", "bob"),
		"--channel":   seat("demo", "General", "bob"),
		"--peer":      seat("demo", "general", "Bob"),
	} {
		if got := command(t, "", args...); got.status != exitUsage || !strings.Contains(got.stderr, flag+":") || got.stdout != "" {
			t.Errorf("%s: %+v", flag, got)
		}
	}
}

func TestATokenBoundsTheHost(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	config := filepath.Join(dir, "gateway.yaml")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, "a-token-of-sufficient-length-0123456789")
	write(config, `
carriers:
  http:
    type: http
    tokens:
      bobs: {token_file: "`+token+`", workspaces: [demo], channels: [general], peers: [bob]}
`)
	s := inBackground(t, freePorts(), nil, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"))
	var url string
	eventually(t, "the gateway listens", func() bool {
		_, url, _ = strings.Cut(s.stdout.String(), " --url ")
		url, _, _ = strings.Cut(url, " ")
		return url != ""
	})
	bob := startHost(t, url, "bob", "--token-file", token)
	if sent := bob.call("send_say", arguments{"text": "mine", "thread_id": "thread_main"}); !sent.Committed {
		t.Errorf("got %s", sent.raw)
	}
	got := command(t, "", "mcp", "--workspace", "demo", "--channel", "general", "--peer", "alice", "--url", url, "--token-file", token)
	if got.status != exitFailed || !strings.Contains(got.stderr, "attach alice: the gateway answered 403") || got.stdout != "" {
		t.Errorf("as another peer: %+v", got)
	}
}
