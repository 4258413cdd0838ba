package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A puppet is an agent that does what a test tells it over a socket, and tells
// the test what it reads.

const (
	puppetSocket   = "STDIO_TEST_SOCKET"
	puppetExplicit = "STDIO_TEST_EXPLICIT"
)

// order is one thing that a puppet is told to do.
type order struct {
	// Write and Complain are bytes for its output and its standard error.
	Write    []byte `json:",omitempty"`
	Complain []byte `json:",omitempty"`
	// Read and Acknowledge switch what it does with its input.
	Read        *bool `json:",omitempty"`
	Acknowledge *bool `json:",omitempty"`
	// CloseInput and CloseOutput close an end of its own.
	CloseInput  bool `json:",omitempty"`
	CloseOutput bool `json:",omitempty"`
	Exit        *int `json:",omitempty"`
	// Number is told back once the order is carried out.
	Number int
}

// report is one thing that a puppet tells.
type report struct {
	PID  int    `json:",omitempty"`
	Line []byte `json:",omitempty"`
	Done int    `json:",omitempty"`
}

// puppetMain is the puppet itself.
func puppetMain() int {
	conn, err := net.Dial("unix", os.Getenv(puppetSocket))
	if err != nil {
		return 1
	}
	defer conn.Close()
	p := &puppetSelf{reports: json.NewEncoder(conn), reading: true, acking: os.Getenv(puppetExplicit) != "", out: make(chan []byte, 1<<16)}
	p.cond = sync.NewCond(&p.mu)
	p.tell(report{PID: os.Getpid()})
	go p.write()
	go p.read()
	orders := json.NewDecoder(conn)
	for {
		var o order
		if orders.Decode(&o) != nil {
			return 0
		}
		if o.Exit != nil {
			return *o.Exit
		}
		p.obey(o)
		p.tell(report{Done: o.Number})
	}
}

type puppetSelf struct {
	telling sync.Mutex
	reports *json.Encoder
	out     chan []byte

	mu      sync.Mutex
	cond    *sync.Cond
	reading bool
	acking  bool
}

func (p *puppetSelf) tell(r report) {
	p.telling.Lock()
	defer p.telling.Unlock()
	_ = p.reports.Encode(r)
}

func (p *puppetSelf) write() {
	for b := range p.out {
		_, _ = os.Stdout.Write(b)
	}
}

func (p *puppetSelf) obey(o order) {
	if len(o.Write) > 0 {
		p.out <- o.Write
	}
	if len(o.Complain) > 0 {
		_, _ = os.Stderr.Write(o.Complain)
	}
	if o.CloseInput {
		os.Stdin.Close()
	}
	if o.CloseOutput {
		os.Stdout.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Read != nil {
		p.reading = *o.Read
	}
	if o.Acknowledge != nil {
		p.acking = *o.Acknowledge
	}
	p.cond.Broadcast()
}

// Read implements io.Reader: the standard input, unless told not to read.
func (p *puppetSelf) Read(b []byte) (int, error) {
	p.mu.Lock()
	for !p.reading {
		p.cond.Wait()
	}
	p.mu.Unlock()
	return os.Stdin.Read(b)
}

func (p *puppetSelf) read() {
	lines := bufio.NewReader(p)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 {
				p.tell(report{Line: line}) // A half line: the test will see that.
			}
			return
		}
		p.tell(report{Line: line})
		var e struct{ ID string }
		p.mu.Lock()
		acking := p.acking
		p.mu.Unlock()
		if acking && json.Unmarshal(line, &e) == nil && e.ID != "" {
			p.out <- []byte(`{"carrier":{"ack":"` + e.ID + `"}}` + "\n")
		}
	}
}

// puppet is the test's end of one puppet, over all its processes.
type puppet struct {
	socket net.Listener
	// program is a link to the test binary; without it no process can be started.
	program string
	served  sync.WaitGroup

	mu           sync.Mutex
	orders, done int
	conn         net.Conn
	pids         []int
	lines        []string
}

