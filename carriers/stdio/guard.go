package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	// guardArg is the hidden first argument of a guard, and guardEnv marks its
	// environment. Both must be there, so that nobody becomes one by accident.
	guardArg = "stdio-guard"
	guardEnv = "COMPOZY_STDIO_GUARD"
	// guardWord is what a guard says once no signal but SIGKILL ends it.
	guardWord = "guarding"
	// guardPatience is how long a guard may take to say it.
	guardPatience = 10 * time.Second
)

// errNoGuardMain says that the program that runs the carrier does not call
// GuardMain, so that its guards would be second copies of the program.
var errNoGuardMain = errors.New("the program does not call stdio.GuardMain before anything else")

// GuardMain must be the first thing that main does, in every program that runs
// this carrier (and the first thing in TestMain of tests that do). Where the
// arguments are those of a guard it acts as one, and the program is over;
// otherwise it returns false at once.
//
// A guard leads the process group in which one agent runs. It waits for the end
// of its standard input, whose other end the gateway holds, and then kills its
// whole group and so itself. The kernel closes that pipe however the gateway
// ends, so also a gateway that was killed leaves nothing behind. And as long as
// the guard is there (or is not yet waited for), the number of the group cannot
// come to mean another one.
func GuardMain(args []string) bool {
	if len(args) != 2 || args[1] != guardArg || os.Getenv(guardEnv) == "" {
		return false
	}
	if syscall.Getpgrp() != os.Getpid() {
		return true // Not in a group of its own: it would kill somebody else's.
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if _, err := io.WriteString(os.Stdout, guardWord); err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	_ = syscall.Kill(0, syscall.SIGKILL)
	return true
}

// guard is the process that leads an agent's process group.
type guard struct {
	cmd *exec.Cmd
	// hold is the write end of its standard input: its life line.
	hold *os.File
	// voice is the read end of its standard output, which ends with it.
	voice *os.File
	// lost is closed when the guard has died.
	lost chan struct{}
}

// startGuard starts a guard and waits until it is ready.
func startGuard() (*guard, error) {
	if os.Getenv(guardEnv) != "" {
		return nil, errNoGuardMain
	}
	exe, err := ownExecutable()
	if err != nil {
		return nil, err
	}
	in, out, err := twoPipes()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{os.Args[0], guardArg}
	cmd.Env = []string{guardEnv + "=1", "GOMAXPROCS=1"}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout = in.r, out.w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	in.r.Close()
	out.w.Close()
	g := &guard{cmd: cmd, hold: in.w, voice: out.r, lost: make(chan struct{})}
	if err != nil {
		g.hold.Close()
		g.voice.Close()
		return nil, err
	}
	if err := g.awaitWord(); err != nil {
		close(g.lost)
		g.end()
		return nil, err
	}
	go func() {
		defer close(g.lost)
		_, _ = io.Copy(io.Discard, g.voice)
	}()
	return g, nil
}

func (g *guard) awaitWord() error {
	word := make([]byte, len(guardWord))
	if err := g.voice.SetReadDeadline(time.Now().Add(guardPatience)); err != nil {
		return fmt.Errorf("await the guard: %w", err)
	}
	if _, err := io.ReadFull(g.voice, word); err != nil || string(word) != guardWord {
		return errNoGuardMain
	}
	return g.voice.SetReadDeadline(time.Time{})
}

// group is the process group that the guard leads.
func (g *guard) group() int { return g.cmd.Process.Pid }

// signal sends the signal to the whole group. A guard that is ready dies of
// SIGKILL alone. It must not be called after end.
func (g *guard) signal(sig syscall.Signal) { _ = syscall.Kill(-g.group(), sig) }

// end kills whatever is left of the group, the guard with it, and waits for the
// guard. Only then may the group's number be used again by others.
func (g *guard) end() {
	g.signal(syscall.SIGKILL)
	g.hold.Close()
	_ = g.cmd.Wait() // It was killed; there is no other outcome.
	<-g.lost
	g.voice.Close()
}

// ownExecutable names the file of the running program. On Linux it is the
// program itself, also after an upgrade has put another file in its place.
func ownExecutable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program's own file: %w", err)
	}
	return exe, nil
}

// pipe is the two ends of an os.Pipe. Neither is inherited by a child that is
// not given it.
type pipe struct{ r, w *os.File }

func newPipe() (pipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return pipe{}, fmt.Errorf("open a pipe: %w", err)
	}
	return pipe{r, w}, nil
}

func (p pipe) close() {
	p.r.Close()
	p.w.Close()
}

func twoPipes() (a, b pipe, err error) {
	if a, err = newPipe(); err != nil {
		return a, b, err
	}
	if b, err = newPipe(); err != nil {
		a.close()
	}
	return a, b, err
}
