package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestAStopEndsAWakeWithoutAnOutcome(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := shell("ada", `echo "{\"id\":\"up\"}"; while :; do sleep 1; done`)
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			ctx, cancel := context.WithCancel(t.Context())
			turn := b.wake(ctx, "ada", &wrote{}, messageOf("a"))
			until(t, "it runs", func() bool { return len(b.in.ids()) == 1 })
			cancel()
			if o := over(t, turn); !errors.Is(o.err, context.Canceled) {
				t.Errorf("it ended as %+v", o)
			}
		})
	}
}

func TestWhatAnAgentWritesUntilItIsKilledBelongsToItsWake(t *testing.T) {
	for _, launch := range []LaunchMode{LaunchStart, LaunchWake} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := shell("ada", `read -r line; while :; do echo "{\"id\":\"more\"}"; sleep 0.01; done`)
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			o := over(t, b.wake(ctx, "ada", &wrote{}, messageOf("a")))
			if o.err != nil || o.outcome.State != core.WakeDeadlineExceeded {
				t.Errorf("it ended as %+v", o)
			}
			offered := b.in.frames()
			until(t, "the process is gone", func() bool { return b.agent("ada").State != string(agentRunning) || b.agent("ada").Starts > 1 })
			if len(offered) == 0 || len(b.in.frames()) != len(offered) {
				t.Errorf("%d envelopes when the wake was over, %d at the end", len(offered), len(b.in.frames()))
			}
			for i, f := range offered {
				if f.Wake != "wake_7" {
					t.Fatalf("envelope %d belongs to %q", i, f.Wake)
				}
			}
		})
	}
}

func TestWhatAnAgentWritesBehindItsDone(t *testing.T) {
	for launch, want := range map[LaunchMode]string{
		LaunchStart: "",       // The word ended the wake.
		LaunchWake:  "wake_7", // The end of the process ends it.
	} {
		t.Run(string(launch), func(t *testing.T) {
			cfg := shell("ada", `read -r line; read -r line; echo '{"carrier":{"done":"wake_7"}}'; echo '{"id":"behind"}'; read -r line`)
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			if o := over(t, b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))); o.err != nil {
				t.Errorf("it ended as %+v", o)
			}
			until(t, "it is offered", func() bool { return len(b.in.frames()) == 1 })
			if f := b.in.frames()[0]; f.Wake != want {
				t.Errorf("it belongs to %q, want %q", f.Wake, want)
			}
		})
	}
}

func TestAWakeThatComesBeforeItsAgentWaitsForIt(t *testing.T) {
	for launch, script := range map[LaunchMode]string{
		LaunchStart: `read -r line; read -r line; echo '{"carrier":{"done":"wake_7"}}'; read -r line`,
		LaunchWake:  `cat >/dev/null`,
	} {
		cfg := shell("ada", script)
		cfg.Launch = launch
		early := func(t *testing.T) *bench {
			b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
			b.Carrier = build(t, testConfig(one("ada", cfg)), b.logs)
			return b
		}
		t.Run(string(launch)+", which is then started", func(t *testing.T) {
			b := early(t)
			turn := b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))
			never(t, "the wake ended before the agent was there", func() bool { return len(turn) > 0 })
			b.start()
			if o := over(t, turn); o.err != nil || o.outcome.State != core.WakeSucceeded {
				t.Errorf("it ended as %+v", o)
			}
		})
		t.Run(string(launch)+", which is not started any more", func(t *testing.T) {
			b := early(t)
			turn := b.wake(t.Context(), "ada", &wrote{}, messageOf("a"))
			b.Quiesce()
			o := over(t, turn)
			var failed *core.SendError
			if !errors.As(o.err, &failed) || failed.Code != core.CodeUnavailable {
				t.Errorf("it ended as %+v", o)
			}
		})
	}
}

func TestWhatHasExpiredIsNotHandedOver(t *testing.T) {
	at := func(id string, d time.Duration) core.WakeMessage {
		m := messageOf(id)
		m.Deadline = time.Now().Add(d)
		return m
	}
	for name, launch := range map[string]LaunchMode{"to an agent that stays": LaunchStart, "to a process of its own": LaunchWake} {
		t.Run(name, func(t *testing.T) {
			read := filepath.Join(t.TempDir(), "read")
			done := `echo "{\"carrier\":{\"done\":\"wake_7\"}}"`
			cfg := shell("ada", `while read -r line; do echo "$line" >>"`+read+`"; case "$line" in *'"fresh"'*) `+done+`;; esac; done`)
			cfg.Launch = launch
			b := run(t, one("ada", cfg))
			b.ready()
			var given wrote
			if o := over(t, b.wake(t.Context(), "ada", &given, at("late", -time.Second), at("fresh", time.Hour))); o.err != nil || o.outcome.State != core.WakeSucceeded {
				t.Errorf("it ended as %+v", o)
			}
			text, err := os.ReadFile(read)
			omitted := fmt.Sprintf(`{"carrier":{"omitted":"late","bytes":%d,"expired":true}}`, len(say("late")))
			if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 4 || lines[1] != omitted || lines[2] != say("fresh") {
				t.Errorf("the agent read %q: %v", text, err)
			}
			if given.count() != 1 {
				t.Errorf("%d messages count as given", given.count())
			}
			o := over(t, b.wake(t.Context(), "ada", &wrote{}, at("late", -time.Second)))
			var failure *core.SendError
			if !errors.As(o.err, &failure) || failure.Code != core.CodeExpired {
				t.Errorf("with nothing fresh it ended as %+v", o)
			}
			if again, _ := os.ReadFile(read); string(again) != string(text) {
				t.Errorf("the agent read %q as well", again[len(text):])
			}
		})
	}
}
