//go:build brokers

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// attached is a process that gateway attach joins to a gateway: the test itself.
type attached struct {
	arrivals
	process *program
}

func (g *gateway) attach(t *testing.T, peer string) *attached {
	t.Helper()
	a := &attached{}
	a.process = start(t, launch{pipe: true, stdout: &splitter{take: func(line []byte) { a.add("", line) }}},
		gatewayBinary, "attach", "--workspace", workspace, "--channel", channel, "--peer", peer, "--url", g.url(""))
	return a
}

// acks is how often each id was acknowledged on stdout.
func (a *attached) acks(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, line := range a.payloads() {
		var frame struct{ Carrier struct{ Ack, Nack string } }
		if err := json.Unmarshal([]byte(line), &frame); err != nil {
			t.Fatalf("a line of stdout is no JSON: %v\n%s", err, line)
		}
		if frame.Carrier.Nack != "" {
			t.Errorf("a line was refused: %s", line)
		}
		if frame.Carrier.Ack != "" {
			out[frame.Carrier.Ack]++
		}
	}
	return out
}

// TestAttachOutlivesItsGateway kills the gateway again and again under a process
// that sends and receives, and lets it stay away for a while.
func TestAttachOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	bob := g.attach(t, "bob")
	var spoken, heard []string
	speak := func(id string) {
		spoken = append(spoken, id)
		if _, err := bob.process.stdin.Write([]byte(say(id, "bob", "from the pipe").String() + "\n")); err != nil {
			t.Fatalf("the pipe to gateway attach: %v", err)
		}
	}
	speak("spoken-first")
	eventually(t, arriveWithin, "the first line is acknowledged", func() bool { return bob.acks(t)["spoken-first"] == 1 })
	for round, away := range []time.Duration{0, 0, 3 * time.Second, 0} {
		for n := range 10 {
			speak(fmt.Sprintf("spoken-%d-%d", round, n))
			m := say(fmt.Sprintf("heard-%d-%d", round, n), "caller", "to the pipe")
			m.to = "bob"
			g.post(t, m.String())
			heard = append(heard, m.id)
			if n == 5 {
				g.crash()
				speak(fmt.Sprintf("spoken-%d-while-away", round))
				pause(away)
				g.start(t)
			}
		}
	}
	bob.awaitIDs(t, backWithin, "bob", heard...)
	eventually(t, backWithin, "every line is acknowledged", func() bool { return len(bob.acks(t)) == len(spoken) })
	if err := bob.process.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if status := bob.process.status(t, 10*time.Second); status != 0 {
		t.Errorf("gateway attach ends with %d", status)
	}
	for id, n := range bob.acks(t) {
		if n != 1 || !slices.Contains(spoken, id) {
			t.Errorf("%s was acknowledged %d times", id, n)
		}
	}
	history := ofPeers(g.history(t, ""))
	for _, id := range append(slices.Clone(spoken), heard...) {
		if n := occurrences(history, id); n != 1 {
			t.Errorf("%s stands in the history %d times", id, n)
		}
	}
	var order []string
	for _, id := range history {
		if strings.HasPrefix(id, "spoken-") {
			order = append(order, id)
		}
	}
	if !slices.Equal(order, spoken) {
		t.Errorf("the lines were taken in the order %v, want %v", order, spoken)
	}
	for _, id := range heard {
		if ack := g.awaitSettled(t, arriveWithin, id).acks()["peer:bob"]; ack != "acked http.cursor" {
			t.Errorf("the delivery of %s ends as %q", id, ack)
		}
	}
}

// TestATokenThatIsRemovedEndsItsStream takes a token away while streams of it and
// of another are open.
func TestATokenThatIsRemovedEndsItsStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := object{}
	for _, name := range []string{"reader", "writer"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(name+"-word\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens[name] = object{"token_file": file}
	}
	g := newGateway(t, embeddedBrokers(t), object{"carriers.http.tokens": tokens})
	g.start(t)
	stream := func(name string) (*program, *arrivals) {
		seen := &arrivals{}
		lines := &splitter{take: func(line []byte) {
			if data, ok := strings.CutPrefix(string(line), "data: "); ok {
				seen.add("", []byte(data))
			}
		}}
		return start(t, launch{stdout: lines}, need(t, "curl", "curl"), "-sSN", "-f", "-H", "Authorization: Bearer "+name+"-word",
			g.url("/v0/workspaces/"+workspace+"/channels/"+channel+"/stream?after=0")), seen
	}
	send := func(id string) {
		stdout, stderr, status := output(t, 20*time.Second, []byte(say(id, "caller", "hello").String()+"\n"), gatewayBinary,
			"send", "--url", g.url(""), "--token-file", filepath.Join(dir, "writer"))
		if status != 0 {
			t.Fatalf("gateway send ends with %d: %s%s", status, stdout, stderr)
		}
	}
	reader, readerSaw := stream("reader")
	writer, writerSaw := stream("writer")
	send("before")
	readerSaw.awaitIDs(t, arriveWithin, "the reader", "before")
	writerSaw.awaitIDs(t, arriveWithin, "the writer", "before")

	if err := os.Remove(filepath.Join(dir, "reader")); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the reader's stream ends", reader.ended)
	send("after")
	writerSaw.awaitIDs(t, arriveWithin, "the writer", "after")
	if writer.ended() || readerSaw.count()["after"] != 0 {
		t.Error("the other stream ended, or the reader saw what came later")
	}
	again, _ := stream("reader")
	if status := again.status(t, 10*time.Second); status != 22 {
		t.Errorf("curl ends with %d when the removed token is used again, want the 22 of an error status", status)
	}
}
