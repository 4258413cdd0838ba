package stdio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// tooLong is why an agent is killed that has not ended its wake in time.
const tooLong = "its wake took longer than it may"

// Agents implements core.Waker.
func (c *Carrier) Agents() []core.HostedAgent {
	list := make([]core.HostedAgent, 0, len(c.live)+len(c.local))
	for _, agents := range [][]*agent{c.live, c.local} {
		for _, a := range agents {
			list = append(list, a.cfg.hosted(a.name))
		}
	}
	return list
}

// HostedAgents lists the agents as the gateway takes them in.
func (c Config) HostedAgents() []core.HostedAgent {
	list := make([]core.HostedAgent, 0, len(c.Agents))
	for _, name := range sortedKeys(c.Agents) {
		list = append(list, c.Agents[name].hosted(name))
	}
	return list
}

func (a AgentConfig) hosted(name string) core.HostedAgent {
	mode := a.Participation.Mode
	if mode == "" {
		mode = ModeLocal
	}
	return core.HostedAgent{
		Name: name, Mode: mode, Resident: a.Launch != LaunchWake,
		WorkspaceID: a.Workspace, Channel: a.Channel, Peer: a.PeerID, Bounds: a.Participation.Bounds,
	}
}

// Wake implements core.Waker.
func (c *Carrier) Wake(ctx context.Context, w core.WakeRequest) (core.WakeOutcome, error) {
	for _, a := range c.live {
		if a.name != w.Agent {
			continue
		}
		a.awaitStart(ctx)
		if a.cfg.Launch == LaunchWake {
			return a.runWake(ctx, w)
		}
		return a.wakeResident(ctx, w)
	}
	return core.WakeOutcome{}, &core.SendError{Code: core.CodeBadAddress, Detail: fmt.Sprintf("there is no live agent %q", w.Agent)}
}

// awaitStart waits until an agent that the gateway starts at the moment can be
// woken, or cannot: a wake that was left over from before comes as early as that.
func (a *agent) awaitStart(ctx context.Context) {
	select {
	case <-a.begun:
	case <-a.curfew.begun:
	case <-ctx.Done():
	}
}

// wakeResident gives a turn to the running process.
func (a *agent) wakeResident(ctx context.Context, w core.WakeRequest) (core.WakeOutcome, error) {
	s, unavailable := a.currentSession()
	if unavailable != nil {
		return core.WakeOutcome{}, unavailable
	}
	t := newTurn(w.ID)
	if !s.begin(t) {
		return core.WakeOutcome{}, errNotRunning(a.name, "not ready for a wake", 0)
	}
	given := make(chan error, 1)
	s.input.put(ctx, a.block(w, func(err error) { given <- err }))
	for {
		select {
		case err := <-given:
			if err != nil && ctx.Err() == nil {
				s.abandon(t)
				return core.WakeOutcome{}, err
			}
		case <-t.over:
			return t.result(), nil
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return core.WakeOutcome{}, ctx.Err()
			}
			return a.outOfTime(s, t), nil
		}
	}
}

// outOfTime ends a turn whose time is over. What the agent has written until it
// is dead belongs to the turn, its last word excepted.
func (a *agent) outOfTime(s *session, t *turn) core.WakeOutcome {
	if t.decide(core.WakeOutcome{State: core.WakeDeadlineExceeded, Detail: tooLong + "; the agent was killed"}) {
		s.order(tooLong)
	}
	<-t.over
	return t.result()
}

// block is the send that hands over a wake: its lines stand together. It is not
// begun when the deadlines of all messages have passed. told is called once if it
// could not be begun.
func (a *agent) block(w core.WakeRequest, told func(error)) *send {
	explicit := a.cfg.Ack == AckExplicit
	s := &send{
		agent: a.name, id: w.ID, patient: true, deadline: latest(w.Messages),
		line: controlLine(wakeLine{Wake: w.ID, Deadline: w.Deadline.Unix(), Messages: len(w.Messages), Untrusted: true}),
	}
	parts := make([]*part, 0, len(w.Messages))
	for _, m := range w.Messages {
		p := &part{deadline: m.Deadline, omitted: controlLine(omittedLine{Omitted: m.ID, Bytes: m.Bytes, Expired: true})}
		if m.Raw == nil {
			p.line = controlLine(omittedLine{Omitted: m.ID, Bytes: m.Bytes})
		} else {
			p.line = slices.Concat(core.OneLine(m.Raw), []byte{'\n'})
		}
		if explicit && m.Raw != nil {
			p.send = &send{agent: a.name, id: m.ID, delivery: m.Delivery, state: sendOver}
		}
		parts = append(parts, p)
	}
	s.more = parts
	s.done = func(ack core.Ack, err error) {
		if err != nil {
			if !s.begun {
				told(err)
			}
			return
		}
		for i, m := range w.Messages {
			if !parts[i].late && (!explicit || m.Raw == nil) {
				w.Wrote(i, ack)
			}
		}
	}
	return s
}

// latest is the instant from which on none of the messages may be written any
// more, zero when there is none.
func latest(messages []core.WakeMessage) (last time.Time) {
	for _, m := range messages {
		if m.Deadline.IsZero() {
			return time.Time{}
		}
		if m.Deadline.After(last) {
			last = m.Deadline
		}
	}
	return last
}

