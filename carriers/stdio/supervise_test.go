package stdio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestPausesDoubleAndAreForgottenAfterARunThatLasts(t *testing.T) {
	const s = time.Second
	b := backoff{RestartConfig: RestartConfig{Min: s, Max: 10 * s, ResetAfter: 30 * s}, random: func() float64 { return 0 }}
	for i, step := range []struct{ ran, want time.Duration }{
		{0, s}, {0, 2 * s}, {29 * s, 4 * s}, {0, 8 * s}, {0, 10 * s}, {0, 10 * s}, {30 * s, s}, {0, 2 * s},
	} {
		if got := b.next(step.ran); got != step.want {
			t.Errorf("pause %d is %v, want %v", i, got, step.want)
		}
	}
}

func TestProgramThatFailsAtOnceIsStartedAtMostEightTimesAMinute(t *testing.T) {
	// The shortest pauses that chance may give.
	b := backoff{RestartConfig: DefaultConfig().Restart, random: func() float64 { return 0.999999 }}
	starts := 0
	for at := time.Duration(0); at < time.Minute; at += b.next(0) {
		starts++
	}
	if starts > 8 || starts < 4 {
		t.Errorf("started %d times in a minute", starts)
	}
}

func TestSleepEndsWithItsContextOrItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !sleep(t.Context(), time.Hour, nil) || time.Since(begin) != time.Hour {
			t.Errorf("slept %v", time.Since(begin))
		}
		over := make(chan struct{})
		close(over)
		if sleep(t.Context(), time.Hour, over) || time.Since(begin) != time.Hour {
			t.Errorf("slept %v although it was over", time.Since(begin))
		}
	})
}

func TestCrashLoopShowsWhyAndWhatWasSaid(t *testing.T) {
	b := run(t, one("ada", shell("ada", `echo "cannot find the model" >&2; exit 3`)))
	until(t, "it was started three times", func() bool { return b.agent("ada").Starts >= 3 })
	until(t, "the status says why", func() bool {
		s, a := b.Status(), b.agent("ada")
		return s.State == core.StateNotReady && a.State == "backing off" && a.NextStart != nil &&
			strings.Contains(a.Why, "exit status 3") && strings.Contains(a.Stderr, "cannot find the model") &&
			strings.Contains(s.Why, "agent ada") && strings.Contains(s.Why, "exit status 3")
	})
	if state, why := b.AgentState("ada"); state != "backing off" || !strings.Contains(why, "exit status 3") {
		t.Errorf("it is %q, because %q", state, why)
	}
	if state, why := b.AgentState("nobody"); state+why != "" {
		t.Errorf("an agent that is not there is %q, because %q", state, why)
	}
	// Anybody may read why; what the agent said stands among the facts, for operators.
	if why := b.Status().Why; strings.Contains(why, "cannot find the model") {
		t.Errorf("the status tells everybody what the agent said: %s", why)
	}
}

func TestRestartedAgentIsNotReadyBeforeItHasRunForAWhile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "been here")
	cfg := shell("ada", `[ -e "$FILE" ] && exec cat; touch "$FILE"; exit 1`)
	cfg.Env["FILE"] = EnvValue(file)
	b := run(t, one("ada", cfg), func(c *Config) { c.Restart.Min, c.Restart.Max = 300*time.Millisecond, 300*time.Millisecond })
	until(t, "it runs again", func() bool { a := b.agent("ada"); return a.State == "running" && a.Starts == 2 })
	if s := b.Status(); s.State != core.StateNotReady || !strings.Contains(s.Why, "exit status 1") {
		t.Errorf("right after the start the state is %q: %q", s.State, s.Why)
	}
	b.ready()
}

// With network.enabled off nobody becomes live, which is no fault and is not
// tried again.
func TestAnAgentThatMayNotBecomeLiveIsOff(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := shell("ada", "cat")
			cfg.Launch = launch
			b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
			b.Carrier = build(t, testConfig(one("ada", cfg)), b.logs)
			b.in.refuse = fmt.Errorf("agent ada has no live participation: %w", core.ErrNetworkOff)
			b.start()
			until(t, "it is off", func() bool { return b.agent("ada").State == "off" })
			if state, why := b.AgentState("ada"); state != "off" || !strings.Contains(why, "network.enabled") {
				t.Errorf("it is %q, because %q", state, why)
			}
			if s := b.Status(); s.State != core.StateReady || s.Why != "" || b.agent("ada").Starts != 0 {
				t.Errorf("the status tells %+v", s)
			}
		})
	}
}

