package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/compozy-gateway/gateway/core"
)

const (
	matrixSubjects = "compozy.network.v0."
	matrixStream   = "COMPOZY_NETWORK_V0"
)

// matrixNATSClient publishes into the gateway's stream.
type matrixNATSClient struct {
	g        *matrixGatewayProcess
	conn     *nats.Conn
	js       jetstream.JetStream
	stream   jetstream.Stream
	receipts matrixReceipts

	mu sync.Mutex
	// terminated are the positions in the stream that the gateway gave up for good.
	terminated map[uint64]bool
}

func newMatrixNATS(t *testing.T, g *matrixGatewayProcess) *matrixNATSClient {
	t.Helper()
	c := &matrixNATSClient{g: g, terminated: map[uint64]bool{}}
	closed := make(chan struct{})
	var err error
	c.conn, err = nats.Connect("nats://"+g.broker, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.conn.Close()
		<-closed
	})
	if c.js, err = jetstream.New(c.conn); err != nil {
		t.Fatal(err)
	}
	if c.stream, err = c.js.Stream(t.Context(), matrixStream); err != nil {
		t.Fatal(err)
	}
	_, err = c.conn.Subscribe(matrixSubjects+"*.*.peer.*", func(m *nats.Msg) {
		c.receipts.take(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], m.Data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.conn.Subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."+matrixStream+".*", c.takeAdvisory); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *matrixNATSClient) takeAdvisory(m *nats.Msg) {
	var advisory struct {
		StreamSeq uint64 `json:"stream_seq"`
	}
	if json.Unmarshal(m.Data, &advisory) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terminated[advisory.StreamSeq] = true
}

func (c *matrixNATSClient) subject(f matrixFrame) string {
	a := matrixAddress{workspace: f.workspace, channel: f.channel, class: "ingress"}
	switch {
	case f.address != nil:
		a = *f.address
	case c.g.way == matrixNATSNative && f.to != "":
		a.class, a.token = "peer", core.RouteToken(f.to)
	case c.g.way == matrixNATSNative:
		a.class = "broadcast"
	}
	subject := matrixSubjects + a.workspace + "." + a.channel + "." + a.class
	if a.token != "" {
		subject += "." + a.token
	}
	return subject
}

// deliver publishes with the stream's acknowledgement. What becomes of a frame
// the gateway tells the server alone: Ack, or Term for what is refused.
func (c *matrixNATSClient) deliver(t *testing.T, frames []matrixFrame) ([]string, bool) {
	t.Helper()
	positions := c.store(t, frames)
	outcomes := c.g.settled(t, "nats", len(frames))
	c.checkSettled(t, frames, positions)
	return outcomes, false
}

func (c *matrixNATSClient) publish(t *testing.T, frames []matrixFrame) {
	t.Helper()
	c.store(t, frames)
}

// store gives the frames to the stream and gets their positions.
func (c *matrixNATSClient) store(t *testing.T, frames []matrixFrame) []uint64 {
	t.Helper()
	positions := make([]uint64, len(frames))
	futures := make([]jetstream.PubAckFuture, len(frames))
	for i, f := range frames {
		var err error
		if futures[i], err = c.js.PublishAsync(c.subject(f), []byte(f.payload)); err != nil {
			t.Fatal(err)
		}
	}
	for i, future := range futures {
		select {
		case ack := <-future.Ok():
			positions[i] = ack.Sequence
		case err := <-future.Err():
			t.Fatal(err)
		case <-time.After(matrixPatience):
			t.Fatal("the stream does not acknowledge")
		}
	}
	return positions
}

// checkSettled wants a Term for each refusal, an Ack for the rest, and nothing
// left at the server.
func (c *matrixNATSClient) checkSettled(t *testing.T, frames []matrixFrame, positions []uint64) {
	t.Helper()
	matrixEventually(t, "the server is told of every frame", func() bool {
		return c.unacknowledged(t) == 0
	})
	for i, f := range frames {
		refused := f.outcome(c.g.way).verdict == "rejected"
		terminated := func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.terminated[positions[i]]
		}
		if refused {
			matrixEventually(t, "the server is told to give a frame up", terminated)
		} else if terminated() {
			t.Error("the server was told to give up a frame that was taken")
		}
	}
}

// unacknowledged is how many messages the server has for the gateway that it was
// told nothing about.
func (c *matrixNATSClient) unacknowledged(t *testing.T) int {
	t.Helper()
	total := 0
	consumers := c.stream.ListConsumers(t.Context())
	for info := range consumers.Info() {
		total += info.NumAckPending + int(info.NumPending)
	}
	if err := consumers.Err(); err != nil {
		t.Fatal(err)
	}
	return total
}

func (*matrixNATSClient) framed(payload string) string { return payload }

func (c *matrixNATSClient) finish(t *testing.T, sent []matrixSent) {
	t.Helper()
	matrixSendFence(t, c.g)
	c.receipts.check(t, sent)
}

// matrixSendFence sends the last message of all. Deliveries to a bus keep their
// order, so every receipt has come by before it.
func matrixSendFence(t *testing.T, g *matrixGatewayProcess) {
	t.Helper()
	w := newMatrixWorld(len(matrixCases()))
	outcomes, _ := (&matrixPoster{g: g}).deliver(t, []matrixFrame{w.taken(w.say().text("to", matrixFence))})
	if !slices.Equal(outcomes, []string{"committed"}) {
		t.Fatalf("the fence is %v", outcomes)
	}
}
