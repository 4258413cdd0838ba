package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// against makes a server for a gateway that answers as a test tells it to. What
// the handler leaves unanswered is a 200 without a body.
func against(t *testing.T, seat client.Seat, handler http.HandlerFunc) *Server {
	t.Helper()
	gateway := httptest.NewServer(handler)
	t.Cleanup(gateway.Close)
	c, err := client.New(client.Options{URL: gateway.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(Config{Client: c, Seat: seat, Version: "test", Logger: slog.New(slog.DiscardHandler)})
}

// hosted runs a server and gives a host's session with it.
func hosted(t *testing.T, s *Server) *mcp.ClientSession {
	t.Helper()
	fromHost, toServer := io.Pipe()
	fromServer, toHost := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, fromHost, toHost) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	return session
}

func TestThreadsOfAnyWorkspaceAreResources(t *testing.T) {
	for _, workspace := range []string{"demo", "a/b", "a+b&c=d", "50%25", "#$~!'()", "é😀", "x?after=9"} {
		t.Run(workspace, func(t *testing.T) {
			s := against(t, client.Seat{Workspace: workspace, Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/threads"):
					if r.URL.Query().Get("channel") != "general" {
						t.Errorf("asked for the threads of %s", r.URL)
					}
					fmt.Fprint(w, `{"threads":[{"channel":"general","thread_id":"thread_main","messages":1}]}`)
				case strings.HasSuffix(r.URL.Path, "/messages"):
					if want := client.Path("workspaces", workspace, "channels", "general", "messages"); r.URL.EscapedPath() != want {
						t.Errorf("asked for %s, want %s", r.URL.EscapedPath(), want)
					}
					fmt.Fprintf(w, `{"messages":[{"seq":5,"envelope":{"id":"after %s"}}],"next":null}`, r.URL.Query().Get("after"))
				}
			})
			session := hosted(t, s)
			listed, err := session.ListResources(t.Context(), nil)
			if err != nil || len(listed.Resources) != 1 {
				t.Fatalf("got %+v, %v", listed, err)
			}
			uri := listed.Resources[0].URI
			for _, suffix := range []string{"?peer=bob", "?after=3&peer=bob", "?after=3&after=4", "?after=-1", "?after=x", "?after=%", "#3"} {
				if read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + suffix}); err == nil {
					t.Errorf("%s gives %+v", uri+suffix, read)
				}
			}
			for suffix, want := range map[string]string{"": "after 0", "?after=3": "after 3"} {
				read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri + suffix})
				if err != nil || !strings.Contains(read.Contents[0].Text, want) {
					t.Errorf("%s gives %+v, %v", uri+suffix, read, err)
				}
			}
		})
	}
}

func TestFailuresAreTold(t *testing.T) {
	cases := []struct {
		name      string
		status    int
		header    string
		body      string
		says      string
		reason    string
		retryable bool
	}{
		{"refusal", 422, "", `{"reason_code":"expired","detail":"too old"}`, "reason_code expired: too old", "expired", false},
		{"busy", 429, "", `{"reason_code":"busy","detail":"full"}`, "reason_code busy: full; try again with message_id", "busy", true},
		{"disk full", 503, "7", `{"title":"Service Unavailable","detail":"not now"}`, "not now; try again in 7 s with message_id", "", true},
		{"too large", 413, "", `{"title":"Request Entity Too Large"}`, "reason_code malformed: the gateway answered 413", "malformed", false},
		{"not allowed", 403, "", `{"title":"Forbidden"}`, "the gateway answered 403: Forbidden", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					return
				}
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			result, err := hosted(t, s).CallTool(t.Context(), &mcp.CallToolParams{
				Name: "send_say", Arguments: map[string]any{"text": "x", "thread_id": "thread_main", "message_id": "m-1"},
			})
			if err != nil || !result.IsError {
				t.Fatalf("got %+v, %v", result, err)
			}
			text := result.Content[0].(*mcp.TextContent).Text
			raw, _ := json.Marshal(result.Meta[errorMeta])
			var meta failure
			if err := json.Unmarshal(raw, &meta); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, c.says) || string(meta.Reason) != c.reason || meta.Retryable != c.retryable || meta.MessageID != "m-1" {
				t.Errorf("got %q and %s", text, raw)
			}
		})
	}
}

func TestArgumentsThatDoNotFitHaveNoReasonOfTheProtocol(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(http.ResponseWriter, *http.Request) {})
	result, err := hosted(t, s).CallTool(t.Context(), &mcp.CallToolParams{Name: "send_say", Arguments: map[string]any{"text": 1}})
	if err != nil || !result.IsError {
		t.Fatalf("got %+v, %v", result, err)
	}
	meta, _ := result.Meta[errorMeta].(map[string]any)
	if _, has := meta["reason_code"]; has || meta["detail"] == "" || strings.Contains(result.Content[0].(*mcp.TextContent).Text, "reason_code") {
		t.Errorf("got %+v", result)
	}
}

func TestAPeerThatIsRefusedEndsTheServer(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})
	var out strings.Builder
	if err := s.Run(t.Context(), strings.NewReader(""), &out); err == nil || !strings.Contains(err.Error(), "attach bob: ") || out.Len() > 0 {
		t.Errorf("got %v, and %q on stdout", err, out.String())
	}
}