func TestCommandThatAppearsLaterIsStarted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	cfg := shell("ada", "")
	cfg.Command = []string{program}
	b := run(t, one("ada", cfg))
	until(t, "the status says that it is missing", func() bool {
		return strings.Contains(b.Status().Why, "was not found") && !strings.Contains(b.Status().Why, program) && b.agent("ada").Command == program
	})
	if code := failure(t, b.send(t.Context(), "ada", "a")); code != core.CodeUnavailable {
		t.Errorf("a send meanwhile failed with %q", code)
	}
	script := "#!/bin/sh\necho '{\"id\":\"here\"}'\nexec cat\n"
	if err := os.WriteFile(program, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the status says that it may not be run", func() bool { return strings.Contains(b.Status().Why, "may not be run") })
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	b.ready()
	until(t, "it is heard", func() bool { return len(b.in.ids()) > 0 })
}

func TestAnAgentThatClosesItsInputAndKeepsItsGroupIsKilled(t *testing.T) {
	b := run(t, one("ada", shell("ada", `trap "" TERM; exec <&-; echo "{\"id\":\"$$\"}"; while :; do sleep 1; done`)))
	until(t, "it is there", func() bool { return len(b.in.ids()) == 1 })
	pid := b.agent("ada").PID
	turn := over(t, b.wake(t.Context(), "ada", &wrote{}, messageOf("a")))
	var failed *core.SendError
	if !errors.As(turn.err, &failed) || failed.Code != core.CodeUnavailable || failed.RetryAfter <= 0 {
		t.Errorf("a wake ended as %+v", turn)
	}
	until(t, "it is started again", func() bool { return b.agent("ada").Starts == 2 })
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the first process is still there: %v", err)
	}
	if s := b.agent("ada"); !strings.Contains(s.Why, "closed its input") {
		t.Errorf("the status tells %+v", s)
	}
}

func TestAnAgentThatClosesItsInputMayEndItsWake(t *testing.T) {
	enough := filepath.Join(t.TempDir(), "enough")
	b := run(t, one("ada", shell("ada", `read wake; read message; exec <&-; echo '{"id":"deaf"}'
while [ ! -e '`+enough+`' ]; do sleep 0.05; done; echo '{"carrier":{"done":"wake_7"}}'; while :; do sleep 1; done`)))
	b.ready()
	turn := b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))
	until(t, "its envelope is taken", func() bool { return len(b.in.ids()) == 1 })
	s, err := b.live[0].currentSession()
	if err != nil {
		t.Fatal(err)
	}
	<-s.input.broken // It cannot be told.
	deaf := time.Now()
	until(t, "an agent without a wake would have been ended", func() bool { return time.Since(deaf) > stopGrace+stopGrace/4 })
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := over(t, turn); o.err != nil || o.outcome.State != core.WakeSucceeded {
		t.Errorf("the wake ended as %+v", o)
	}
	until(t, "it is started again", func() bool { return b.agent("ada").Starts == 2 })
}

func TestAnAgentThatClosesItsInputMayEndByItself(t *testing.T) {
	b := run(t, one("ada", shell("ada", `exec <&-; echo '{"id":"up"}'; sleep 0.3; exit 5`)))
	until(t, "it is there", func() bool { return len(b.in.ids()) == 1 })
	if code := failure(t, b.send(t.Context(), "ada", "a")); code != core.CodeUnavailable {
		t.Errorf("failed with %q, want %q", code, core.CodeUnavailable)
	}
	until(t, "it is started again", func() bool { return b.agent("ada").Starts == 2 })
	if s := b.agent("ada"); !strings.Contains(s.Why, "exit status 5") {
		t.Errorf("the status tells %+v", s)
	}
}

func TestLiveAgentsAreAttachedAndLocalOnesDetached(t *testing.T) {
	local := shell("loc", `echo '{"id":"never"}'`)
	local.Participation.Mode = ""
	nobody := AgentConfig{Command: []string{"true"}}
	b := run(t, map[string]AgentConfig{"ada": shell("ada", "cat"), "loc": local, "nobody": nobody})
	b.ready()
	at := func(peer string) core.Attachment {
		return core.Attachment{WorkspaceID: testWorkspace, Channel: testChannel, Peer: peer, Push: true, Principal: peer}
	}
	until(t, "the local agent is detached", func() bool {
		b.in.mu.Lock()
		defer b.in.mu.Unlock()
		return b.in.detached[at("loc")] && len(b.in.detached) == 1
	})
	b.in.set(func(in *testIntake) {
		if !in.attached[at("ada")] || len(in.attached) != 1 {
			t.Errorf("attached are %v", in.attached)
		}
	})
	if s := b.agent("loc"); s.State != "local" || s.Starts != 0 {
		t.Errorf("the local agent is %+v", s)
	}
	pins := b.Pins()
	if len(pins) != 1 || pins[0].Peer != "ada" || pins[0].Principal != "ada" || len(pins[0].Workspaces) != 1 || pins[0].Workspaces[0] != testWorkspace {
		t.Errorf("the pins are %+v", pins)
	}
	b.stop()
	if len(b.in.ids()) > 0 {
		t.Error("the local agent was started")
	}
}

