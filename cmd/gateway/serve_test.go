package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	natsclient "github.com/nats-io/nats.go"
)

const (
	patience = 40 * time.Second
	tick     = 10 * time.Millisecond
)

// lockedBuffer is output that a test reads while a command writes it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// background is a command that goes on.
type background struct {
	stdout, stderr lockedBuffer
	stop           context.CancelFunc
	done           chan struct{}
	status         int
}

func inBackground(t *testing.T, environ []string, stdin io.Reader, args ...string) *background {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	b := &background{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		p := &process{stdin: stdin, stdout: &b.stdout, stderr: &b.stderr, environ: environ, program: "gateway"}
		b.status = p.run(ctx, args)
	}()
	t.Cleanup(func() { b.end(t) })
	return b
}

// end stops the command and waits for it.
func (b *background) end(t *testing.T) {
	t.Helper()
	b.stop()
	b.wait(t)
}

func (b *background) wait(t *testing.T) {
	t.Helper()
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatalf("the command does not end\nstdout: %s\nstderr: %s", &b.stdout, &b.stderr)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came about: %s", what)
		}
		<-time.After(tick)
	}
}

// served is a gateway with free ports and a data directory of its own.
type served struct {
	*background
	http, nats, mqtt string
}

func freePorts() []string {
	return []string{
		"GATEWAY_EMBEDDED__NATS__LISTEN=127.0.0.1:0", "GATEWAY_EMBEDDED__MQTT__LISTEN=127.0.0.1:0",
		"GATEWAY_CARRIERS__HTTP__LISTEN=127.0.0.1:0",
	}
}

func serveGateway(t *testing.T, dir string) *served {
	t.Helper()
	return serveGatewayIn(t, freePorts(), dir)
}

func serveGatewayIn(t *testing.T, environ []string, dir string, flags ...string) *served {
	t.Helper()
	args := append([]string{"serve", "--data-dir", dir}, flags...)
	s := &served{background: inBackground(t, environ, nil, args...)}
	find := func(pattern string) string {
		expression := regexp.MustCompile(pattern)
		var found string
		eventually(t, "the welcome says "+pattern, func() bool {
			select {
			case <-s.done:
				t.Fatalf("serve ended with %d: %s", s.status, &s.stderr)
			default:
			}
			match := expression.FindStringSubmatch(s.stdout.String())
			if match != nil {
				found = match[1]
			}
			return match != nil
		})
		return found
	}
	s.http = find(`http +http +(\S+)\n`)
	s.nats = find(`nats +nats +(\S+) \(embedded\)\n`)
	s.mqtt = find(`mqtt +mqtt +(\S+)(?: \(embedded\))?\n`)
	eventually(t, "every carrier is ready", func() bool {
		return commandIn(t.Context(), nil, nil, "deadletters", "list", "--url", s.http).status == exitGood && s.ready(t)
	})
	return s
}

