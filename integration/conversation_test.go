//go:build brokers

package integration

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// arriveWithin bounds what takes a moment when nothing is in the way.
const arriveWithin = 10 * time.Second

func TestAConversationCrossesAllCarriers(t *testing.T) {
	sites(t, func(t *testing.T, at brokers) {
		echo := newAgent(t, "echo", "answerer.sh")
		g := newGateway(t, at, echo.config())
		g.start(t)

		coordinator := connectNode(t, g.nats)
		coordinator.subscribe(t, broadcastSubject, peerSubject("coordinator"))
		worker := subscribe(t, g.mqtt, "", broadcastTopic, peerTopic("worker"))
		observer := g.observe(t, "observer", -1)

		open := opener("m-open", "coordinator", "worker", "w-1")
		open.more = `"mentions":["echo"],` + unusual
		question := pretty(t, open)
		coordinator.store(t, peerSubject("worker"), question)
		worker.await(t, arriveWithin, "the worker", question)

		// The agent is mentioned, and answers.
		eventually(t, arriveWithin, "the agent answers", func() bool { return len(echo.lines(t, "said")) > 0 && echo.lines(t, "said")[0] != "" })
		said := echo.lines(t, "said")[0]
		coordinator.await(t, arriveWithin, "the coordinator", said)
		if heard := echo.hears(t, arriveWithin, "m-open"); heard != oneLine(question) {
			t.Errorf("the agent was given\n%s\nwant\n%s", heard, oneLine(question))
		}

		accepted := receipt("m-accept", "worker", "coordinator", "w-1", "m-open", "accepted")
		working := trace("m-working", "worker", "coordinator", "w-1", "working")
		completed := trace("m-done", "worker", "coordinator", "w-1", "completed")
		accepted.more, working.more, completed.more = unusual, unusual, unusual
		answers := []string{accepted.String(), pretty(t, working), completed.String()}
		for _, a := range answers {
			publish(t, g.mqtt, peerTopic("coordinator"), a)
		}
		coordinator.await(t, arriveWithin, "the coordinator", answers...)

		observed := []string{oneLine(question), said, answers[0], oneLine(answers[1]), answers[2]}
		observer.await(t, arriveWithin, "the observer", observed...)
		if state := g.workState(t, "w-1"); state != "completed" {
			t.Errorf("the work is %q", state)
		}

		for _, id := range []string{"m-open", "re-m-open", "m-accept", "m-working", "m-done"} {
			g.awaitSettled(t, arriveWithin, id)
		}
		if got := slices.DeleteFunc(coordinator.payloads(), func(p string) bool { return p == said }); !slices.Equal(got, answers) {
			t.Errorf("the coordinator got beside the agent's answer\n%q\nwant each once and in order\n%q", got, answers)
		}
		if got := observer.payloads(); len(got) != len(observed) {
			t.Errorf("the observer got %d events, want %d:\n%q", len(got), len(observed), got)
		}
		if got := worker.payloads(); len(got) != 1 {
			t.Errorf("the worker got %d messages, want the one that is for it:\n%q", len(got), got)
		}
		checkInspection(t, g)
	})
}

// checkInspection wants the conversation's decisions, acknowledgements and
// receipts side by side and apart.
func checkInspection(t *testing.T, g *gateway) {
	t.Helper()
	const native, elsewhere = "origin", "located_elsewhere"
	for _, c := range []struct {
		id        string
		decisions map[string]string
		acks      map[string]string
		receipts  []string
	}{
		{
			"m-open",
			map[string]string{"carrier:nats": native, "carrier:mqtt": "deliver", "peer:echo": "deliver"},
			map[string]string{"carrier:mqtt": "acked mqtt.puback", "peer:echo": "acked stdio.write"},
			[]string{"accepted by worker"},
		},
		{
			"re-m-open",
			map[string]string{"carrier:nats": "deliver", "carrier:mqtt": elsewhere, "peer:echo": "origin"},
			map[string]string{"carrier:nats": "acked jetstream.puback"},
			[]string{},
		},
		{
			"m-accept",
			map[string]string{"carrier:nats": "deliver", "carrier:mqtt": native, "peer:echo": "not_addressed"},
			map[string]string{"carrier:nats": "acked jetstream.puback"},
			[]string{},
		},
		{
			"m-done",
			map[string]string{"carrier:nats": "deliver", "carrier:mqtt": native, "peer:echo": "not_addressed"},
			map[string]string{"carrier:nats": "acked jetstream.puback"},
			[]string{},
		},
	} {
		in := g.inspect(t, c.id)
		if got := in.decisions(); !maps.Equal(got, c.decisions) {
			t.Errorf("%s: decisions %v, want %v", c.id, got, c.decisions)
		}
		if got := in.acks(); !maps.Equal(got, c.acks) {
			t.Errorf("%s: acknowledgements %v, want %v", c.id, got, c.acks)
		}
		if got := in.receipts(); !slices.Equal(got, c.receipts) {
			t.Errorf("%s: receipts %v, want %v", c.id, got, c.receipts)
		}
	}
	eventually(t, arriveWithin, "the agent's wake is over", func() bool {
		wakes := g.inspect(t, "m-open").Wakes
		return len(wakes) == 1 && wakes[0].Recipient == "peer:echo" && wakes[0].State == "succeeded"
	})
	text, stderr, status := g.run(t, "inspect", "m-open", "--workspace", workspace)
	if status != 0 {
		t.Fatalf("gateway inspect ends with %d: %s", status, stderr)
	}
	parts := strings.Split(text, "\n\n")
	for title, want := range map[string][]string{
		"Decisions":           {"carrier:mqtt", "deliver", "carrier:nats", "ignore", "origin", "peer:echo"},
		"Deliveries":          {"CARRIER ACK", "carrier:mqtt", "acked", "mqtt.puback", "stdio.write"},
		"Receipts from peers": {"m-accept", "worker", "accepted"},
	} {
		part := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, title) })
		if part < 0 {
			t.Fatalf("gateway inspect has no part %q:\n%s", title, text)
		}
		for _, word := range want {
			if !strings.Contains(parts[part], word) {
				t.Errorf("the part %q of gateway inspect lacks %q:\n%s", title, word, text)
			}
		}
		if title != "Receipts from peers" && strings.Contains(parts[part], "accepted") || title == "Receipts from peers" && strings.Contains(parts[part], "acked") {
			t.Errorf("gateway inspect mixes acknowledgements and receipts:\n%s", text)
		}
	}
}
