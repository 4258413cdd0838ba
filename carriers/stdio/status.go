package stdio

import (
	"fmt"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// AgentStatus is how one agent stands, as Status.Detail["agents"] shows it by
// the agent's name.
type AgentStatus struct {
	// State is starting, running, idle (between two wakes), backing off, stopping,
	// stopped, local or off (network.enabled is false).
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Command is the configured program.
	Command string `json:"command"`
	// PID is the running process, 0 when there is none.
	PID int `json:"pid,omitempty"`
	// Starts counts the processes that were started.
	Starts int `json:"starts"`
	// Why is how the last process ended, or why none was started.
	Why string `json:"why,omitempty"`
	// NextStart is when an agent that is backing off is started again.
	NextStart *time.Time `json:"next_start,omitempty"`
	// Stderr is the end of what the last process wrote to its standard error.
	Stderr string `json:"stderr,omitempty"`
	// Noise counts the lines that were neither envelopes nor control lines,
	// UnusedControls the control lines that had no use, and UnreadControls the
	// control lines that were dropped because the agent did not read them.
	Noise          uint64 `json:"noise"`
	UnusedControls uint64 `json:"unused_controls"`
	UnreadControls uint64 `json:"unread_controls"`
	// NotReading is true while the agent leaves its input unread for longer than
	// write_timeout, InputClosed when it has closed its input.
	NotReading  bool `json:"not_reading,omitempty"`
	InputClosed bool `json:"input_closed,omitempty"`
	// OnProbation is true while an agent that was started again has not yet run
	// for the shortest pause. It does not count as ready: else an agent that ends
	// at once would seem to be so again and again.
	OnProbation bool `json:"on_probation,omitempty"`
}

// Status implements core.Carrier. The carrier is ready when all its live agents
// run and take their input.
func (c *Carrier) Status() core.Status {
	s := core.Status{State: c.phase()}
	details := make(map[string]AgentStatus, len(c.live)+len(c.local))
	for _, a := range c.local {
		details[a.name], _, _ = a.status()
	}
	var whys []string
	for _, a := range c.live {
		detail, received, sent := a.status()
		details[a.name] = detail
		if received.After(s.LastReceive) {
			s.LastReceive = received
		}
		if sent.After(s.LastSend) {
			s.LastSend = sent
		}
		if why := detail.notReady(); why != "" {
			whys = append(whys, fmt.Sprintf("agent %s: %s", a.name, why))
		}
	}
	s.Detail = map[string]any{"agents": details}
	if s.State == core.StateReady && len(whys) > 0 {
		s.State, s.Why = core.StateNotReady, strings.Join(whys, "; ")
	}
	return s
}

func (a *agent) status() (detail AgentStatus, received, sent time.Time) {
	stderr := a.complaints()
	a.mu.Lock()
	in := a.input
	received, sent = a.lastReceive, a.lastSend
	detail = AgentStatus{
		State: string(a.state), Since: a.since.UTC(), Command: a.cfg.Command[0], PID: a.pid, Starts: a.starts, Why: a.why, Stderr: stderr,
		Noise: a.n.noise, UnusedControls: a.n.unused, UnreadControls: a.n.unread,
	}
	switch a.state {
	case agentBackingOff:
		next := a.next.UTC()
		detail.NextStart = &next
	case agentRunning:
		// A process for one wake has nothing to prove.
		detail.OnProbation = a.cfg.Launch != LaunchWake && a.why != "" && a.host.Now().Sub(a.since) < a.restart.Min
	}
	a.mu.Unlock()
	if in != nil {
		var lost uint64
		detail.NotReading, detail.InputClosed, lost = in.standing()
		// The input of a process for one wake is closed by us behind its messages.
		detail.InputClosed = detail.InputClosed && a.cfg.Launch != LaunchWake
		detail.UnreadControls += lost
	}
	return detail, received, sent
}

// AgentState implements core.AgentReporter.
func (c *Carrier) AgentState(name string) (state, why string) {
	for _, agents := range [][]*agent{c.live, c.local} {
		for _, a := range agents {
			if a.name != name {
				continue
			}
			detail, _, _ := a.status()
			return detail.State, detail.because()
		}
	}
	return "", ""
}

// because is what is to be known beside the agent's state.
func (s AgentStatus) because() string {
	switch why := s.notReady(); {
	case s.State == string(agentBackingOff), s.State == string(agentIdle), s.State == string(agentOff):
		return s.Why
	case why == s.State:
		return ""
	default:
		return why
	}
}

// notReady says what is wrong with the agent; empty when nothing is.
func (s AgentStatus) notReady() string {
	switch {
	case s.State == string(agentBackingOff):
		return fmt.Sprintf("backing off after: %s", s.Why)
	case s.State == string(agentIdle), s.State == string(agentOff):
		return ""
	case s.State != string(agentRunning):
		return s.State
	case s.OnProbation:
		return fmt.Sprintf("started again after: %s", s.Why)
	case s.InputClosed:
		return "has closed its input"
	case s.NotReading:
		return "does not read its input"
	default:
		return ""
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