func (s *served) ready(t *testing.T) bool {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://"))
	if err != nil {
		return false
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
	answer, err := io.ReadAll(conn)
	return err == nil && strings.Contains(string(answer), " 200 ")
}

func envelope(id, from, text string) string {
	return fmt.Sprintf(`{"protocol":"compozy-network/v0","id":%q,"workspace_id":"demo","kind":"say","channel":"general",`+
		`"surface":"thread","thread_id":"thread_main","from":%q,"ts":%d,"body":{"text":%q},"ext":{"n":1.10}}`,
		id, from, time.Now().Unix(), text)
}

func TestAMessageGoesFromEveryCarrierToEveryOther(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	tail := inBackground(t, nil, nil, "tail", "--workspace", "demo", "--channel", "general", "--after", "0", "--url", s.http)

	var onNATS, onMQTT lockedBuffer
	bus, err := natsclient.Connect(s.nats)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if _, err := bus.Subscribe("compozy.network.v0.demo.general.>", func(m *natsclient.Msg) { fmt.Fprintf(&onNATS, "%s\n", m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := bus.Flush(); err != nil {
		t.Fatal(err)
	}
	device := paho.NewClient(paho.NewClientOptions().AddBroker(s.mqtt).SetClientID("device").SetAutoReconnect(false))
	if token := device.Connect(); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	defer device.Disconnect(100)
	token := device.Subscribe("compozy/network/v0/demo/general/#", 1, func(_ paho.Client, m paho.Message) { fmt.Fprintf(&onMQTT, "%s\n", m.Payload()) })
	if token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}

	sent := []string{envelope("by-http", "alice", "hello <b> & é"), envelope("by-nats", "nat", "from the bus"), envelope("by-mqtt", "dev", "from a device")}
	if got := command(t, sent[0], "send", "--url", s.http); got.status != exitGood {
		t.Fatalf("send: %+v", got)
	}
	if err := bus.Publish("compozy.network.v0.demo.general.broadcast", []byte(sent[1])); err != nil {
		t.Fatal(err)
	}
	if token := device.Publish("compozy/network/v0/demo/general/broadcast", 1, false, sent[2]); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	for _, want := range sent {
		for name, where := range map[string]*lockedBuffer{"NATS": &onNATS, "MQTT": &onMQTT, "tail": &tail.stdout} {
			eventually(t, name+" has "+want, func() bool { return strings.Contains(where.String(), want+"\n") })
		}
	}

	got := command(t, "", "inspect", "by-mqtt", "--workspace", "demo", "--url", s.http, "-o", "json")
	var seen struct {
		Carrier, Arrival string
		Decisions        []struct{ Recipient, Decision, Reason string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &seen); err != nil || got.status != exitGood {
		t.Fatalf("inspect: %+v, %v", got, err)
	}
	if seen.Carrier != "mqtt" || seen.Arrival != "native" || len(seen.Decisions) != 2 {
		t.Errorf("inspect says %+v", seen)
	}
	text := command(t, "", "inspect", "by-mqtt", "--workspace", "demo", "--url", s.http).stdout
	for _, part := range []string{"carrier:nats", "deliver", "origin", "Receipts from peers: none"} {
		if !strings.Contains(text, part) {
			t.Errorf("inspect does not show %q:\n%s", part, text)
		}
	}
	tail.end(t)
	s.end(t)
	if tail.status != exitGood || s.status != exitGood {
		t.Errorf("tail ended with %d, serve with %d: %s", tail.status, s.status, &s.stderr)
	}
}

func TestAttachSpeaksAsAPeerAndEndsWithItsInput(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	reader, writer := io.Pipe()
	defer writer.Close()
	bob := inBackground(t, nil, reader, "attach", "--workspace", "demo", "--channel", "general", "--peer", "bob", "--url", s.http)
	write := func(line string) {
		t.Helper()
		if _, err := io.WriteString(writer, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hello := envelope("b-1", "bob", "I am bob")
	write(hello)
	write("a banner, which is not an envelope")
	write(hello)
	write(`{"protocol":"compozy-network/v0","id":"b-2"}`)
	write(`{"carrier":{"ack":"nothing"}}`)
	eventually(t, "all lines have their answer", func() bool { return strings.Contains(bob.stdout.String(), `"nack":"b-2"`) })

	to := strings.Replace(envelope("a-1", "alice", "to bob"), `"ts"`, `"to":"bob","ts"`, 1)
	if got := command(t, to, "send", "--url", s.http); got.status != exitGood {
		t.Fatalf("send: %+v", got)
	}
	eventually(t, "bob has the message", func() bool { return strings.Contains(bob.stdout.String(), to+"\n") })
	eventually(t, "the delivery is acknowledged", func() bool {
		return strings.Contains(command(t, "", "inspect", "a-1", "--workspace", "demo", "--url", s.http).stdout, "http.cursor")
	})
	writer.Close()
	bob.wait(t)
	if bob.status != exitGood {
		t.Errorf("attach ended with %d: %s", bob.status, &bob.stderr)
	}
	lines := strings.Split(strings.TrimSuffix(bob.stdout.String(), "\n"), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of stdout is no JSON: %s", line)
		}
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[0], `{"carrier":{"ack":"b-1","seq":`) || !strings.Contains(lines[1], `"duplicate":true`) {
		t.Errorf("stdout is\n%s", strings.Join(lines, "\n"))
	}
}

func TestARestartServesTheSameHistory(t *testing.T) {
	dir := t.TempDir()
	first := serveGateway(t, dir)
	if got := command(t, envelope("kept", "alice", "x"), "send", "--url", first.http); got.status != exitGood {
		t.Fatalf("send: %+v", got)
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if got := command(t, "", "backup", "--data-dir", dir, file); got.status != exitGood {
		t.Fatalf("backup: %+v", got)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("the backup is %v, %v", info, err)
	}
	first.end(t)
	second := serveGateway(t, dir)
	if got := command(t, "", "inspect", "kept", "--workspace", "demo", "--url", second.http); got.status != exitGood {
		t.Errorf("inspect: %+v", got)
	}
}

func TestTailMissesNothingOverARestartBeforeTheFirstMessage(t *testing.T) {
	dir := t.TempDir()
	first := serveGateway(t, dir)
	port := "GATEWAY_CARRIERS__HTTP__LISTEN=" + strings.TrimPrefix(first.http, "http://")
	if got := command(t, envelope("before", "alice", "x"), "send", "--url", first.http); got.status != exitGood {
		t.Fatalf("send: %+v", got)
	}
	tail := inBackground(t, nil, nil, "tail", "--workspace", "demo", "--channel", "general", "--url", first.http, "--log-level", "debug")
	eventually(t, "the stream is open", func() bool { return strings.Contains(tail.stderr.String(), "position") })
	first.end(t)
	second := serveGatewayIn(t, append(freePorts(), port), dir)
	if got := command(t, envelope("during", "alice", "x"), "send", "--url", second.http); got.status != exitGood {
		t.Fatalf("send: %+v", got)
	}
	eventually(t, "the message has come", func() bool { return strings.Contains(tail.stdout.String(), `"during"`) })
	if strings.Contains(tail.stdout.String(), `"before"`) {
		t.Errorf("tail shows what was there before it: %s", &tail.stdout)
	}
}

func TestServeEndsWithStatus2WhereItCannotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	running := t.TempDir()
	serveGateway(t, running)
	file := writeFile(t, "file", "x")
	cases := []struct {
		name    string
		dir     string
		environ []string
		key     string
		// advice is what the line says can be done.
		advice string
	}{
		{
			"HTTP port in use", t.TempDir(),
			[]string{"GATEWAY_CARRIERS__HTTP__LISTEN=" + address},
			"carriers.http.listen", "set carriers.http.listen to another address (GATEWAY_CARRIERS__HTTP__LISTEN)",
		},
		{
			"NATS port in use", t.TempDir(),
			[]string{"GATEWAY_EMBEDDED__NATS__LISTEN=" + address},
			"embedded.nats.listen", "set embedded.nats.listen to another address (GATEWAY_EMBEDDED__NATS__LISTEN; port 0 takes a free one), or to use the broker that is there, embedded.nats.enabled: false",
		},
		{
			"MQTT port in use", t.TempDir(),
			[]string{"GATEWAY_EMBEDDED__MQTT__LISTEN=" + address, "GATEWAY_CARRIERS__MQTT__URL=tcp://" + address},
			"embedded.mqtt.listen", ", and carriers.mqtt.url to the same, or",
		},
		{"data directory in use", running, nil, "data_dir", ""},
		{"data directory below a file", filepath.Join(file, "data"), nil, "data_dir", ""},
		{"line limit below the envelope's", t.TempDir(), []string{"GATEWAY_CARRIERS__AGENTS__MAX_LINE=10"}, "carriers.agents", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := commandIn(t.Context(), append(freePorts(), c.environ...), nil, "serve", "--data-dir", c.dir, "--log-level", "error")
			line := strings.TrimSuffix(got.stderr, "\n")
			if got.status != exitUsage || !strings.HasPrefix(line, "error: "+c.key) || strings.Contains(line, "\n") {
				t.Errorf("status %d, stderr %q; want one line that begins with %s", got.status, got.stderr, c.key)
			}
			if !strings.Contains(line, c.advice) {
				t.Errorf("%q does not say %q", line, c.advice)
			}
			if got.stdout != "" {
				t.Errorf("stdout is %q", got.stdout)
			}
		})
	}
}

func TestABrokerThatIsDownIsNoError(t *testing.T) {
	environ := append(freePorts(), "GATEWAY_EMBEDDED__NATS__ENABLED=false", "GATEWAY_CARRIERS__NATS__URL=nats://user:hunter2@127.0.0.1:1")
	b := inBackground(t, environ, nil, "serve", "--data-dir", t.TempDir())
	eventually(t, "it serves", func() bool { return strings.Contains(b.stdout.String(), "To try it") })
	s := &served{background: b}
	s.http = regexp.MustCompile(`http +http +(\S+)\n`).FindStringSubmatch(b.stdout.String())[1]
	if got := command(t, envelope("m", "alice", "x"), "send", "--url", s.http); got.status != exitGood {
		t.Errorf("send: %+v", got)
	}
	if s.ready(t) {
		t.Error("it says it is ready, without its broker")
	}
	b.end(t)
	if b.status != exitGood {
		t.Errorf("serve ended with %d", b.status)
	}
	if strings.Contains(b.stdout.String()+b.stderr.String(), "hunter2") {
		t.Errorf("a password is shown:\n%s%s", &b.stdout, &b.stderr)
	}
}
