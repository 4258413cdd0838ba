//go:build brokers

package integration

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestSIGTERMUnderLoadLosesNothing stops a gateway in the middle of its work.
func TestSIGTERMUnderLoadLosesNothing(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		puppet := newAgent(t, "puppet", "puppet.sh")
		g := newGateway(t, at, puppet.config())
		g.start(t)
		agents := puppet.pids(t)
		if at.mqtt != nil {
			openSession(t, g.mqtt, "device", broadcastTopic)
		}
		g.observe(t, "observer", -1)

		request := g.postingStream(t, &flow{})
		devices := map[string]*program{}
		texts, ids := publicSays("device", 20)
		for i, id := range ids {
			devices[id] = publishing(t, g.mqtt, ingressTopic, []byte(texts[i]))
		}
		eventually(t, arriveWithin, "the load is being taken", func() bool { return len(request.answers(t)) > 50 })
		began := time.Now()
		if status := g.process.terminate(t, 10*time.Second); status != 0 {
			t.Errorf("SIGTERM under load ended the gateway with status %d", status)
		}
		t.Logf("stopped within %v", time.Since(began).Round(time.Millisecond))
		checkGone(t, agents)

		request.process.status(t, 10*time.Second)
		var acknowledged []string
		for _, a := range request.answers(t) {
			if a.taken() {
				acknowledged = append(acknowledged, a.ID)
			}
		}
		for id, device := range devices {
			if device.status(t, 10*time.Second) == 0 {
				acknowledged = append(acknowledged, id)
			}
		}
		g.start(t)
		var history []string
		eventually(t, backWithin, "what was acknowledged is in the history", func() bool {
			history = ofPeers(g.history(t, ""))
			return !slices.ContainsFunc(acknowledged, func(id string) bool { return occurrences(history, id) == 0 })
		})
		for _, id := range acknowledged {
			if n := occurrences(history, id); n != 1 {
				t.Errorf("%s stands in the history %d times", id, n)
			}
		}
		// The gateway may have taken more than it could say.
		client := connectNode(t, g.nats)
		client.replay(t)
		client.awaitIDs(t, backWithin, "the NATS client", history...)
		if at.mqtt != nil {
			subscribe(t, g.mqtt, "device", broadcastTopic).awaitIDs(t, backWithin, "the device", history...)
		}
	})
}

// flow is a reader of envelopes that come one after the other and never end.
type flow struct {
	n    int
	rest string
}

// Read gives the rest of an envelope, or a new one after a moment.
func (f *flow) Read(p []byte) (int, error) {
	if f.rest == "" {
		pause(time.Millisecond)
		f.n++
		f.rest = say(fmt.Sprintf("load-%d", f.n), "sender", "numbered").String() + "\n"
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// TestAgentsEndWithTheGateway wants nothing left of an agent's processes, however
// the gateway ends.
func TestAgentsEndWithTheGateway(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, g *gateway){
		"SIGTERM": func(t *testing.T, g *gateway) { g.stop(t) },
		"SIGINT": func(t *testing.T, g *gateway) {
			g.process.signal(syscall.SIGINT)
			if status := g.process.status(t, 10*time.Second); status != 0 {
				t.Errorf("SIGINT ended the gateway with status %d", status)
			}
		},
		"SIGKILL": func(_ *testing.T, g *gateway) { g.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			puppet := newAgent(t, "puppet", "puppet.sh")
			g := newGateway(t, embeddedBrokers(t), puppet.config())
			g.start(t)
			agents := puppet.pids(t)
			if slices.ContainsFunc(agents, gone) {
				t.Fatalf("the agent's processes %v do not run", agents)
			}
			end(t, g)
			checkGone(t, agents)
		})
	}
}

func checkGone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, 5*time.Second, "the agent's processes are gone", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return !gone(pid) })
	})
}