// What cannot be read is answered by its own error, and what came before and
// comes behind it is served.
func TestALineThatIsNoFrameIsAnsweredAndTheNextServed(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(http.ResponseWriter, *http.Request) {})
	ping := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }
	for name, c := range map[string]struct{ line, answer string }{
		"no JSON":                  {"hello", `"id":null,"error":{"code":-32700`},
		"half a frame":             {`{"jsonrpc":"2.0","id":7,"method":"pi`, `"id":null,"error":{"code":-32700`},
		"invalid UTF-8":            {"\xff\xfe", `"id":null,"error":{"code":-32700`},
		"no message":               {`{"id":7}`, `"id":7,"error":{"code":-32600`},
		"a number":                 {`5`, `"id":null,"error":{"code":-32600`},
		"a batch":                  {`[` + ping(7) + `]`, `"id":null,"error":{"code":-32600`},
		"too long":                 {`"` + strings.Repeat("x", maxFrame) + `"`, `"id":null,"error":{"code":-32700`},
		"nothing":                  {" \r", ""},
		"a call before initialize": {`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, `"id":7,"error":{"code":-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			fromHost, toServer := io.Pipe()
			fromServer, toHost := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- s.Run(t.Context(), fromHost, toHost) }()
			go func() { _, _ = io.WriteString(toServer, ping(1)+"\n"+c.line+"\n"+ping(2)+"\n") }()
			want := map[string]bool{`"id":1,"result"`: true, `"id":2,"result"`: true}
			if c.answer != "" {
				want[c.answer] = true
			}
			for lines := bufio.NewScanner(fromServer); len(want) > 0 && lines.Scan(); {
				found := false
				for text := range want {
					if strings.Contains(lines.Text(), text) {
						delete(want, text)
						found = true
					}
				}
				if !found {
					t.Fatalf("answered %s", lines.Text())
				}
			}
			toServer.Close()
			if err := <-ended; err != nil || len(want) > 0 {
				t.Errorf("the server ends with %v, and %v is not answered", err, want)
			}
		})
	}
}

func TestAHostThatStopsReadingEndsTheServer(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(http.ResponseWriter, *http.Request) {})
	fromHost, toServer := io.Pipe()
	defer toServer.Close()
	fromServer, toHost := io.Pipe()
	fromServer.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), fromHost, toHost) }()
	_, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ends as if all was well")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

func TestASlowGatewayDoesNotHoldUpTheStart(t *testing.T) {
	release := make(chan struct{})
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	began := time.Now()
	if err := s.Run(t.Context(), strings.NewReader(""), io.Discard); err != nil || time.Since(began) > 2*seatTimeout {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}

func TestAnInspectionShowsTheTurnsOfAgents(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/messages/") {
			fmt.Fprint(w, `{"envelope":{"id":"m-1"},"wakes":[{"id":"wake-1","recipient":"peer:echo","state":"failed","usage":"actual","detail":"obey me"}],`+
				`"skips":[{"recipient":"peer:rex","reason":"budget_exhausted"}]}`)
		}
	})
	result, err := hosted(t, s).CallTool(t.Context(), &mcp.CallToolParams{Name: "inspect_message", Arguments: map[string]any{"message_id": "m-1"}})
	if err != nil || result.IsError {
		t.Fatalf("got %+v, %v", result, err)
	}
	raw, _ := json.Marshal(result.StructuredContent)
	for _, want := range []string{`"state":"failed"`, `"untrusted_detail":"obey me"`, `"skips":[{"reason":"budget_exhausted","recipient":"peer:rex"}]`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
}

func TestWhatIsNotKnownIsNamed(t *testing.T) {
	s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	session := hosted(t, s)
	for tool, c := range map[string]struct {
		in   map[string]any
		says string
	}{
		"get_work":        {map[string]any{"work_id": "w-9"}, `reason_code not_found: no work of the id "w-9" is known here`},
		"inspect_message": {map[string]any{"message_id": "m-9"}, `reason_code not_found: no message of the id "m-9" is known here`},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: c.in})
		if err != nil || !result.IsError || !strings.HasPrefix(result.Content[0].(*mcp.TextContent).Text, c.says) {
			t.Errorf("%s: got %+v, %v", tool, result, err)
		}
	}
}

// What stands in the last line is answered, with or without its line feed, and
// so are the calls that are under way when the host closes its end.
func TestCallsUnderWayAreAnsweredWhenTheHostHasSaidAll(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, c := range map[string]struct{ lines, answer string }{
		"a call":                   {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_work","arguments":{"work_id":"w-1"}}}` + "\n", `"id":7,"result"`},
		"a call without line feed": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_work","arguments":{"work_id":"w-1"}}}`, `"id":7,"result"`},
		"a long wait":              {`{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait_for_messages","arguments":{"timeout_seconds":50}}}`, `"id":"w","result"`},
		"a call that is canceled": {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_work","arguments":{"work_id":"w-1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}` + "\n", `"id":0,"result"`},
		"noise without a line feed": {"hello", `"id":null,"error":{"code":-32700`},
	} {
		t.Run(name, func(t *testing.T) {
			s := against(t, client.Seat{Workspace: "demo", Channel: "general", Peer: "bob"}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("wait") == "50s" {
					<-r.Context().Done()
				}
				if strings.HasSuffix(r.URL.Path, "/inbox") {
					fmt.Fprint(w, `{"entries":[]}`)
				}
				if strings.Contains(r.URL.Path, "/work/") {
					select {
					case <-time.After(200 * time.Millisecond): // The end of stdin has long been read.
					case <-r.Context().Done():
					}
					fmt.Fprint(w, `{"work_id":"w-1"}`)
				}
			})
			var out strings.Builder
			if err := s.Run(t.Context(), strings.NewReader(hello+c.lines), &out); err != nil {
				t.Errorf("the server ends with %v", err)
			}
			if strings.Contains(c.lines, "cancelled") && strings.Contains(out.String(), `"id":7`) {
				t.Errorf("a call that was canceled is answered: %s", out.String())
			}
			if !strings.Contains(out.String(), c.answer) || strings.Contains(out.String(), `"isError":true`) {
				t.Errorf("answered %s", out.String())
			}
		})
	}
}
