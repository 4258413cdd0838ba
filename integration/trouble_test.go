//go:build brokers

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// backWithin bounds how long a carrier may take to be ready again when its broker
// is there again.
const backWithin = 30 * time.Second

// publicSays are texts of undirected says, and their ids.
func publicSays(prefix string, n int) (lines, ids []string) {
	for i := range n {
		id := fmt.Sprintf("%s-%d", prefix, i)
		ids = append(ids, id)
		lines = append(lines, say(id, "sender", "numbered").String())
	}
	return lines, ids
}

// postAll posts every line, which all must be taken.
func (g *gateway) postAll(t *testing.T, lines []string) {
	t.Helper()
	answers := g.postLines(t, lines)
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(answers), len(lines))
	}
	for _, a := range answers {
		if !a.taken() {
			t.Fatalf("refused: %+v", a)
		}
	}
}

// checkAcked wants every delivery of the messages acknowledged.
func checkAcked(t *testing.T, g *gateway, within time.Duration, ids []string) {
	t.Helper()
	for _, id := range ids {
		for link, ack := range g.awaitSettled(t, within, id).acks() {
			if !strings.HasPrefix(ack, "acked ") {
				t.Errorf("the delivery of %s to %s ends as %s", id, link, ack)
			}
		}
	}
}

func TestAGatewayStartsWithoutItsBrokers(t *testing.T) {
	t.Parallel()
	at := brokers{nats: newNATSServer(t), mqtt: newMosquitto(t)}
	// The device's session stands in the broker's state from before.
	at.mqtt.start(t)
	openSession(t, at.mqtt.port, "device", topicPrefix+"#")
	at.mqtt.stop(t)

	g := newGateway(t, at)
	g.launch(t)
	observer := g.observe(t, "observer", -1)
	lines, ids := publicSays("early", 20)
	g.postAll(t, lines)
	observer.await(t, arriveWithin, "the observer", lines...)
	for _, name := range []string{"nats", "mqtt"} {
		if state, why := g.carrier(t, name); state == "ready" || why == "" {
			t.Errorf("without its broker the carrier %s is %q: %q", name, state, why)
		}
	}
	if status, body := g.get("/readyz"); status != 503 || strings.Count(string(body), "connection refused") != 2 {
		t.Errorf("readyz gives %d %s", status, body)
	}

	at.nats.start(t)
	at.mqtt.start(t)
	g.awaitReady(t, backWithin)
	device := subscribe(t, at.mqtt.port, "device", topicPrefix+"#")
	device.awaitIDs(t, arriveWithin, "the device", ids...)
	client := connectNode(t, at.nats.url())
	client.replay(t)
	client.awaitIDs(t, arriveWithin, "the NATS client", ids...)
	checkAcked(t, g, arriveWithin, ids)
}

// TestBrokersThatGoAwayComeBack takes one broker away while the other carriers
// keep working, with its state and with nothing left of it.
func TestBrokersThatGoAwayComeBack(t *testing.T) {
	for _, c := range []struct {
		name string
		away time.Duration
		wipe bool
	}{
		{"for ten seconds", 10 * time.Second, false},
		{"and lose everything", 3 * time.Second, true},
		{"for a minute", time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Run("mosquitto", func(t *testing.T) {
				t.Parallel()
				mosquittoGoesAway(t, c.away, c.wipe)
			})
			t.Run("nats-server", func(t *testing.T) {
				t.Parallel()
				natsServerGoesAway(t, c.away, c.wipe)
			})
		})
	}
}

func mosquittoGoesAway(t *testing.T, away time.Duration, wipe bool) {
	at := foreignBrokers(t)
	g := newGateway(t, at)
	g.start(t)
	client := connectNode(t, g.nats)
	client.subscribe(t, subjectPrefix+">")
	openSession(t, at.mqtt.port, "device", topicPrefix+"broadcast")

	before, beforeIDs := publicSays("before", 5)
	g.postAll(t, before)
	checkAcked(t, g, arriveWithin, beforeIDs)
	at.mqtt.stop(t)
	eventually(t, arriveWithin, "the gateway sees that the broker is gone", func() bool {
		state, _ := g.carrier(t, "mqtt")
		return state != "ready"
	})
	ids := keepWorking(t, g, client, away)
	if wipe {
		at.mqtt.wipe(t)
		// Only the device's session is made anew, where the gateway does not look.
		at.mqtt.startOn(t, freePort(t))
		openSession(t, at.mqtt.runningOn, "device", topicPrefix+"broadcast")
		at.mqtt.stop(t)
	}
	at.mqtt.start(t)
	g.awaitReady(t, backWithin)
	device := subscribe(t, at.mqtt.port, "device", topicPrefix+"broadcast")
	if !wipe {
		ids = append(ids, beforeIDs...)
	}
	device.awaitIDs(t, arriveWithin, "the device", ids...)
	checkAcked(t, g, arriveWithin, ids)

	// The gateway is subscribed again.
	back := say("back", "device", "I am back").String()
	publish(t, at.mqtt.port, broadcastTopic, back)
	client.await(t, arriveWithin, "the NATS client", back)
}

func natsServerGoesAway(t *testing.T, away time.Duration, wipe bool) {
	at := foreignBrokers(t)
	g := newGateway(t, at)
	g.start(t)
	device := subscribe(t, at.mqtt.port, "", topicPrefix+"broadcast")

	before, beforeIDs := publicSays("before", 5)
	g.postAll(t, before)
	checkAcked(t, g, arriveWithin, beforeIDs)
	at.nats.stop(t)
	eventually(t, arriveWithin, "the gateway sees that the server is gone", func() bool {
		state, _ := g.carrier(t, "nats")
		return state != "ready"
	})
	ids := keepWorking(t, g, device, away)
	if wipe {
		at.nats.wipe(t)
	}
	at.nats.start(t)
	g.awaitReady(t, backWithin)
	client := connectNode(t, g.nats)
	client.replay(t)
	if !wipe {
		ids = append(ids, beforeIDs...)
	}
	client.awaitIDs(t, arriveWithin, "the NATS client", ids...)
	checkAcked(t, g, arriveWithin, ids)

	// The gateway receives again.
	back := say("back", "client", "I am back").String()
	client.store(t, broadcastSubject, back)
	device.await(t, arriveWithin, "the device", back)
}

// receiving is a client that receives, whatever it is.
type receiving interface {
	awaitIDs(t *testing.T, within time.Duration, who string, ids ...string)
}

// keepWorking posts messages while one broker is away, which must reach the
// client of the other one promptly. It returns their ids.
func keepWorking(t *testing.T, g *gateway, other receiving, away time.Duration) []string {
	t.Helper()
	var all []string
	end := time.Now().Add(away)
	for n := 0; n == 0 || time.Now().Before(end); n++ {
		lines, ids := publicSays(fmt.Sprintf("away-%d", n), 5)
		all = append(all, ids...)
		g.postAll(t, lines)
		other.awaitIDs(t, arriveWithin, "the client of the other broker", ids...)
		pause(min(time.Second, max(0, time.Until(end))))
	}
	return all
}
