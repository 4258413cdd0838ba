package stdio

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const hostScript = "STDIO_TEST_SCRIPT"

// hostMain is a gateway, as far as an agent is concerned: it runs one, a shell
// script, until it is told to stop, and prints what the agent writes.
func hostMain() int {
	cfg := testConfig(one("ada", shell("ada", os.Getenv(hostScript))))
	c, err := New(cfg, core.Host{Name: "agents", MaxEnvelopeBytes: testLimit, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 1
	}
	in := newTestIntake()
	in.verdict = func(frame core.Inbound, _ int) core.Settlement {
		fmt.Println(idOf(frame.Payload))
		return core.Settlement{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, in) }()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	cancel()
	if <-ended != nil {
		return 1
	}
	return 0
}

// startHost starts a gateway whose agent tells its processes as the ids of
// envelopes, n of them. It returns their pids and the group that they are in.
func startHost(t *testing.T, script string, n int) (host *exec.Cmd, stop func(), pids []int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host = exec.Command(exe)
	host.Env = append(os.Environ(), testRole+"=host", hostScript+"="+script)
	host.Stderr = os.Stderr
	in, err := host.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Process.Kill()
		_ = host.Wait()
	})
	lines := bufio.NewReader(out)
	for range n {
		text, err := lines.ReadString('\n')
		pid, err2 := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || err2 != nil {
			t.Fatalf("the agent's processes: %q, %v, %v", text, err, err2)
		}
		pids = append(pids, pid)
	}
	return host, func() { in.Close() }, pids
}

// family is an agent of three generations that all ignore SIGTERM when told so.
func family(trap string) string {
	grandchild := trap + `echo "{\"id\":\"$$\"}"; while :; do sleep 1; done`
	child := trap + `sh -c '` + strings.ReplaceAll(grandchild, `'`, `'\''`) + `' & echo "{\"id\":\"$$\"}"; wait; while :; do sleep 1; done`
	return trap + `sh -c '` + strings.ReplaceAll(child, `'`, `'\''`) + `' & echo "{\"id\":\"$$\"}"; wait; while :; do sleep 1; done`
}

func groupOf(t *testing.T, pid int) int {
	t.Helper()
	group, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	return group
}

// groupIsEmpty reports whether no process is left in the group.
func groupIsEmpty(group int) bool { return syscall.Kill(-group, 0) == syscall.ESRCH }

func TestKilledGatewayLeavesNoProcessOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{
		"processes that obey":           "",
		"processes that ignore SIGTERM": `trap "" TERM HUP INT; `,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, _, pids := startHost(t, family(trap), 3)
			group := groupOf(t, pids[0])
			for _, pid := range pids {
				if got := groupOf(t, pid); got != group {
					t.Errorf("process %d is in group %d, want %d", pid, got, group)
				}
			}
			if group == groupOf(t, host.Process.Pid) {
				t.Fatal("the agent is in the gateway's own group")
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			until(t, "no process of the group is left", func() bool { return groupIsEmpty(group) })
		})
	}
}

func TestStoppedGatewayLeavesNoProcessOfAnAgent(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{
		"processes that obey":           "",
		"processes that ignore SIGTERM": `trap "" TERM HUP INT; `,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, stop, pids := startHost(t, family(trap), 3)
			group := groupOf(t, pids[0])
			stop()
			if err := host.Wait(); err != nil {
				t.Errorf("the gateway ended badly: %v", err)
			}
			// They are killed by now; somebody else has yet to wait for the orphans.
			until(t, "no process of the group is left", func() bool { return groupIsEmpty(group) })
		})
	}
}

func TestGroupIsKilledWhenItsLeaderEnds(t *testing.T) {
	t.Parallel()
	b := run(t, one("ada", shell("ada", `sleep 1000 & echo "{\"id\":\"$!\"}"; exit 3`)))
	until(t, "two processes have ended", func() bool { return len(b.in.ids()) >= 2 })
	pid, err := strconv.Atoi(b.in.ids()[0])
	if err != nil {
		t.Fatal(err)
	}
	until(t, "what the first process left is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
}

func TestAgentIsStartedAgainWhenItsGuardDies(t *testing.T) {
	p := newPuppet(t)
	b := run(t, one("ada", p.config(t, "ada")))
	b.ready()
	until(t, "the first process is there", func() bool { return len(p.processes()) == 1 })
	first := p.processes()[0]
	if err := syscall.Kill(groupOf(t, first), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "a second process is there", func() bool { return len(p.processes()) == 2 })
	if err := syscall.Kill(first, 0); err != syscall.ESRCH {
		t.Errorf("the first process is still there: %v", err)
	}
}

func TestAgentThatKillsItsGroupIsOnlyStartedAgain(t *testing.T) {
	for _, signal := range []string{"TERM", "INT", "KILL"} {
		t.Run(signal, func(t *testing.T) {
			b := run(t, one("ada", shell("ada", `echo "{\"id\":\"x\"}"; kill -`+signal+` 0; sleep 1000`)))
			until(t, "it was started three times", func() bool { return len(b.in.ids()) >= 3 })
		})
	}
}

func TestAgentThatLeavesItsGroupIsStoppedToo(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Fatal("the test needs setsid: ", err)
	}
	cfg := shell("ada", "")
	cfg.Command = []string{"setsid", "sh", "-c", `trap "" TERM; echo "{\"id\":\"$$\"}"; while :; do sleep 1; done`}
	b := run(t, one("ada", cfg))
	until(t, "the agent is there", func() bool { return len(b.in.ids()) == 1 })
	pid, _ := strconv.Atoi(b.in.ids()[0])
	b.stop()
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("the agent is still there: %v", err)
	}
}
