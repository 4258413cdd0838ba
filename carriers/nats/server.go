package nats

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// serverPayload lets an envelope of 1 MiB and its headers through.
	serverPayload = 2 << 20
	// serverStorage bounds what streams may reserve. The library's own default is
	// a share of the space that is free at the start, which would stay small after
	// a start on a full disk.
	serverStorage = 1 << 40
	// startTimeout bounds how long the listener may take once the store is read.
	startTimeout = 10 * time.Second
)

// ServerConfig is the configuration of the embedded server.
type ServerConfig struct {
	Enabled bool `koanf:"enabled"`
	// Listen is host:port, on a loopback address: the embedded server knows no
	// passwords. Port 0 takes any free one.
	Listen string `koanf:"listen"`
	// JetStream turns the stream store on.
	JetStream bool `koanf:"jetstream"`
}

// DefaultServerConfig is the configuration without a word from anybody.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{Enabled: true, Listen: "127.0.0.1:4222", JetStream: true}
}

// Validate reports every problem, each message beginning with its key below the
// given one.
func (c ServerConfig) Validate(key string) []error {
	if !c.Enabled {
		return nil
	}
	p := problems{key: key}
	host, _, err := c.address()
	if err != nil {
		p.add("listen", err)
	} else if !isLoopback(host) {
		p.addf("listen", "%q is not a loopback address: the embedded server knows no passwords; "+
			"run a nats-server of its own to be reached from elsewhere", host)
	}
	return p.list
}

func (c ServerConfig) address() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not of the form host:port", c.Listen)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no port between 0 and 65535", c.Listen)
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Server is a nats-server inside the process.
type Server struct {
	log      *slog.Logger
	options  server.Options
	storeDir string
	probe    probe

	mu      sync.Mutex
	current *server.Server
	addr    string

	stop chan struct{}
	done chan struct{}
}

// StartServer starts a server that listens on cfg.Listen and keeps its streams
// below storeDir. It syncs every message to the disk before it acknowledges it.
// A port that is in use is an error that begins with embedded.nats.listen. Close
// ends it.
func StartServer(cfg ServerConfig, storeDir string, logger *slog.Logger) (*Server, error) {
	return startServer(cfg, storeDir, logger, probeEvery)
}

func startServer(cfg ServerConfig, storeDir string, logger *slog.Logger, every time.Duration) (*Server, error) {
	if problems := cfg.Validate("embedded.nats"); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	host, port, err := cfg.address()
	if err != nil {
		return nil, err
	}
	// The library reports an occupied port to its log only.
	trial, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded.nats.listen: %w", err)
	}
	if err := trial.Close(); err != nil {
		return nil, fmt.Errorf("embedded.nats.listen: %w", err)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s := &Server{
		log:      logger.With("server", "embedded nats"),
		storeDir: storeDir,
		options: server.Options{
			ServerName:        "compozy-gateway-embedded",
			Host:              host,
			Port:              port,
			NoSigs:            true,
			MaxPayload:        serverPayload,
			JetStream:         cfg.JetStream,
			StoreDir:          storeDir,
			SyncAlways:        true,
			JetStreamMaxStore: serverStorage,
		},
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	if cfg.JetStream {
		if err := os.MkdirAll(storeDir, 0o700); err != nil {
			return nil, fmt.Errorf("embedded.nats: make the store directory: %w", err)
		}
	}
	s.probe = probe{every: every, suspicion: probeSuspicion, longestPause: longestRestartPause, canWrite: s.canWrite}
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("embedded.nats: %w", err)
	}
	// A restart in place comes back on the same port.
	s.options.Port = s.port()
	go func() {
		defer close(s.done)
		s.watch()
	}()
	return s, nil
}

// start brings one server up.
func (s *Server) start() error {
	options := s.options
	srv, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	log := &serverLog{log: s.log}
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	if fatal := log.fatal(); fatal != "" || !srv.ReadyForConnections(startTimeout) {
		srv.Shutdown()
		srv.WaitForShutdown()
		if fatal == "" {
			fatal = fmt.Sprintf("the server did not listen within %v", startTimeout)
		}
		return errors.New(fatal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = srv
	s.addr = srv.Addr().String()
	return nil
}

// running is the present server.
func (s *Server) running() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Addr is the host:port that it listens on.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

func (s *Server) port() int {
	if tcp, ok := s.running().Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return s.options.Port
}

// ClientURL is where clients connect to.
func (s *Server) ClientURL() string { return "nats://" + s.Addr() }

// Close ends the server and waits until it has ended. It may be called once.
func (s *Server) Close() {
	close(s.stop)
	<-s.done
	s.shutdown()
}

func (s *Server) shutdown() {
	srv := s.running()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// canWrite reports whether the store's disk takes a small file again.
func (s *Server) canWrite() error {
	if !s.options.JetStream {
		return nil
	}
	path := filepath.Join(s.storeDir, "write-probe")
	err := writeSynced(path, make([]byte, serverPayload))
	if removed := os.Remove(path); err == nil && removed != nil && !os.IsNotExist(removed) {
		err = removed
	}
	return err
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