func newPuppet(t *testing.T) *puppet {
	t.Helper()
	dir, err := os.MkdirTemp("", "puppet") // Short enough for the name of a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	p := &puppet{socket: socket, program: filepath.Join(dir, "program")}
	p.setDown(false)
	p.served.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

func (p *puppet) close() {
	p.socket.Close()
	p.mu.Lock()
	if p.conn != nil {
		p.conn.Close()
	}
	p.mu.Unlock()
	p.served.Wait()
}

func (p *puppet) serve() {
	for {
		conn, err := p.socket.Accept()
		if err != nil {
			return
		}
		p.served.Go(func() { p.listen(conn) })
	}
}

func (p *puppet) listen(conn net.Conn) {
	defer conn.Close()
	reports := json.NewDecoder(conn)
	for {
		var r report
		if reports.Decode(&r) != nil {
			p.mu.Lock()
			if p.conn == conn {
				p.conn = nil
			}
			p.mu.Unlock()
			return
		}
		p.mu.Lock()
		switch {
		case r.PID != 0:
			p.conn = conn
			p.pids = append(p.pids, r.PID)
		case r.Done != 0:
			p.done = r.Done
		default:
			p.lines = append(p.lines, string(r.Line))
		}
		p.mu.Unlock()
	}
}

// config is the configuration that runs the puppet as an agent.
func (p *puppet) config(t *testing.T, peer string) AgentConfig {
	cfg := testAgent(t, peer, "puppet")
	cfg.Env[puppetSocket] = EnvValue(p.socket.Addr().String())
	cfg.Command = []string{p.program}
	return cfg
}

func explicit(cfg AgentConfig) AgentConfig {
	cfg.Ack = AckExplicit
	cfg.Env[puppetExplicit] = "1"
	return cfg
}

// await waits until a process of the puppet is there.
func (p *puppet) await(ctx context.Context) error {
	for {
		p.mu.Lock()
		up := p.conn != nil
		p.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// tell gives an order to the process that runs now, and waits until it is
// carried out, unless it is the last.
func (p *puppet) tell(ctx context.Context, o order) error {
	if err := p.await(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.orders++
	o.Number = p.orders
	conn := p.conn
	p.mu.Unlock()
	if conn == nil {
		return errors.New("the puppet has just ended")
	}
	if err := json.NewEncoder(conn).Encode(o); err != nil || o.Exit != nil {
		return err
	}
	for {
		p.mu.Lock()
		done, there := p.done >= o.Number, p.conn == conn
		p.mu.Unlock()
		switch {
		case done:
			return nil
		case !there:
			return errors.New("the puppet ended before it did what it was told")
		case ctx.Err() != nil:
			return ctx.Err()
		}
		time.Sleep(pollEvery / 4)
	}
}

// must gives an order that has to arrive.
func (p *puppet) must(t *testing.T, o order) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.tell(ctx, o); err != nil {
		t.Fatalf("order %+v: %v", o, err)
	}
}

func (p *puppet) write(t *testing.T, text string) {
	t.Helper()
	p.must(t, order{Write: []byte(text)})
}

// heard lists the lines that the puppet has read, without their line feeds.
func (p *puppet) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, l := range p.lines {
		list = append(list, strings.TrimSuffix(l, "\n"))
	}
	return list
}

// processes lists the pids of all processes that the puppet has had.
func (p *puppet) processes() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.pids...)
}

// setDown decides whether a process of the puppet can be started.
func (p *puppet) setDown(down bool) {
	if down {
		os.Remove(p.program)
		return
	}
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, p.program)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		panic(err)
	}
}

// floodMain writes a good line, one of 64 MiB, and a good line.
func floodMain() int {
	first, second := say("first"), say("second")
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	_, _ = io.WriteString(out, first+"\n")
	junk := []byte(strings.Repeat("x", 1<<20))
	for range 64 {
		_, _ = out.Write(junk)
	}
	_, _ = io.WriteString(out, "\n"+second+"\n")
	_ = out.Flush()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func (p *puppet) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn != nil
}
