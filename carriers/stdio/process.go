package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// drainIdle is how long the output of an agent that has ended may be silent
	// before it counts as ended too. It matters only where a process that has left
	// the agent's group still holds the pipe.
	drainIdle = 500 * time.Millisecond
	// drainMost is how much is read after the end of an agent: no less than a pipe
	// holds.
	drainMost = 1 << 20
)

// inheritedEnv are the gateway's own variables that every agent gets.
var inheritedEnv = []string{"PATH", "HOME", "LANG"}

// reservedEnv are the variables that the gateway sets for an agent.
// COMPOZY_WAKE_ID is set for wakes alone.
var reservedEnv = []string{"COMPOZY_PEER_ID", "COMPOZY_WORKSPACE_ID", "COMPOZY_CHANNEL", "COMPOZY_WAKE_ID"}

// process is one process of an agent, with the group that it leads.
type process struct {
	cmd   *exec.Cmd
	guard *guard
	// stdin is written by us, stdout and stderr are read by us.
	stdin  *os.File
	stdout *agentOutput
	stderr *agentOutput
	// exited carries the result of waiting for the agent, once.
	exited chan error
}

// startProcess starts the agent in a process group of its own, for one wake
// where there is one. Of the gateway's
// open files it gets none but its three pipes.
func startProcess(cfg AgentConfig, wake string) (*process, error) {
	if len(cfg.Command) == 0 {
		return nil, errors.New("no command")
	}
	g, err := startGuard()
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	p, err := startInGroup(cfg, wake, g)
	if err != nil {
		g.end()
		return nil, err
	}
	return p, nil
}

func startInGroup(cfg AgentConfig, wake string, g *guard) (*process, error) {
	in, out, err := twoPipes()
	if err != nil {
		return nil, err
	}
	log, err := newPipe()
	if err != nil {
		in.close()
		out.close()
		return nil, err
	}
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Dir = cfg.Dir
	cmd.Env = environment(cfg, wake)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in.r, out.w, log.w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.group()}
	err = cmd.Start()
	in.r.Close()
	out.w.Close()
	log.w.Close()
	if err != nil {
		in.w.Close()
		out.r.Close()
		log.r.Close()
		return nil, err
	}
	p := &process{
		cmd: cmd, guard: g, stdin: in.w,
		stdout: newAgentOutput(out.r), stderr: newAgentOutput(log.r),
		exited: make(chan error, 1),
	}
	go func() { p.exited <- cmd.Wait() }()
	return p, nil
}

// signal sends the signal to the agent's group, and to the agent itself should
// it have left the group.
func (p *process) signal(sig syscall.Signal) {
	p.guard.signal(sig)
	_ = p.cmd.Process.Signal(sig) // It may have ended by itself just now.
}

// kill ends the agent's group at once. It gives the result of waiting for the
// agent.
func (p *process) kill() error {
	p.signal(syscall.SIGKILL)
	return <-p.exited
}

// ended is called once the agent has exited: it takes the rest of the group
// along and lets the readers of its output come to an end.
func (p *process) ended() {
	p.guard.end()
	p.stdout.writerEnded()
	p.stderr.writerEnded()
}

func environment(cfg AgentConfig, wake string) []string {
	var env []string
	for _, name := range inheritedEnv {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range sortedKeys(cfg.Env) {
		env = append(env, name+"="+envValue(cfg, name))
	}
	env = append(env,
		"COMPOZY_PEER_ID="+cfg.PeerID,
		"COMPOZY_WORKSPACE_ID="+cfg.Workspace,
		"COMPOZY_CHANNEL="+cfg.Channel,
	)
	if wake != "" {
		env = append(env, "COMPOZY_WAKE_ID="+wake)
	}
	return env
}

// envValue is the value of a variable that the configuration names: its own, or
// the gateway's where it is left empty.
func envValue(cfg AgentConfig, name string) string {
	if value := string(cfg.Env[name]); value != "" {
		return value
	}
	return os.Getenv(name)
}

// agentOutput is one output of an agent. It ends with the pipe, or soon after
// the agent where another process keeps the pipe open.
type agentOutput struct {
	f *os.File
	// over is closed when the agent has ended; rest is how much may still be read
	// from then on.
	over chan struct{}
	rest int
}

func newAgentOutput(f *os.File) *agentOutput {
	return &agentOutput{f: f, over: make(chan struct{}), rest: drainMost}
}

// writerEnded says that the agent has ended. It is called once.
func (o *agentOutput) writerEnded() {
	close(o.over)
	_ = o.f.SetReadDeadline(time.Now()) // Wakes up a reader that waits.
}

// Read implements io.Reader.
func (o *agentOutput) Read(b []byte) (int, error) {
	for {
		select {
		case <-o.over:
			return o.readRest(b)
		default:
		}
		n, err := o.f.Read(b)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		return n, err
	}
}

func (o *agentOutput) readRest(b []byte) (int, error) {
	if o.rest <= 0 {
		return 0, io.EOF
	}
	if err := o.f.SetReadDeadline(time.Now().Add(drainIdle)); err != nil {
		return 0, err
	}
	n, err := o.f.Read(b)
	o.rest -= n
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, io.EOF
	}
	return n, err
}

// close closes what is left open once the readers have come to their end.
func (p *process) close() {
	p.stdout.f.Close()
	p.stderr.f.Close()
}
