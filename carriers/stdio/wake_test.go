package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// turnOf is a wake that a test gives to an agent, and what comes of it.
type turnOf struct {
	outcome core.WakeOutcome
	err     error
}

type wrote struct {
	mu   sync.Mutex
	list []int
}

func (w *wrote) add(i int, _ core.Ack) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, i)
}

func (w *wrote) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list)
}

// wake gives the agent a turn with the messages.
func (b *bench) wake(ctx context.Context, agent string, given *wrote, messages ...core.WakeMessage) <-chan turnOf {
	over := make(chan turnOf, 1)
	request := core.WakeRequest{Agent: agent, ID: "wake_7", Deadline: time.Unix(1_800_000_000, 0), Messages: messages, Wrote: given.add}
	go func() {
		o, err := b.Wake(ctx, request)
		over <- turnOf{o, err}
	}()
	return over
}

func messageOf(id string) core.WakeMessage {
	return core.WakeMessage{ID: id, Raw: []byte(say(id)), Bytes: len(say(id)), Delivery: core.DeliveryID{Seq: int64(len(id)), Recipient: 1}}
}

func over(t *testing.T, turn <-chan turnOf) turnOf {
	t.Helper()
	select {
	case o := <-turn:
		return o
	case <-time.After(patience):
		t.Fatal("the wake did not end")
		return turnOf{}
	}
}

func TestAResidentAgentIsGivenAWakeInOnePieceAndEndsItByItsWord(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	var given wrote
	long := core.WakeMessage{ID: "long", Bytes: 70_000}
	turn := b.wake(t.Context(), "ada", &given, messageOf("a"), long, messageOf("b"))
	until(t, "the agent has read it all", func() bool { return len(p.heard()) == 4 })
	want := []string{
		`{"carrier":{"wake":"wake_7","deadline":1800000000,"messages":3,"untrusted":true}}`,
		say("a"), `{"carrier":{"omitted":"long","bytes":70000}}`, say("b"),
	}
	for i, line := range p.heard() {
		if line != want[i] {
			t.Errorf("line %d is\n%s\nwant\n%s", i, line, want[i])
		}
	}
	until(t, "all count as given", func() bool { return given.count() == 3 })
	b.in.set(func(in *testIntake) { in.hold = true })
	p.write(t, say("answer")+"\n"+`{"carrier":{"done":"wake_8"}}`+"\n"+`{"carrier":{"done":"wake_7","usage":{"input_tokens":3,"output_tokens":4}}}`+"\n"+say("afterwards")+"\n")
	until(t, "both envelopes are offered", func() bool { return len(b.in.frames()) == 2 })
	never(t, "the wake ended before its line was settled", func() bool { return len(turn) > 0 })
	b.in.set(func(in *testIntake) {
		for _, settle := range in.held {
			settle()
		}
	})
	o := over(t, turn)
	if o.err != nil || o.outcome.State != core.WakeSucceeded || o.outcome.Usage == nil || *o.outcome.Usage != (core.Usage{InputTokens: 3, OutputTokens: 4}) {
		t.Errorf("the wake ended as %+v", o)
	}
	if f := b.in.frames(); f[0].Wake != "wake_7" || f[1].Wake != "" {
		t.Errorf("the envelopes belong to %q and %q", f[0].Wake, f[1].Wake)
	}
}

func TestHowAResidentAgentsWakeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(*testing.T, *puppet)
		state  core.WakeState
		detail string
	}{
		"it says that it failed": {func(t *testing.T, p *puppet) { p.write(t, `{"carrier":{"done":"wake_7","failed":"no model"}}`+"\n") }, core.WakeFailed, "no model"},
		"it says nonsense of its usage": {func(t *testing.T, p *puppet) {
			p.write(t, `{"carrier":{"done":"wake_7","usage":{"input_tokens":-1,"output_tokens":"x"}}}`+"\n")
		}, core.WakeSucceeded, ""},
		"it ends": {func(t *testing.T, p *puppet) { status := 3; p.must(t, order{Exit: &status}) }, core.WakeFailed, "exit status 3"},
		"it ends in a line": {func(t *testing.T, p *puppet) {
			p.write(t, `{"protocol":"comp`)
			status := 0
			p.must(t, order{Exit: &status})
		}, core.WakeFailed, "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			b := run(t, one("ada", p.config(t, "ada")))
			b.ready()
			turn := b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))
			until(t, "the agent has read it", func() bool { return len(p.heard()) == 2 })
			c.do(t, p)
			if o := over(t, turn); o.err != nil || o.outcome.State != c.state || !strings.Contains(o.outcome.Detail, c.detail) || o.outcome.Usage != nil {
				t.Errorf("it ended as %+v", o)
			}
		})
	}
}