func TestAttachingIsTriedAgain(t *testing.T) {
	b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
	b.in.refuse = errors.New("the database is busy")
	b.Carrier = build(t, testConfig(one("ada", shell("ada", "cat"))), b.logs)
	b.start()
	until(t, "the status says why", func() bool { return strings.Contains(b.Status().Why, "the database is busy") })
	if n := b.agent("ada").Starts; n != 0 {
		t.Errorf("an agent that is not attached was started %d times", n)
	}
	b.in.set(func(in *testIntake) { in.refuse = nil })
	b.ready()
}

func TestStoppingGatewayTakesNothingAndKeepsThePipeEmpty(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	b.in.set(func(in *testIntake) { in.refuse = core.ErrStopping })
	p.write(t, say("a")+"\n"+strings.Repeat("x", 1<<20)+"\n")
	p.write(t, say("b")+"\n")
	b.stop()
	if n, starts := len(b.in.frames()), b.agent("ada").Starts; n != 0 || starts != 1 {
		t.Errorf("%d frames were offered, and the agent was started %d times", n, starts)
	}
	if lines := p.heard(); len(lines) > 0 {
		t.Errorf("the agent was told %q", lines)
	}
}

func TestASendToAnAgentThatStartsSaysSo(t *testing.T) {
	b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
	b.Carrier = build(t, testConfig(one("ada", shell("ada", "exit 1"))), b.logs)
	starting := func() bool { return errors.Is(wait(t, b.send(t.Context(), "ada", "m")).err, core.ErrStarting) }
	if !starting() {
		t.Error("before the start it is something else")
	}
	b.start()
	until(t, "it has failed", func() bool { return b.agent("ada").Starts > 0 && b.agent("ada").PID == 0 })
	if starting() {
		t.Error("after an end it starts still")
	}
}

func TestNoAgentIsStartedOnceTheGatewayIsStopping(t *testing.T) {
	waiting := shell("bob", "cat")
	waiting.Launch = LaunchWake
	b := run(t, map[string]AgentConfig{
		"ada": shell("ada", "exit 1"),
		"bob": waiting,
		"eve": shell("eve", "cat"),
		"pat": shell("pat", "sleep 60"),
	}, func(cfg *Config) { cfg.Restart.Max = cfg.Restart.Min })
	until(t, "one fails again and again, and the others run", func() bool {
		return b.agent("ada").Starts >= 3 && b.agent("bob").State == "idle" && b.agent("eve").State == "running" && b.agent("pat").State == "running"
	})
	b.Quiesce()
	b.Quiesce() // It may be said twice.
	starts := b.agent("ada").Starts
	until(t, "the one that fails is left alone", func() bool { return b.agent("ada").State == "stopped" })
	if err := syscall.Kill(b.agent("pat").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "one that ends stays ended", func() bool { return b.agent("pat").State == "stopped" })
	if _, err := b.Wake(t.Context(), core.WakeRequest{Agent: "bob", ID: "w", Deadline: time.Now().Add(time.Minute)}); err == nil {
		t.Error("a wake was given to an agent that is not running")
	}
	if got := wait(t, b.send(t.Context(), "eve", "m")); got.err != nil {
		t.Errorf("one that runs is not served any more: %v", got.err)
	}
	for name, want := range map[string]int{"bob": 0, "eve": 1, "pat": 1} {
		if got := b.agent(name).Starts; got != want {
			t.Errorf("%s was started %d times, want %d", name, got, want)
		}
	}
	// The last start may be counted a moment after it was made.
	if got := b.agent("ada").Starts; got > starts+1 {
		t.Errorf("the failing agent was started %d times, %d before", got, starts)
	}
}

func TestCarrierWithoutAgentsIsReady(t *testing.T) {
	b := run(t, nil)
	b.ready()
	b.stop()
}

func TestLimitsOfMixedAgentsAreTheWeakest(t *testing.T) {
	for name, c := range map[string]struct {
		modes []AckMode
		kind  core.AckKind
	}{
		"none":           {nil, core.AckStdioWrite},
		"write":          {[]AckMode{AckWrite, ""}, core.AckStdioWrite},
		"write explicit": {[]AckMode{AckWrite, AckExplicit}, core.AckStdioWrite},
		"explicit":       {[]AckMode{AckExplicit, AckExplicit}, core.AckStdioAck},
	} {
		var live []*agent
		for _, m := range c.modes {
			live = append(live, &agent{cfg: AgentConfig{Ack: m}})
		}
		l := limitsOf(live)
		if l.AckKind != c.kind || l.InFlight < 1 || l.Redelivers || !l.Ordered || l.Guarantee == "" {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
