//go:build brokers

package integration

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is a process that a test started.
type program struct {
	name string
	cmd  *exec.Cmd
	// stdin is nil unless the program was started with one.
	stdin io.WriteCloser
	// said is what it wrote to stderr, and to stdout where that goes nowhere else.
	said *transcript
	done chan struct{}
}

// launch says how a program runs.
type launch struct {
	dir   string
	stdin io.Reader
	// pipe gives the test the program's stdin.
	pipe bool
	// stdout is where its standard output goes; nil is its transcript.
	stdout io.Writer
	// said replaces the transcript; whoever owns it shows it when a test fails.
	said *transcript
	// quiet leaves the transcript out of the test's log.
	quiet bool
}

// start runs a program until the test ends, or it does.
func start(t *testing.T, l launch, path string, args ...string) *program {
	t.Helper()
	p := &program{name: path[strings.LastIndexByte(path, '/')+1:], cmd: exec.Command(path, args...), said: l.said, done: make(chan struct{})}
	if p.said == nil {
		p.said = &transcript{}
	}
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stderr, p.cmd.Stdout = l.dir, l.stdin, p.said, l.stdout
	if l.stdout == nil {
		p.cmd.Stdout = p.said
	}
	if l.pipe {
		var err error
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	}
	// A helper that outlives the program keeps its pipes open; it is not waited for.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() && !l.quiet && l.said == nil {
			p.said.show(t, p.name)
		}
	})
	return p
}

// kill ends the program at once, as kill -9 does, and waits for its end.
func (p *program) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *program) signal(s syscall.Signal) {
	if !p.ended() {
		_ = p.cmd.Process.Signal(s) // it may have ended this moment
	}
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// status waits for the program's own end and returns its exit status.
func (p *program) status(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("%s still runs after %v:\n%s", p.name, within, p.said.tail(40))
		return -1
	}
}

// terminate asks the program to end and returns its exit status.
func (p *program) terminate(t *testing.T, within time.Duration) int {
	t.Helper()
	p.signal(syscall.SIGTERM)
	return p.status(t, within)
}

// output runs a short program to its end.
func output(t *testing.T, within time.Duration, stdin []byte, path string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out bytes.Buffer
	p := start(t, launch{stdin: bytes.NewReader(stdin), stdout: &out}, path, args...)
	status = p.status(t, within)
	return out.String(), p.said.String(), status
}

// transcript keeps what programs write. It may be written and read at the same
// time.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// tail is the last lines, each cut to a readable length.
func (s *transcript) tail(lines int) string {
	const width = 250
	all := strings.Split(strings.TrimRight(s.String(), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), width)]
	}
	return strings.Join(all, "\n")
}

// show puts the end of a transcript into the test's log.
func (s *transcript) show(t *testing.T, name string) {
	if text := s.tail(25); text != "" {
		t.Logf("%s said:\n%s", name, text)
	}
}

// splitter hands on what is written to it line by line.
type splitter struct {
	take func(line []byte)
	rest []byte
}

func (s *splitter) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		s.take(bytes.Clone(s.rest[:end]))
		s.rest = s.rest[end+1:]
	}
}

// eventually polls until ok holds.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		pause(50 * time.Millisecond)
	}
}

// throughout polls for a time and fails as soon as ok does not hold.
func throughout(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); pause(50 * time.Millisecond) {
		if !ok() {
			t.Fatalf("does not hold: %s", what)
		}
	}
}

func pause(d time.Duration) { time.Sleep(d) }

// gone reports whether no live process has that id. One that is dead and that
// nobody has waited for is gone.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	return processState(pid) == 'Z'
}

// need finds a program that a test cannot do without.
func need(t *testing.T, program, debianPackage string) string {
	t.Helper()
	// Debian keeps servers where an ordinary user's PATH does not look.
	for _, dir := range []string{"", "/usr/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed; the Debian package %s has it", program, debianPackage)
	return ""
}
