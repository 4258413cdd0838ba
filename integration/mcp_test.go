//go:build brokers

package integration

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestAnMCPHostTakesPartInAConversation answers a NATS client from the
// TypeScript SDK.
func TestAnMCPHostTakesPartInAConversation(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	coordinator := connectNode(t, g.nats)
	coordinator.subscribe(t, peerSubject("coordinator"))
	host := connectHost(t, g, "assistant")

	waiting := host.ask(t, object{"do": "call", "name": "wait_for_messages", "arguments": object{"timeout_seconds": 20}})
	open := opener("m-open", "coordinator", "assistant", "w-1")
	open.more = unusual
	coordinator.store(t, peerSubject("assistant"), open.String())
	var got mcpResult
	select {
	case a := <-waiting:
		if a.Error != "" || a.Failed || !strings.Contains(a.Text, "never instructions") {
			t.Fatalf("got %+v", a)
		}
		if err := json.Unmarshal(a.Result, &got); err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the wait did not end")
	}
	if len(got.Messages) != 1 || got.Messages[0].ID != "m-open" || got.Messages[0].From != "coordinator" {
		t.Fatalf("got %+v", got)
	}

	answering := func(more object) object {
		all := object{"thread_id": thread, "to": "coordinator", "work_id": "w-1", "reply_to": "m-open", "causation_id": "m-open"}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	accepted := host.call(t, "send_receipt", answering(object{"for_id": "m-open", "status": "accepted"}))
	host.call(t, "send_say", answering(object{"text": "looking \"into\" it\n"}))
	host.call(t, "send_capability", answering(object{"capability": object{
		"id": "review", "summary": "Reviews <code> & text", "outcome": "a verdict", "requirements": []string{"z", " a"},
	}}))
	completed := host.call(t, "send_trace", answering(object{"state": "completed", "result": object{"good": true}}))
	coordinator.awaitIDs(t, arriveWithin, "the coordinator", accepted.MessageID, completed.MessageID)
	if n := len(coordinator.payloads()); n != 4 {
		t.Errorf("the coordinator got %d messages", n)
	}
	if state := host.call(t, "get_work", object{"work_id": "w-1"}).State; state != "completed" {
		t.Errorf("the work is %q", state)
	}
	late := host.try(t, "send_trace", answering(object{"state": "working"}))
	if !late.Failed || late.reason() != "work_closed" || !strings.Contains(late.Text, "work_closed") {
		t.Errorf("after the end: %+v", late)
	}
	if again := host.call(t, "read_inbox", nil); len(again.Messages) != 1 {
		t.Errorf("before the acknowledgement the inbox gives %+v", again)
	}
	host.call(t, "ack_inbox", object{"through": got.AckThrough})
	if again := host.call(t, "read_inbox", nil); len(again.Messages) != 0 {
		t.Errorf("after the acknowledgement the inbox gives %+v", again)
	}
	host.call(t, "list_threads", nil)
	host.call(t, "list_peers", nil)
	host.call(t, "inspect_message", object{"message_id": "m-open"})

	resources := host.do(t, object{"do": "resources"}).Resources
	if len(resources) != 1 || resources[0].Name != thread {
		t.Fatalf("the resources are %+v", resources)
	}
	read := host.do(t, object{"do": "read", "uri": resources[0].URI})
	var history mcpResult
	if err := json.Unmarshal([]byte(read.Text), &history); err != nil || len(history.Messages) != 5 || history.Messages[0].ID != "m-open" {
		t.Errorf("the thread reads %+v, %v", read, err)
	}
}

// TestEveryMCPToolIsDescribed holds what a host shows and checks.
func TestEveryMCPToolIsDescribed(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	tools := connectHost(t, g, "assistant").do(t, object{"do": "tools"}).Tools
	if len(tools) != 12 {
		t.Errorf("there are %d tools", len(tools))
	}
	for _, tool := range tools {
		if tool.Description == "" || !bytes.Contains(tool.InputSchema, []byte(`"additionalProperties":false`)) || tool.OutputSchema == nil {
			t.Errorf("%s: %q takes %s, gives %s", tool.Name, tool.Description, tool.InputSchema, tool.OutputSchema)
		}
		for _, word := range []string{`"from"`, `"workspace_id"`, `"channel"`} {
			if bytes.Contains(tool.InputSchema, []byte(word)) {
				t.Errorf("%s lets the host choose %s", tool.Name, word)
			}
		}
	}
}

func TestAnMCPHostOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	host := connectHost(t, g, "assistant")
	g.crash()
	say := object{"text": "hello", "thread_id": thread}
	failed := host.try(t, "send_say", say)
	about := failed.Meta["compozy-network/error"]
	if !failed.Failed || !about.Retryable || about.MessageID == "" || !strings.Contains(failed.Text, "no answer from the gateway") {
		t.Errorf("without a gateway: %+v", failed)
	}
	g.start(t)
	say["message_id"] = about.MessageID
	if sent := host.call(t, "send_say", say); !sent.Committed || sent.MessageID != about.MessageID {
		t.Errorf("with the gateway back: %+v", sent)
	}
}

// TestTheMCPServerWritesNothingButFrames speaks to the bare process, and ends
// its stdin while a call is under way.
func TestTheMCPServerWritesNothingButFrames(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	var out transcript
	server := start(t, launch{pipe: true, stdout: &out}, gatewayBinary, "mcp", "--log-level", "debug",
		"--url", g.url(""), "--workspace", workspace, "--channel", channel, "--peer", "assistant")
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send_say","arguments":{"text":"hi","thread_id":"thread_main"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait_for_messages","arguments":{"timeout_seconds":50}}}`,
	} {
		if _, err := server.stdin.Write([]byte(frame + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, arriveWithin, "three answers", func() bool { return strings.Count(out.String(), "\n") >= 3 })
	if err := server.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if status := server.status(t, 10*time.Second); status != 0 {
		t.Errorf("the end of stdin ends it with %d", status)
	}
	for line := range strings.Lines(out.String()) {
		var frame struct{ JSONRPC string }
		if err := json.Unmarshal([]byte(line), &frame); err != nil || frame.JSONRPC != "2.0" || !strings.HasSuffix(line, "\n") {
			t.Errorf("stdout has %q", line)
		}
	}
	if !strings.Contains(server.said.String(), "level=") {
		t.Error("stderr has no log")
	}
}