func TestAResidentAgentThatDoesNotEndItsWakeIsKilledAndStartedAgain(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	until(t, "a process is there", func() bool { return len(p.processes()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if o := over(t, b.wake(ctx, "ada", &wrote{}, messageOf("a"))); o.err != nil || o.outcome.State != core.WakeDeadlineExceeded {
		t.Errorf("it ended as %+v", o)
	}
	until(t, "another process is there", func() bool { return len(p.processes()) == 2 })
}

func TestAWakeOfAnAgentThatDoesNotRunIsUnavailable(t *testing.T) {
	cfg := shell("ada", "cat")
	cfg.Command = []string{"/nonexistent/agent"}
	wakeCfg := cfg
	wakeCfg.PeerID, wakeCfg.Launch = "bob", LaunchWake
	b := run(t, map[string]AgentConfig{"ada": cfg, "bob": wakeCfg})
	until(t, "bob waits", func() bool { return b.agent("bob").State == string(agentIdle) })
	for _, agent := range []string{"ada", "bob"} {
		o := over(t, b.wake(t.Context(), agent, &wrote{}, messageOf("a")))
		var failed *core.SendError
		if !errors.As(o.err, &failed) || failed.Code != core.CodeUnavailable {
			t.Errorf("%s: %+v", agent, o)
		}
	}
	if s := b.agent("bob"); !strings.Contains(s.Why, "was not found") {
		t.Errorf("the status tells %+v", s)
	}
	o := over(t, b.wake(t.Context(), "nobody", &wrote{}))
	var failed *core.SendError
	if !errors.As(o.err, &failed) || !failed.Code.Permanent() {
		t.Errorf("nobody: %+v", o)
	}
}

func TestALaunchWakeAgentRunsOnceForEachWake(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		state  core.WakeState
		detail string
		usage  *core.Usage
	}{
		"it answers":     {`cat >/dev/null; echo "{\"id\":\"$COMPOZY_WAKE_ID\"}"`, core.WakeSucceeded, "exit status 0", nil},
		"it tells usage": {`cat >/dev/null; echo "{\"id\":\"$COMPOZY_WAKE_ID\"}"; echo "{\"carrier\":{\"done\":\"$COMPOZY_WAKE_ID\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}"`, core.WakeSucceeded, "exit status 0", &core.Usage{InputTokens: 1, OutputTokens: 2}},
		"it fails":       {`echo "{\"id\":\"$COMPOZY_WAKE_ID\"}"; exit 4`, core.WakeFailed, "exit status 4", nil},
		"it says failed": {`cat >/dev/null; echo "{\"id\":\"$COMPOZY_WAKE_ID\"}"; echo "{\"carrier\":{\"done\":\"$COMPOZY_WAKE_ID\",\"failed\":\"sorry\"}}"`, core.WakeFailed, "sorry", nil},
		"it says so too": {`cat >/dev/null; echo "{\"id\":\"$COMPOZY_WAKE_ID\"}"; echo "{\"carrier\":{\"done\":\"$COMPOZY_WAKE_ID\",\"failed\":\"sorry\"}}"; exit 3`, core.WakeFailed, "exit status 3; the agent: sorry", nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := shell("ada", c.script)
			cfg.Launch = LaunchWake
			b := run(t, one("ada", cfg))
			b.ready()
			o := over(t, b.wake(t.Context(), "ada", &wrote{}, messageOf("a")))
			if o.err != nil || o.outcome.State != c.state || !strings.Contains(o.outcome.Detail, c.detail) {
				t.Errorf("it ended as %+v", o)
			}
			if (c.usage == nil) != (o.outcome.Usage == nil) || (c.usage != nil && *c.usage != *o.outcome.Usage) {
				t.Errorf("its usage is %+v", o.outcome.Usage)
			}
			if f := b.in.frames(); len(f) != 1 || f[0].Wake != "wake_7" || idOf(f[0].Payload) != "wake_7" {
				t.Errorf("it said %+v", f)
			}
			if s := b.agent("ada"); s.State != string(agentIdle) || s.PID != 0 || b.Status().State != core.StateReady {
				t.Errorf("the status tells %+v", s)
			}
		})
	}
}

func TestAnAgentThatAcknowledgesByItselfDoesSoInWakesToo(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", explicit(p.config(t, "ada"))))
	b.ready()
	var given wrote
	turn := b.wake(t.Context(), "ada", &given, messageOf("a"))
	until(t, "its acknowledgement is recorded", func() bool {
		b.in.mu.Lock()
		defer b.in.mu.Unlock()
		return b.in.late[messageOf("a").Delivery].Kind == core.AckStdioAck
	})
	p.write(t, `{"carrier":{"done":"wake_7"}}`+"\n")
	if o := over(t, turn); o.outcome.State != core.WakeSucceeded || given.count() != 0 {
		t.Errorf("it ended as %+v, %d given by the line alone", o, given.count())
	}
}

func TestACarrierStaysReadyWhileItsAgentsRunInTheirWakes(t *testing.T) {
	cfg := shell("ada", `cat >/dev/null; while [ ! -e "$GO" ]; do sleep 0.01; done`)
	cfg.Launch = LaunchWake
	goes := filepath.Join(t.TempDir(), "go")
	cfg.Env["GO"] = EnvValue(goes)
	b := run(t, one("ada", cfg), func(c *Config) { c.Restart.Min, c.Restart.Max = time.Minute, time.Minute })
	b.ready()
	for range 2 {
		turn := b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))
		until(t, "it runs", func() bool { return b.agent("ada").State == string(agentRunning) })
		if s := b.Status(); s.State != core.StateReady {
			t.Errorf("in a wake the carrier is %q: %s", s.State, s.Why)
		}
		if err := os.WriteFile(goes, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if o := over(t, turn); o.outcome.State != core.WakeSucceeded {
			t.Fatalf("it ended as %+v", o)
		}
		if err := os.Remove(goes); err != nil {
			t.Fatal(err)
		}
	}
}

// The rest of the wake is more than a pipe holds, so the agent acknowledges
// before its input is written.
func TestAnAgentMayAcknowledgeBeforeItHasReadAllOfItsWake(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := explicit(shell("ada", `read -r wake; read -r first; echo '{"carrier":{"ack":"a"}}'; while :; do sleep 1; done`))
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			ctx, cancel := context.WithCancel(t.Context())
			rest := messageOf("b")
			rest.Raw = fmt.Appendf(nil, `{"id":"b","text":%q}`, strings.Repeat("x", 1<<20))
			turn := b.wake(ctx, "ada", &wrote{}, messageOf("a"), rest)
			until(t, "its acknowledgement is recorded", func() bool {
				b.in.mu.Lock()
				defer b.in.mu.Unlock()
				return b.in.late[messageOf("a").Delivery].Kind == core.AckStdioAck
			})
			cancel()
			if o := over(t, turn); !errors.Is(o.err, context.Canceled) {
				t.Errorf("it ended as %+v", o)
			}
		})
	}
}
