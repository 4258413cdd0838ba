package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	nethttp "net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	testWS          = "ws-1"
	testCh          = "lab"
	testMaxEnvelope = 64 << 10
	patience        = 30 * time.Second

	channelPath = "/v0/workspaces/" + testWS + "/channels/" + testCh
)

// site is a carrier under test with a gateway in memory behind it.
type site struct {
	*testing.T
	mem     *memory
	carrier *Carrier
	url     string
	logs    *logBuffer
	client  *nethttp.Client
	stop    func()
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	cfg.ShutdownTimeout = time.Second
	return cfg
}

// testHost is the host that carriers under test are built with.
func testHost(logs io.Writer) core.Host {
	return core.Host{
		Name: "http", InstanceID: "i-1", MaxEnvelopeBytes: testMaxEnvelope, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// start runs a carrier with a changed configuration until the test ends.
func start(t *testing.T, changes ...func(*Config)) *site {
	t.Helper()
	cfg := testConfig()
	for _, change := range changes {
		change(&cfg)
	}
	s := &site{T: t, mem: newMemory(), logs: &logBuffer{}}
	var err error
	s.carrier, err = New(cfg, testHost(s.logs), Backend{Reader: s.mem, Inboxes: s.mem, DeadLetters: s.mem, Fleet: s.mem, Pins: s.mem, Agents: hostedAgents{}})
	if err != nil {
		t.Fatal(err)
	}
	s.mem.pins = s.carrier.Pins()
	if err := s.carrier.Listen(); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + s.carrier.Addr().String()
	s.client = &nethttp.Client{Transport: &nethttp.Transport{}, Timeout: patience}
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() {
		if err := s.carrier.Run(ctx, s.mem); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	memCtx, stopMem := context.WithCancel(context.Background())
	var memory sync.WaitGroup
	memory.Go(func() { s.mem.run(memCtx) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		tasks.Wait()
		s.client.CloseIdleConnections()
		stopMem()
		memory.Wait()
	})
	t.Cleanup(s.stop)
	eventually(t, "the carrier is ready", func() bool { return s.carrier.Status().State == core.StateReady })
	return s
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header nethttp.Header
	body   []byte
}

// do sends a request and reads the answer. Every answer that is not 2xx must be
// a problem.
func (s *site) do(req *nethttp.Request) reply {
	s.Helper()
	resp, err := s.client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	r := reply{resp.StatusCode, resp.Header, body}
	if r.status/100 != 2 {
		r.problem(s.T)
	}
	return r
}

func (s *site) request(method, path, body string, headers ...string) *nethttp.Request {
	s.Helper()
	req, err := nethttp.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body == "" {
		req.Body = nethttp.NoBody
	} else {
		req.Header.Set("Content-Type", typeJSON)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func (s *site) get(path string, headers ...string) reply {
	s.Helper()
	return s.do(s.request("GET", path, "", headers...))
}

func (s *site) post(body string, headers ...string) reply {
	s.Helper()
	return s.do(s.request("POST", "/v0/envelopes", body, headers...))
}

// problem reads the answer as RFC 9457 has it.
func (r reply) problem(t *testing.T) problem {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != typeProblem {
		t.Fatalf("an answer %d has the type %q: %s", r.status, got, r.body)
	}
	var p problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatalf("problem %s: %v", r.body, err)
	}
	if p.Status != r.status || p.Type == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("an answer %d has the problem %s", r.status, r.body)
	}
	return p
}

// into reads the answer as JSON.
func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("answer %s: %v", r.body, err)
	}
}

func wantStatus(t *testing.T, r reply, want int) {
	t.Helper()
	if r.status != want {
		t.Fatalf("status %d, want %d: %s", r.status, want, r.body)
	}
}

// say is an envelope with that id.
func say(id string, extra ...string) string {
	return fmt.Sprintf(`{"protocol":%q,"id":%q,"workspace_id":%q,"kind":"say","channel":%q,"surface":"thread",`+
		`"thread_id":"thread_one","from":"ada","ts":%d,"body":{"text":"hello"}%s}`,
		core.Protocol, id, testWS, testCh, time.Now().Unix(), strings.Join(extra, ""))
}

// eventually waits for something that must come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// file writes a file for this test.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