// runWake gives a turn to a process of its own.
func (a *agent) runWake(ctx context.Context, w core.WakeRequest) (core.WakeOutcome, error) {
	intake, life, leave := a.enterWake()
	if intake == nil {
		return core.WakeOutcome{}, errNotRunning(a.name, "not attached yet", time.Second)
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life, cancel)()

	a.stderr.reset()
	p, err := a.curfew.start(a.cfg, w.ID)
	if err != nil {
		why := startFailure(err)
		a.idle(why)
		return core.WakeOutcome{}, errNotRunning(a.name, "not started: "+why, 0)
	}
	input := newInput(a.name, p.stdin, a.writeTimeout, a.host.Now, a.sent)
	a.running(p.cmd.Process.Pid, input, nil)
	s, t := newSession(input), newTurn(w.ID)
	s.begin(t)

	var parts sync.WaitGroup
	parts.Go(input.run)
	parts.Go(func() { newReceiver(a, intake, input, s).run(life, p.stdout) })
	parts.Go(func() { logStderr(ctx, a, p.stderr) })
	var late *core.SendError // Read when the process has ended, and with it its input.
	block := a.block(w, func(err error) {
		var failure *core.SendError
		if errors.As(err, &failure) && failure.Code == core.CodeExpired {
			late = failure
			cancel()
		}
	})
	tell := block.done
	block.done = func(ack core.Ack, err error) {
		tell(ack, err)
		// Nothing more comes, and the agent sees it by the end of its input.
		input.close(errInputClosed(a.name, nil))
	}
	input.put(ctx, block)

	outcome := a.awaitWake(ctx, p)
	a.notRunning(input)
	input.close(errNotRunning(a.name, "not running", 0))
	p.ended()
	parts.Wait()
	p.close()
	if !block.whole && outcome.State == core.WakeSucceeded {
		outcome.Detail += ", before it had read all of its input"
	}
	s.conclude(t, outcome)
	a.idle(outcome.Detail)
	<-t.over
	if late != nil {
		return core.WakeOutcome{}, late
	}
	if ctx.Err() != nil && outcome.State == "" {
		return core.WakeOutcome{}, ctx.Err()
	}
	return t.result(), nil
}

// conclude ends the turn of a process of its own: the exit status is the
// outcome, and what the agent said adds to it.
func (s *session) conclude(t *turn, o core.WakeOutcome) {
	s.mu.Lock()
	said := s.said
	s.mu.Unlock()
	if said != nil {
		o.Usage = said.usage
		switch {
		case !said.failed:
		case o.State == core.WakeSucceeded:
			o = outcomeOf(*said)
		case o.State == core.WakeFailed:
			o.Detail += "; " + outcomeOf(*said).Detail
		}
	}
	t.end(o)
}

// awaitWake waits for the end of the process, and brings it about when ctx ends.
// Its state is empty when nobody knows how far the agent came.
func (a *agent) awaitWake(ctx context.Context, p *process) core.WakeOutcome {
	select {
	case err := <-p.exited:
		return exitOutcome(err)
	case <-p.guard.lost:
		_ = p.kill()
		return core.WakeOutcome{State: core.WakeFailed, Detail: "its guard process died"}
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		_ = p.kill()
		return core.WakeOutcome{State: core.WakeDeadlineExceeded, Detail: tooLong + "; the agent was killed"}
	}
	_ = a.terminate(p) // How it ended says nothing of how far it came.
	return core.WakeOutcome{}
}

func exitOutcome(err error) core.WakeOutcome {
	o := core.WakeOutcome{State: core.WakeSucceeded, Detail: exitReason(err)}
	if err != nil {
		o.State = core.WakeFailed
	}
	return o
}

// standBy attaches an agent that runs in its wakes alone and lets it be woken
// until ctx ends.
func (a *agent) standBy(ctx context.Context, in core.Intake) {
	attach := func() error { return in.Attach(ctx, a.attachment()) }
	if !a.retry(ctx, attach, func(err error, pause time.Duration) { a.backOff(fmt.Sprintf("attach: %v", err), pause) }) {
		return
	}
	a.mu.Lock()
	a.enter(agentIdle)
	a.why = ""
	a.intake, a.life = in, ctx
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.intake = nil
	a.mu.Unlock()
	a.wakes.Wait()
}

// enterWake lets one wake in; leave must follow. The intake is nil when none is
// taken.
func (a *agent) enterWake() (in core.Intake, life context.Context, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.intake == nil {
		return nil, nil, nil
	}
	a.wakes.Add(1)
	return a.intake, a.life, a.wakes.Done
}

// idle is the state of an agent between two wakes.
func (a *agent) idle(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != agentStopped && a.state != agentStopping {
		a.enter(agentIdle)
	}
	a.why = why
}

// currentSession is the running process, or why there is none.
func (a *agent) currentSession() (*session, *core.SendError) {
	if _, err := a.currentInput(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.session == nil {
		return nil, errNotRunning(a.name, "not running", 0)
	}
	return a.session, nil
}
