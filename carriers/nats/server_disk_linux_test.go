package nats

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// inChild marks the process in which writes fail: the limit holds for the whole
// process, and the test's own log must not meet it.
const inChild = "GATEWAY_TEST_FULL_DISK"

// TestStreamThatTheServerGaveUpIsHealed lets the embedded server's writes fail
// until it calls its stream broken, lets them through again, and wants messages to
// pass.
func TestStreamThatTheServerGaveUpIsHealed(t *testing.T) {
	if os.Getenv(inChild) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), inChild+"=1")
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	l := &logs{}
	s := startProbed(t, t.TempDir(), l)
	cfg := DefaultConfig()
	cfg.URL = s.ClientURL()
	in := committing()
	r := ready(t, cfg, in)
	if o := r.send(message("t1", "before")); o.err != nil {
		t.Fatal(o.err)
	}
	free := fullDisk(t, 64<<10)
	eventually(t, "the server gives its stream up", func() bool {
		publishBeside(s.ClientURL(), make([]byte, 64<<10))
		return s.health() != nil
	})
	eventually(t, "that is logged", func() bool { return strings.Contains(l.String(), "is not well") })
	if strings.Contains(l.String(), "restarting") {
		t.Error("the server was restarted while the disk took no writes")
	}
	free()
	eventually(t, "the server is well again", func() bool { return s.health() == nil })
	eventually(t, "messages pass", func() bool { return r.send(message("t2", "after")).err == nil })
	eventually(t, "and come back", func() bool { return in.count("after") >= 1 })
	if in.count("before") == 0 {
		t.Error("the message from before is lost")
	}
	if !strings.Contains(l.String(), "restarting the embedded nats server") {
		t.Error("the restart is not logged")
	}
}

// fullDisk makes every write of this process fail that would let a file grow
// beyond the limit, as a full disk does, until free is called.
func fullDisk(t *testing.T, limit uint64) (free func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Errorf("set the limit of file sizes: %v", err)
		}
	}
	set(syscall.Rlimit{Cur: limit, Max: before.Max})
	free = func() { set(before) }
	t.Cleanup(func() {
		free()
		signal.Reset(syscall.SIGXFSZ)
	})
	return free
}

// publishBeside publishes without the carrier, and does not care for the answer.
func publishBeside(url string, payload []byte) {
	nc, err := natsgo.Connect(url, natsgo.NoReconnect())
	if err != nil {
		return
	}
	defer nc.Close()
	_ = nc.Publish(labBroadcast, payload)
	_ = nc.FlushTimeout(time.Second)
}
