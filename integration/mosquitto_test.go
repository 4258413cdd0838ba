//go:build brokers

package integration

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const topicPrefix = "compozy/network/v0/" + workspace + "/" + channel + "/"

// The topics of the channel.
const (
	broadcastTopic = topicPrefix + "broadcast"
	ingressTopic   = topicPrefix + "ingress"
)

func peerTopic(peer string) string { return topicPrefix + "peer/" + core.RouteToken(peer) }

// device is an MQTT subscriber: mosquitto_sub.
type device struct {
	arrivals
	process *program
}

// subscribe starts a subscriber at QoS 1 and waits until the broker has told it
// that it is subscribed. With a session, the broker keeps for it what comes while
// it is away.
func subscribe(t *testing.T, port int, session string, topics ...string) *device {
	t.Helper()
	arguments := []string{}
	if session != "" {
		arguments = append(arguments, "-c", "-i", session)
	}
	for _, topic := range topics {
		arguments = append(arguments, "-t", topic)
	}
	return subscribeWith(t, port, arguments...)
}

// subscribeWith subscribes as the arguments of mosquitto_sub say.
func subscribeWith(t *testing.T, port int, more ...string) *device {
	t.Helper()
	d := &device{}
	arguments := append([]string{"-d", "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-q", "1", "-F", "message %t %x"}, more...)
	said := &transcript{}
	lines := &splitter{take: func(line []byte) {
		_, _ = said.Write(append(line, '\n')) // a transcript takes everything
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != "message" {
			return
		}
		payload, err := hex.DecodeString(strings.Join(fields[2:], ""))
		if err != nil {
			payload = []byte("not hexadecimal: " + err.Error())
		}
		d.add(fields[1], payload)
	}}
	// Into a pipe, mosquitto_sub would keep its lines to itself until they are many.
	arguments = append([]string{"-oL", need(t, "mosquitto_sub", "mosquitto-clients")}, arguments...)
	d.process = start(t, launch{stdout: lines, said: said}, need(t, "stdbuf", "coreutils"), arguments...)
	eventually(t, 10*time.Second, "mosquitto_sub is subscribed", func() bool {
		return strings.Contains(said.String(), "Subscribed (mid")
	})
	return d
}

// openSession makes a session at the broker, without staying.
func openSession(t *testing.T, port int, session string, topics ...string) {
	t.Helper()
	d := subscribe(t, port, session, topics...)
	d.process.terminate(t, 5*time.Second)
}

// publishing starts mosquitto_pub with one message at QoS 1. It ends with status
// 0 once the broker has acknowledged.
func publishing(t *testing.T, port int, topic string, payload []byte) *program {
	t.Helper()
	return start(t, launch{stdin: bytes.NewReader(payload), quiet: true}, need(t, "mosquitto_pub", "mosquitto-clients"),
		"-h", "127.0.0.1", "-p", strconv.Itoa(port), "-q", "1", "-t", topic, "-s")
}

// publish publishes one message and waits for the acknowledgement.
func publish(t *testing.T, port int, topic, payload string) {
	t.Helper()
	if status := publishing(t, port, topic, []byte(payload)).status(t, 10*time.Second); status != 0 {
		t.Fatalf("mosquitto_pub ends with status %d", status)
	}
}

// publishLines publishes each line as a message, in order, and waits for all
// acknowledgements.
func publishLines(t *testing.T, port int, topic string, lines []string) {
	t.Helper()
	_, stderr, status := output(t, 30*time.Second, []byte(strings.Join(lines, "\n")+"\n"), need(t, "mosquitto_pub", "mosquitto-clients"),
		"-h", "127.0.0.1", "-p", strconv.Itoa(port), "-q", "1", "-t", topic, "-l")
	if status != 0 {
		t.Fatalf("mosquitto_pub ends with status %d: %s", status, stderr)
	}
}
