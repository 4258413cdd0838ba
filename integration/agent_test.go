//go:build brokers

package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agent is a shell script that a gateway runs as a live peer.
type agent struct {
	peer string
	dir  string
	path string
}

// newAgent prepares an agent that runs the script of testdata/agents.
func newAgent(t *testing.T, peer, script string) *agent {
	t.Helper()
	need(t, "sh", "dash")
	path, err := filepath.Abs(filepath.Join("testdata", "agents", script))
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{peer: peer, dir: t.TempDir(), path: path}
	if err := syscall.Mkfifo(filepath.Join(a.dir, "say"), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// config is the change of a gateway's configuration that adds the agent.
func (a *agent) config() object {
	return object{"carriers.agents.agents." + a.peer: object{
		"command": []string{"sh", a.path, a.dir}, "peer_id": a.peer,
		"workspace": workspace, "channel": channel,
		"participation": object{"mode": "live"},
	}}
}

// lines are the lines of one of the files that the agent writes.
func (a *agent) lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.dir, file))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
	return strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
}

// hears waits until the agent was given a line with that text and returns it.
func (a *agent) hears(t *testing.T, within time.Duration, text string) string {
	t.Helper()
	var found string
	eventually(t, within, "the agent hears "+text, func() bool {
		for _, line := range a.lines(t, "heard") {
			if strings.Contains(line, text) {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

// heard reports whether the agent was given a line with that text.
func (a *agent) heard(t *testing.T, text string) bool {
	t.Helper()
	for _, line := range a.lines(t, "heard") {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// says makes the puppet write a line to its standard output.
func (a *agent) says(t *testing.T, line string) {
	t.Helper()
	// Opened for both, the pipe never blocks for want of a reader.
	pipe, err := os.OpenFile(filepath.Join(a.dir, "say"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if _, err := pipe.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// pids are the processes of the puppet.
func (a *agent) pids(t *testing.T) []int {
	t.Helper()
	var out []int
	eventually(t, 10*time.Second, "the agent runs", func() bool {
		out = nil
		for _, field := range strings.Fields(strings.Join(a.lines(t, "pids"), " ")) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatalf("the agent writes %q for its process ids", field)
			}
			out = append(out, pid)
		}
		return len(out) > 0
	})
	return out
}
