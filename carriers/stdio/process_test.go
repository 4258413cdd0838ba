package stdio

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"golang.org/x/sys/unix"
)

func TestAgentGetsItsOwnEnvironmentOnly(t *testing.T) {
	t.Setenv("GATEWAY_SECRET", "not for agents")
	t.Setenv("TAKEN_OVER", "from the gateway")
	t.Setenv("LANG", "C.UTF-8")
	file := filepath.Join(t.TempDir(), "env")
	cfg := shell("ada", `env > "$OUT.part"; mv "$OUT.part" "$OUT"; cat > /dev/null`)
	cfg.Env = map[string]EnvValue{"OUT": EnvValue(file), "TAKEN_OVER": "", "OWN": "a value", "PATH": EnvValue(os.Getenv("PATH") + ":/extra")}
	run(t, one("ada", cfg))
	var got []string
	until(t, "the agent has told its environment", func() bool {
		text, err := os.ReadFile(file)
		got = strings.Split(strings.TrimSpace(string(text)), "\n")
		return err == nil
	})
	// A shell adds some of its own.
	got = slices.DeleteFunc(got, func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name)
	})
	want := []string{
		"PATH=" + os.Getenv("PATH") + ":/extra", "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8",
		"OUT=" + file, "TAKEN_OVER=from the gateway", "OWN=a value",
		"COMPOZY_PEER_ID=ada", "COMPOZY_WORKSPACE_ID=" + testWorkspace, "COMPOZY_CHANNEL=" + testChannel,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the environment is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAgentGetsItsOwnPipesAndDirectoryOnly(t *testing.T) {
	dir := t.TempDir()
	// The numbers are those of the open files; 10 and above are the shell's own,
	// and one is what lists them.
	cfg := shell("ada", `exec cat "$0"`)
	cfg.Command = []string{"sh", "-c", `for f in /proc/self/fd/*; do l=$(readlink "$f"); echo "{\"id\":\"${f##*/} $l\"}"; done; echo "{\"id\":\"$(pwd)\"}"; cat >/dev/null`}
	cfg.Dir = dir
	inherited := inheritedFiles(t)
	b := run(t, one("ada", cfg))
	until(t, "the agent has told its directory", func() bool { return slices.Contains(b.in.ids(), dir) })
	for _, id := range b.in.ids() {
		fd, target, listed := strings.Cut(id, " ")
		switch {
		case !listed, target == "", fd == "10", inherited[fd]:
		case slices.Contains([]string{"0", "1", "2"}, fd) && strings.HasPrefix(target, "pipe:"):
		default:
			t.Errorf("the agent has open file %s", id)
		}
	}
}

// inheritedFiles are the open files, by number, that whoever started the tests
// passes on to all processes.
func inheritedFiles(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]bool{}
	for _, f := range dir {
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && n > 2 && flags&unix.FD_CLOEXEC == 0 {
			list[f.Name()] = true
		}
	}
	return list
}

func TestAgentReadsABlockingPipe(t *testing.T) {
	// cat gives up on a pipe that does not block.
	b := run(t, one("ada", shell("ada", "exec cat")))
	b.ready()
	until(t, "what is written comes back", func() bool {
		wait(t, b.send(t.Context(), "ada", "echoed"))
		return slices.Contains(b.in.ids(), "echoed")
	})
	if n := b.agent("ada").Starts; n != 1 {
		t.Errorf("the agent was started %d times", n)
	}
}

func TestShutdownIsOrderly(t *testing.T) {
	dir := t.TempDir()
	cfg := shell("ada", `trap 'echo term > "$DIR/term"' TERM; echo "{\"id\":\"up\"}"; while read -r l; do :; done; echo eof > "$DIR/eof"; sleep 0.2; echo "{\"id\":\"last words\"}"`)
	cfg.Env["DIR"] = EnvValue(dir)
	b := run(t, one("ada", cfg))
	until(t, "the agent is up", func() bool { return len(b.in.ids()) == 1 })
	begin := time.Now()
	b.stop()
	if took := time.Since(begin); took > stopGrace {
		t.Errorf("an agent that ends by itself took %v to stop", took)
	}
	for _, name := range []string{"term", "eof"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("the agent has not seen it: %v", err)
		}
	}
	if s := b.Status(); s.State != core.StateStopped || b.agent("ada").State != "stopped" {
		t.Errorf("the status after the end is %+v", s)
	}
}

func TestStoppingAgentIsToldWhatWasCommitted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acks")
	cfg := shell("ada", `trap "" TERM; echo "{\"id\":\"one\"}"; cat > "$OUT"`)
	cfg.Env["OUT"] = EnvValue(file)
	b := run(t, one("ada", cfg))
	b.in.set(func(in *testIntake) { in.hold = true })
	until(t, "the envelope is offered", func() bool { return len(b.in.ids()) == 1 })
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		until(t, "the agent is stopping", func() bool { return b.agent("ada").State == "stopping" })
		b.in.set(func(in *testIntake) {
			for _, settle := range in.held {
				settle()
			}
		})
	}()
	b.stop()
	<-settled
	got, err := os.ReadFile(file)
	if want := `{"carrier":{"ack":"one","seq":1}}` + "\n"; err != nil || string(got) != want {
		t.Errorf("the agent was told %q (%v), want %q", got, err, want)
	}
}

func TestGuardsRefuseAProgramThatDoesNotCallGuardMain(t *testing.T) {
	t.Setenv(guardEnv, "1")
	c := build(t, testConfig(one("ada", shell("ada", "cat"))), &logBuffer{})
	if err := c.Run(t.Context(), newTestIntake()); err == nil {
		t.Error("a copy of the program that should be a guard runs agents of its own")
	}
}

func TestGuardMainIsOnlyForGuards(t *testing.T) {
	for name, args := range map[string][]string{
		"no argument":      {"gateway"},
		"another":          {"gateway", "serve"},
		"without the mark": {"gateway", guardArg},
		"one more":         {"gateway", guardArg, "x"},
	} {
		if GuardMain(args) {
			t.Errorf("%s: taken for a guard", name)
		}
	}
	t.Setenv(guardEnv, "1")
	if !GuardMain([]string{"gateway", guardArg}) {
		t.Error("a guard without a group of its own goes on as the program")
	}
}
