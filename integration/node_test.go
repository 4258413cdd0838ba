//go:build brokers

package integration

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const subjectPrefix = "compozy.network.v0." + workspace + "." + channel + "."

// The subjects of the channel, and the stream that the gateway makes.
const (
	broadcastSubject = subjectPrefix + "broadcast"
	ingressSubject   = subjectPrefix + "ingress"
	streamName       = "COMPOZY_NETWORK_V0"
)

func peerSubject(peer string) string { return subjectPrefix + "peer." + core.RouteToken(peer) }

// node is a NATS client: the npm package, in testdata/node/client.mjs.
type node struct {
	arrivals
	process *program

	mu      sync.Mutex
	number  int
	waiting map[int]chan nodeAnswer
}

type nodeAnswer struct {
	Answers   int    `json:"answers"`
	Error     string `json:"error"`
	Connected bool   `json:"connected"`
	Subject   string `json:"subject"`
	Data      []byte `json:"data"`

	Stream    string `json:"stream"`
	Seq       uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
	Held      int    `json:"held"`
	Consumers []struct {
		Name           string `json:"name"`
		Unacknowledged int    `json:"unacknowledged"`
		Waiting        int    `json:"waiting"`
	} `json:"consumers"`
}

// connectNode connects a client, which stays connected through every absence of
// the server.
func connectNode(t *testing.T, url string) *node {
	t.Helper()
	return connectNodeWith(t, url, object{})
}

// connectNodeWith gives the connection further options of the package nats.
func connectNodeWith(t *testing.T, url string, options object) *node {
	t.Helper()
	more, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("testdata/node/node_modules/nats"); err != nil {
		t.Fatalf("the npm package nats is not installed; run npm ci in integration/testdata/node: %v", err)
	}
	n := &node{waiting: map[int]chan nodeAnswer{}}
	connected := make(chan nodeAnswer, 1)
	n.waiting[0] = connected
	n.process = start(t, launch{dir: "testdata/node", pipe: true, stdout: &splitter{take: n.take}}, need(t, "node", "nodejs"), "client.mjs", url, string(more))
	select {
	case <-connected:
	case <-time.After(15 * time.Second):
		t.Fatal("the Node client did not connect")
	}
	return n
}

func (n *node) take(line []byte) {
	var a nodeAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		_, _ = n.process.said.Write(line) // a transcript takes everything
		return
	}
	if a.Subject != "" {
		n.add(a.Subject, a.Data)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if waiting := n.waiting[a.Answers]; waiting != nil {
		waiting <- a
		delete(n.waiting, a.Answers)
	}
}

// try gives the client a command and returns its answer.
func (n *node) try(t *testing.T, command object) nodeAnswer {
	t.Helper()
	n.mu.Lock()
	n.number++
	number := n.number
	answer := make(chan nodeAnswer, 1)
	n.waiting[number] = answer
	n.mu.Unlock()

	command["number"] = number
	line, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.process.stdin.Write(append(line, '\n')); err != nil {
		t.Fatalf("command the Node client: %v", err)
	}
	select {
	case a := <-answer:
		return a
	case <-time.After(20 * time.Second):
		t.Fatalf("the Node client does not answer %s", line)
		return nodeAnswer{}
	}
}

func (n *node) do(t *testing.T, command object) nodeAnswer {
	t.Helper()
	a := n.try(t, command)
	if a.Error != "" {
		t.Fatalf("the Node client could not %v: %s", command["do"], a.Error)
	}
	return a
}

// subscribe subscribes to subjects without a stream.
func (n *node) subscribe(t *testing.T, subjects ...string) {
	t.Helper()
	for _, s := range subjects {
		n.do(t, object{"do": "subscribe", "subject": s})
	}
}

// store publishes and wants the stream's acknowledgement.
func (n *node) store(t *testing.T, subject, payload string) {
	t.Helper()
	if a := n.tryStore(t, subject, payload); a.Error != "" {
		t.Fatalf("the stream did not take the message: %s", a.Error)
	}
}

// tryStore publishes and returns the stream's answer.
func (n *node) tryStore(t *testing.T, subject, payload string) nodeAnswer {
	t.Helper()
	return n.try(t, object{"do": "store", "subject": subject, "data": base64.StdEncoding.EncodeToString([]byte(payload))})
}

// replay receives everything that the gateway's stream holds.
func (n *node) replay(t *testing.T) {
	t.Helper()
	n.do(t, object{"do": "replay", "stream": streamName})
}

// held is how many messages the gateway's stream holds.
func (n *node) held(t *testing.T) int {
	t.Helper()
	return n.do(t, object{"do": "held", "stream": streamName}).Held
}

// unacknowledged is how many messages the gateway has from its stream and has not
// acknowledged.
func (n *node) unacknowledged(t *testing.T) int {
	t.Helper()
	total := 0
	for _, c := range n.do(t, object{"do": "consumers", "stream": streamName}).Consumers {
		total += c.Unacknowledged
	}
	return total
}
