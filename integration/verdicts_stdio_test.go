package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// matrixSeat is where an agent sits: nobody else can speak for it there.
type matrixSeat struct{ workspace, peer string }

// matrixAgent is testdata/agents/puppet.sh between two named pipes: what is
// written into the one it says, what it hears comes out of the other.
type matrixAgent struct {
	channel string
	dir     string
	says    *os.File
	// control are the lines about the carrier that it hears.
	control chan string
}

// newMatrixAgents prepares an agent for every seat that the cases speak from.
func newMatrixAgents(t *testing.T, cases []matrixCase) map[matrixSeat]*matrixAgent {
	t.Helper()
	agents := map[matrixSeat]*matrixAgent{}
	for number, c := range cases {
		for _, f := range c.frames(newMatrixWorld(number)) {
			seat := matrixSeatOf(f)
			if _, pinned := f.on[matrixStdio]; !pinned && agents[seat] == nil {
				agents[seat] = newMatrixAgent(t, f.channel)
			}
		}
	}
	return agents
}

// matrixSeatOf is the seat from which a frame is said. What no agent may say is
// said by one that may say something else.
func matrixSeatOf(f matrixFrame) matrixSeat {
	if !strings.HasPrefix(f.workspace, matrixWorkspace) {
		return matrixSeat{matrixWorkspace, f.sender}
	}
	return matrixSeat{f.workspace, f.sender}
}

func newMatrixAgent(t *testing.T, channel string) *matrixAgent {
	t.Helper()
	a := &matrixAgent{channel: channel, dir: t.TempDir(), control: make(chan string, 1024)}
	a.says = a.pipe(t, "say")
	heard := a.pipe(t, "heard")
	read := make(chan struct{})
	go func() {
		defer close(read)
		a.listen(heard)
	}()
	t.Cleanup(func() {
		_ = a.says.Close()
		_ = heard.Close() // ends the reading
		<-read
	})
	return a
}

// pipe makes a named pipe. Opened for both, it never blocks for want of the other
// end; what closes it also ends whoever reads from it here.
func (a *matrixAgent) pipe(t *testing.T, name string) *os.File {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// listen keeps the agent's input flowing; envelopes are of no interest.
func (a *matrixAgent) listen(heard *os.File) {
	lines := bufio.NewReader(heard)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, `{"carrier":{"ack":`) || strings.HasPrefix(line, `{"carrier":{"nack":`) {
			a.control <- line
		}
		if err != nil {
			return
		}
	}
}

func matrixAgentConfig(agents map[matrixSeat]*matrixAgent) map[string]any {
	config := map[string]any{}
	puppet, err := filepath.Abs(filepath.Join("testdata", "agents", "puppet.sh"))
	if err != nil {
		panic(err) // there is no working directory
	}
	for seat, a := range agents {
		config[fmt.Sprintf("agent-%d", len(config))] = map[string]any{
			"command": []string{"sh", puppet, a.dir}, "peer_id": seat.peer, "workspace": seat.workspace, "channel": a.channel,
			"participation": map[string]any{"mode": "live"},
		}
	}
	return config
}

// matrixPuppeteer speaks through the agents.
type matrixPuppeteer struct {
	g      *matrixGatewayProcess
	fences int
}

// deliver says every frame and then reads the answers. Behind what is no frame
// at all something is said that is one, so that the next answer is about it.
func (p *matrixPuppeteer) deliver(t *testing.T, frames []matrixFrame) ([]string, bool) {
	t.Helper()
	for _, f := range frames {
		p.say(t, f)
	}
	var outcomes []string
	for _, f := range frames {
		if f.outcome(matrixStdio).verdict == "unheard" {
			w := newMatrixWorld(0)
			p.fences++
			fence := w.taken(w.sayFrom(f.sender).text("id", fmt.Sprintf("fence-%d", p.fences)))
			p.say(t, fence)
			if got := p.answer(t, fence); got != "committed" {
				t.Errorf("behind noise a message is %s", got)
			}
			outcomes = append(outcomes, "unheard")
			continue
		}
		outcomes = append(outcomes, p.answer(t, f))
	}
	return outcomes, true
}

func (p *matrixPuppeteer) agent(t *testing.T, f matrixFrame) *matrixAgent {
	t.Helper()
	a := p.g.agents[matrixSeatOf(f)]
	if a == nil {
		t.Fatalf("nobody speaks as %s in %s", f.sender, f.workspace)
	}
	return a
}

func (p *matrixPuppeteer) say(t *testing.T, f matrixFrame) {
	t.Helper()
	if _, err := p.agent(t, f).says.WriteString(p.framed(f.payload) + "\n"); err != nil {
		t.Fatal(err)
	}
}

// answer reads the next line about the carrier, which is about this frame.
func (p *matrixPuppeteer) answer(t *testing.T, f matrixFrame) string {
	t.Helper()
	var line string
	select {
	case line = <-p.agent(t, f).control:
	case <-time.After(matrixPatience):
		t.Fatalf("the agent is told nothing of %s", matrixShown([]matrixFrame{f}))
	}
	var said struct {
		Carrier struct {
			Ack        *string         `json:"ack"`
			Nack       json.RawMessage `json:"nack"`
			Seq        *int64          `json:"seq"`
			Duplicate  bool            `json:"duplicate"`
			Parked     bool            `json:"parked"`
			ReasonCode core.Reason     `json:"reason_code"`
		} `json:"carrier"`
	}
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		t.Fatalf("the agent is told %s: %v", line, err)
	}
	c := said.Carrier
	var name struct {
		ID string `json:"id"`
	}
	readable := json.Unmarshal([]byte(f.payload), &name) == nil && f.outcome(matrixStdio).step > core.StepFields
	switch {
	case c.Ack != nil && (*c.Ack != name.ID || (c.Seq == nil) != c.Parked):
		t.Errorf("the agent is told %s of %s", line, name.ID)
	case c.Ack == nil && readable && string(c.Nack) != matrixQuote(name.ID):
		t.Errorf("the agent is told %s of %s", line, name.ID)
	}
	switch {
	case c.Ack == nil:
		return "rejected " + string(c.ReasonCode)
	case c.Duplicate:
		return "duplicate"
	case c.Parked:
		return "parked"
	}
	return "committed"
}

func (*matrixPuppeteer) framed(payload string) string { return matrixOneLine(payload) }

func (*matrixPuppeteer) finish(*testing.T, []matrixSent) {}
