package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that the benchmark started.
type process struct {
	name string
	cmd  *exec.Cmd
	said *tail
	done chan struct{}
}

// start runs a program until it is stopped.
func start(name string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(args[0], args[1:]...), said: &tail{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	// What outlives a killed benchmark would disturb the next.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // Its output says how it ended.
	}()
	return p, nil
}

// stop asks the program to end, and kills it when it does not.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await polls until ok holds, the program ends or the time is over.
func (p *process) await(ctx context.Context, what string, within time.Duration, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("%s ended before %s:\n%s", p.name, what, p.said)
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %s:\n%s", p.name, within, what, p.said)
		}
	}
	return nil
}

// listening awaits a program's port.
func (p *process) listening(ctx context.Context, address string) error {
	return p.await(ctx, "it listens on "+address, 15*time.Second, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// resident is the program's memory in bytes.
func (p *process) resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, err := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("memory of " + p.name + ": the system does not tell")
}

// tail keeps the end of what a program writes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
