package stdio

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// stopGrace is how long an agent may take to end after SIGTERM, and by itself
	// once it has closed its input.
	stopGrace = 2 * time.Second
	// settleGrace is how long a stopping agent's input is kept open for what is
	// still to be settled.
	settleGrace = 500 * time.Millisecond
)

// supervise attaches the agent and keeps it running until ctx ends, or until it
// ends by itself while the gateway is stopping.
func (a *agent) supervise(ctx context.Context, in core.Intake) {
	attach := func() error { return in.Attach(ctx, a.attachment()) }
	if !a.retry(ctx, attach, func(err error, pause time.Duration) { a.backOff(fmt.Sprintf("attach: %v", err), pause) }) {
		return
	}
	restart := backoff{RestartConfig: a.restart, random: a.random}
	for ctx.Err() == nil {
		begun := a.host.Now()
		why := a.runOnce(ctx, in)
		if ctx.Err() != nil || a.curfew.past() {
			return
		}
		pause := restart.next(a.host.Now().Sub(begun))
		a.backOff(why, pause)
		if !sleep(ctx, pause, a.curfew.begun) {
			return
		}
	}
}

// detach makes sure that an agent that is local now is no recipient, although it
// may have been one in an earlier run.
func (a *agent) detach(ctx context.Context, in core.Intake) {
	at := a.attachment()
	if at.WorkspaceID == "" || at.Channel == "" || at.Peer == "" {
		return
	}
	a.retry(ctx, func() error { return in.Detach(ctx, at) }, func(err error, _ time.Duration) {
		a.log.Warn("a local agent could not be detached", "error", err)
	})
}

// retry tries until it succeeds, and tells of each failure and of the pause after
// it. It returns false when ctx ended, the gateway is stopping or agents may not
// become live.
func (a *agent) retry(ctx context.Context, try func() error, failed func(error, time.Duration)) bool {
	again := backoff{RestartConfig: a.restart, random: a.random}
	for {
		err := try()
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil || errors.Is(err, core.ErrStopping):
			return false
		case errors.Is(err, core.ErrNetworkOff):
			a.off(err.Error())
			<-ctx.Done()
			return false
		}
		pause := again.next(0)
		failed(err, pause)
		if !sleep(ctx, pause, a.curfew.begun) {
			return false
		}
	}
}

// runOnce runs one process of the agent to its end, and everything that belongs
// to it. It returns why the process ended.
func (a *agent) runOnce(ctx context.Context, in core.Intake) (why string) {
	a.stderr.reset()
	p, err := a.curfew.start(a.cfg, "")
	if err != nil {
		return startFailure(err)
	}
	input := newInput(a.name, p.stdin, a.writeTimeout, a.host.Now, a.sent)
	s := newSession(input)
	a.running(p.cmd.Process.Pid, input, s)

	var parts sync.WaitGroup
	parts.Go(input.run)
	parts.Go(func() { newReceiver(a, in, input, s).run(ctx, p.stdout) })
	parts.Go(func() { logStderr(ctx, a, p.stderr) })

	why = a.await(ctx, p, s)
	a.notRunning(input)
	input.close(errNotRunning(a.name, "not running: "+why, a.restart.Min))
	p.ended()
	parts.Wait()
	p.close()
	s.end(why)
	return why
}

// closedInput is why a resident agent is ended that can be given nothing more.
const closedInput = "it closed its input and did not end by itself"

// await waits for the end of the process, and brings it about when ctx ends, or
// when the agent has closed its input and does not end by itself. The wake that
// it is in it may end before, within its time.
func (a *agent) await(ctx context.Context, p *process, s *session) (why string) {
	broken, idle, deaf := s.input.broken, (<-chan struct{})(nil), (<-chan time.Time)(nil)
	for {
		select {
		case err := <-p.exited:
			return exitReason(err)
		case <-p.guard.lost:
			// Without its guard the agent would outlive a gateway that is killed.
			_ = p.kill()
			return "its guard process died"
		case why := <-s.kill:
			_ = p.kill()
			return why
		case <-broken:
			broken, idle = nil, s.afterTurn()
		case <-idle:
			grace := time.NewTimer(stopGrace)
			defer grace.Stop()
			idle, deaf = nil, grace.C
		case <-deaf:
			_ = a.terminate(p) // It was ended; how says nothing more.
			return closedInput
		case <-ctx.Done():
			a.stopping()
			s.input.settleDown(settleGrace)
			s.input.close(errNotRunning(a.name, "stopping", 0))
			return exitReason(a.terminate(p))
		}
	}
}

// terminate ends the process: by SIGTERM, and by SIGKILL when that takes too
// long. It gives the result of waiting for it.
func (a *agent) terminate(p *process) error {
	p.signal(syscall.SIGTERM)
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case err := <-p.exited:
		return err
	case <-grace.C:
	}
	a.log.Warn("agent did not end in time and is killed", "grace", stopGrace)
	return p.kill()
}

// sleep pauses; false when ctx ended or over was closed.
func sleep(ctx context.Context, pause time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
}
