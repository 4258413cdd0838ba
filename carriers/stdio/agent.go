package stdio

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// agent is one configured agent, over all its processes.
type agent struct {
	name         string
	cfg          AgentConfig
	host         core.Host
	log          *slog.Logger
	principal    *core.Principal
	censor       censor
	maxLine      int
	writeTimeout time.Duration
	restart      RestartConfig
	// random gives numbers from 0 up to 1.
	random func() float64
	curfew *curfew
	stderr *tail

	// mu is never held while an input is asked for anything.
	mu    sync.Mutex
	state agentState
	since time.Time
	// begun is closed when the agent is not starting any more: it runs, or waits
	// for its wakes, or it is known why it does neither.
	begun chan struct{}
	// pid and input are those of the running process.
	pid   int
	input *input
	// session is that of a resident agent's process.
	session *session
	// intake and life are there while an agent that runs in its wakes alone may
	// be woken; wakes counts those that go on.
	intake core.Intake
	life   context.Context
	wakes  sync.WaitGroup
	// why is how the last process ended, or why none was started.
	why    string
	next   time.Time
	starts int
	n      counters
	// lastReceive and lastSend are zero until the first.
	lastReceive, lastSend time.Time
}

// agentState is how an agent stands, as the status shows it.
type agentState string

const (
	agentStarting   agentState = "starting"
	agentRunning    agentState = "running"
	agentBackingOff agentState = "backing off"
	agentStopping   agentState = "stopping"
	agentStopped    agentState = "stopped"
	// agentIdle is that of an agent that waits for its next wake to be started.
	agentIdle agentState = "idle"
	// agentLocal is that of an agent that takes no part.
	agentLocal agentState = "local"
	// agentOff is that of an agent that may not become live, because
	// network.enabled is false.
	agentOff agentState = "off"
)

// counters count what came to nothing, over all processes of the agent.
type counters struct {
	// noise are lines that are neither envelopes nor control lines.
	noise uint64
	// unused are control lines that had no use.
	unused uint64
	// unread are control lines that earlier processes did not read.
	unread uint64
}

func newAgent(name string, cfg Config, host core.Host, random func() float64, c *curfew) *agent {
	a := cfg.Agents[name]
	return &agent{
		name: name,
		cfg:  a,
		host: host,
		log:  host.Logger.With("agent", name),
		principal: &core.Principal{Name: name, Scope: core.Scope{
			Workspaces: []string{a.Workspace},
			Channels:   []string{a.Channel},
			Peers:      []string{a.PeerID},
		}},
		censor:       newCensor(a),
		maxLine:      cfg.MaxLine,
		writeTimeout: cfg.WriteTimeout,
		restart:      cfg.Restart,
		random:       random,
		curfew:       c,
		stderr:       &tail{},
		state:        agentStarting,
		since:        host.Now(),
		begun:        make(chan struct{}),
	}
}

func (a *agent) attachment() core.Attachment {
	return core.Attachment{
		WorkspaceID: a.cfg.Workspace, Channel: a.cfg.Channel, Peer: a.cfg.PeerID,
		Push: a.cfg.Launch != LaunchWake, Principal: a.name,
	}
}

// currentInput is the input of the running process, or why there is none.
func (a *agent) currentInput() (*input, *core.SendError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.input != nil {
		return a.input, nil
	}
	why := string(a.state)
	if a.why != "" {
		why += " after: " + a.why
	}
	unavailable := errNotRunning(a.name, why, a.next.Sub(a.host.Now()))
	if a.state == agentStarting {
		unavailable.Err = core.ErrStarting
	}
	return nil, unavailable
}

// enter changes the state. No agent comes back to its first one.
func (a *agent) enter(s agentState) {
	if a.state == agentStarting {
		close(a.begun)
	}
	a.state, a.since = s, a.host.Now()
}

func (a *agent) running(pid int, in *input, s *session) {
	a.mu.Lock()
	a.enter(agentRunning)
	a.starts++
	a.pid, a.input, a.session = pid, in, s
	starts := a.starts
	a.mu.Unlock()
	a.log.Info("agent started", "pid", pid, "starts", starts)
}

// notRunning is called when the process has ended, before its input is closed.
func (a *agent) notRunning(in *input) {
	_, _, lost := in.standing()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n.unread += lost
	a.pid, a.input, a.session = 0, nil, nil
}

func (a *agent) backOff(why string, pause time.Duration) {
	a.mu.Lock()
	a.enter(agentBackingOff)
	a.why, a.next = why, a.since.Add(pause)
	a.mu.Unlock()
	a.log.Warn("agent is not running", "why", why, "command", a.cfg.Command[0], "next_start_in", pause.Round(time.Millisecond),
		"stderr", shorten(lastLine(a.complaints()), mostShown))
}

// off is called for an agent that may not become live in the life of this
// gateway. That is no fault: nothing is tried again.
func (a *agent) off(why string) {
	a.mu.Lock()
	a.enter(agentOff)
	a.why = why
	a.mu.Unlock()
	a.log.Info("agent stays off", "why", why)
}

func (a *agent) stopping() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enter(agentStopping)
}

func (a *agent) stopped() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enter(agentStopped)
}

func (a *agent) count(add func(*counters)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	add(&a.n)
}

func (a *agent) received() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastReceive = a.host.Now()
}

func (a *agent) sent() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastSend = a.host.Now()
}

// complaints is the end of what the last process wrote to its standard error.
func (a *agent) complaints() string { return ending(a.censor.text(a.stderr.bytes()), mostTail) }

// presentable is a line as it may stand in a log.
func (a *agent) presentable(data []byte) string {
	return shorten(a.censor.text(data), mostShown)
}
