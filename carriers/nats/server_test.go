package nats

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats-server/v2/server"
)

func embedded(t testing.TB, dir string, l *logs) *Server {
	t.Helper()
	s, err := StartServer(ServerConfig{Enabled: true, Listen: "127.0.0.1:0", JetStream: true}, dir, l.logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestEmbeddedServerCarriesBothWays(t *testing.T) {
	s := embedded(t, t.TempDir(), &logs{})
	cfg := DefaultConfig()
	cfg.URL = s.ClientURL()
	in := committing()
	r := ready(t, cfg, in)
	// An envelope of 1 MiB passes, with its headers.
	if o := r.send(message("t1", strings.Repeat("x", 1<<20))); o.err != nil {
		t.Fatal(o.err)
	}
	eventually(t, "it comes back", func() bool { return len(in.seen()) == 1 })
	if host, _, err := net.SplitHostPort(s.Addr()); err != nil || host != "127.0.0.1" {
		t.Errorf("it listens on %s", s.Addr())
	}
}

func TestEmbeddedServerKeepsItsStreamsOverARestart(t *testing.T) {
	dir := t.TempDir()
	cfg := DefaultConfig()
	first, err := StartServer(ServerConfig{Enabled: true, Listen: "127.0.0.1:0", JetStream: true}, dir, (&logs{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	cfg.URL = first.ClientURL()
	r := ready(t, cfg, committing())
	if o := r.send(message("t1", "kept")); o.err != nil {
		t.Fatal(o.err)
	}
	r.stop()
	first.Close()
	cfg.URL = embedded(t, dir, &logs{}).ClientURL()
	in := committing()
	c, err := New(cfg, core.Host{Name: "nats", InstanceID: "another"})
	if err != nil {
		t.Fatal(err)
	}
	runCarrier(t, c, in)
	eventually(t, "the message is offered", func() bool { return in.count("kept") == 1 })
}

func TestOccupiedPortIsOneClearError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = StartServer(ServerConfig{Enabled: true, Listen: taken.Addr().String()}, t.TempDir(), (&logs{}).logger())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.HasPrefix(err.Error(), "embedded.nats.listen: ") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
}

func TestStoreThatCannotBeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := StartServer(ServerConfig{Listen: "127.0.0.1:0", JetStream: true}, filepath.Join(file, "store"), (&logs{}).logger()); err == nil {
		t.Error("a store below a file is taken")
	}
}

func TestFatalOfTheServerIsKept(t *testing.T) {
	l := &serverLog{log: (&logs{}).logger()}
	l.Fatalf("first %d", 1)
	l.Fatalf("second")
	if l.fatal() != "first 1" {
		t.Errorf("kept %q", l.fatal())
	}
}

func TestEmbeddedServerWithoutAStore(t *testing.T) {
	s, err := StartServer(ServerConfig{Enabled: true, Listen: "127.0.0.1:0"}, filepath.Join(t.TempDir(), "none"), (&logs{}).logger())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.health(); err != nil {
		t.Errorf("it is not well: %v", err)
	}
	cfg := DefaultConfig()
	cfg.URL, cfg.Mode = s.ClientURL(), ModeCore
	if o := ready(t, cfg, committing()).send(message("t1", "x")); o.err != nil {
		t.Error(o.err)
	}
}

// TestDeadServerIsStartedAgain takes the server down behind the watchdog's back,
// and wants it back on its port with what it had.
func TestDeadServerIsStartedAgain(t *testing.T) {
	s := startProbed(t, t.TempDir(), &logs{})
	cfg := DefaultConfig()
	cfg.URL = s.ClientURL()
	r := ready(t, cfg, committing())
	before := s.Addr()
	s.running().Shutdown()
	eventually(t, "the server runs again", func() bool { return s.health() == nil })
	if s.Addr() != before {
		t.Errorf("it moved from %s to %s", before, s.Addr())
	}
	eventually(t, "messages pass", func() bool { return r.send(message("t1", "x")).err == nil })
}

// startProbed starts an embedded server with an impatient watchdog.
func startProbed(t testing.TB, dir string, l *logs) *Server {
	t.Helper()
	s, err := startServer(ServerConfig{Enabled: true, Listen: "127.0.0.1:0", JetStream: true}, dir, l.logger(), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestProbe(t *testing.T) {
	sick, full := errors.New("write error"), errors.New("disk full")
	type look struct {
		at     time.Duration
		health error
		disk   error
		want   bool
	}
	cases := []struct {
		name  string
		looks []look
	}{
		{"well", []look{{0, nil, nil, false}, {1, nil, nil, false}}},
		{"one bad look", []look{{0, sick, nil, false}, {1, nil, nil, false}, {2, sick, nil, false}}},
		{"sick", []look{{0, sick, nil, false}, {1, sick, nil, true}}},
		{"sick while the disk is full", []look{{0, sick, full, false}, {1, sick, full, false}, {2, sick, full, false}, {3, sick, nil, true}}},
		{"a restart that does not help", []look{
			{0, sick, nil, false},
			{1 * time.Second, sick, nil, true},
			{2 * time.Second, sick, nil, false},
			{3 * time.Second, sick, nil, true},
			{4 * time.Second, sick, nil, false},
			{5 * time.Second, sick, nil, false},
			{6 * time.Second, sick, nil, false},
			{7 * time.Second, sick, nil, true},
		}},
		{"well again for long", []look{
			{0, sick, nil, false},
			{1 * time.Second, sick, nil, true},
			{2 * time.Second, nil, nil, false},
			{9 * time.Second, nil, nil, false},
			{10 * time.Second, sick, nil, false},
			{11 * time.Second, sick, nil, true},
		}},
	}
	begin := time.Now()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var disk error
			p := probe{every: 2 * time.Second, suspicion: 2, longestPause: time.Minute, canWrite: func() error { return disk }}
			for i, l := range tc.looks {
				disk = l.disk
				if got := p.restart(l.health, begin.Add(l.at)); got != l.want {
					t.Fatalf("look %d: restart %v, want %v", i, got, l.want)
				}
			}
		})
	}
}

func TestPausesBetweenRestartsAreBounded(t *testing.T) {
	p := probe{every: 2 * time.Second, suspicion: 1, longestPause: 10 * time.Second, canWrite: func() error { return nil }}
	now := time.Now()
	for range 20 {
		p.restart(errors.New("sick"), now)
		if p.pause > p.longestPause {
			t.Fatalf("the pause is %v", p.pause)
		}
		now = now.Add(time.Hour)
	}
}

func TestEmbeddedServerSyncsBeforeItAcknowledges(t *testing.T) {
	s := embedded(t, t.TempDir(), &logs{})
	v, err := s.running().Jsz(&server.JSzOptions{Config: true})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Config.SyncAlways {
		t.Errorf("the store's configuration is %+v", v.Config)
	}
}
