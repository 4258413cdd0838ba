package mqtt

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"github.com/mochi-mqtt/server/v2/packets"
)

// brokerWindow is how many messages the brokers in the field leave unacknowledged.
const brokerWindow = 20

// fastBroker acknowledges everything and keeps nothing, so that a benchmark
// measures the carrier. It publishes what a benchmark asks for to whoever
// subscribes.
type fastBroker struct {
	socket  net.Listener
	serving sync.WaitGroup
	// demand is how many messages are still to be published.
	demand  atomic.Int64
	ask     chan struct{}
	message []byte
}

func newFastBroker(b *testing.B, topic string, payload []byte) *fastBroker {
	b.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	body := binary.BigEndian.AppendUint16(nil, uint16(len(topic)))
	body = append(append(append(body, topic...), 0, 1), payload...)
	message := binary.AppendUvarint([]byte{packets.Publish<<4 | 1<<1}, uint64(len(body)))
	f := &fastBroker{socket: socket, ask: make(chan struct{}, 1), message: append(message, body...)}
	f.serving.Go(func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			f.serving.Go(func() { f.serve(conn) })
		}
	})
	b.Cleanup(func() {
		_ = socket.Close()
		f.serving.Wait()
	})
	return f
}

func (f *fastBroker) url() string { return "tcp://" + f.socket.Addr().String() }

// publish asks for n more messages.
func (f *fastBroker) publish(n int) {
	f.demand.Add(int64(n))
	signal(f.ask)
}

func (f *fastBroker) serve(conn net.Conn) {
	defer conn.Close()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	var publishing sync.WaitGroup
	ended := make(chan struct{})
	defer publishing.Wait()
	defer close(ended)
	window := make(chan struct{}, brokerWindow)
	for {
		kind, err := in.ReadByte()
		if err != nil {
			return
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		switch kind >> 4 {
		case packets.Connect:
			_, _ = out.Write([]byte{packets.Connack << 4, 2, 0, 0})
		case packets.Subscribe:
			_, _ = out.Write([]byte{packets.Suback << 4, 3, body[0], body[1], 1})
			_ = out.Flush()
			publishing.Go(func() { f.stream(conn, window, ended) })
		case packets.Publish:
			id := body[2+int(binary.BigEndian.Uint16(body)):]
			_, _ = out.Write([]byte{packets.Puback << 4, 2, id[0], id[1]})
		case packets.Puback:
			<-window
		case packets.Pingreq:
			_, _ = out.Write([]byte{packets.Pingresp << 4, 0})
		}
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// stream publishes what is asked for, within the window.
func (f *fastBroker) stream(conn net.Conn, window chan struct{}, ended <-chan struct{}) {
	out := bufio.NewWriterSize(conn, 64<<10)
	for {
		select {
		case <-f.ask:
		case <-ended:
			return
		}
		for ; f.demand.Load() > 0; f.demand.Add(-1) {
			select {
			case window <- struct{}{}:
			default:
				if out.Flush() != nil {
					return
				}
				select {
				case window <- struct{}{}:
				case <-ended:
					return
				}
			}
			_, _ = out.Write(f.message)
		}
		_ = out.Flush()
	}
}

// benchmarked is a carrier that is ready on a fast broker.
func benchmarked(b *testing.B, f *fastBroker, in core.Intake) *Carrier {
	b.Helper()
	c, err := New(testConfig(f.url()), testHost("mqtt"))
	if err != nil {
		b.Fatal(err)
	}
	start(b, c, in)
	ready(b, c)
	b.ReportAllocs()
	return c
}

// BenchmarkPublish sends with the declared window, each message with a deadline
// of its own as the gateway gives it one.
func BenchmarkPublish(b *testing.B) {
	f := newFastBroker(b, "none", nil)
	c := benchmarked(b, f, committing())
	out := core.Outbound{Envelope: &core.Envelope{WorkspaceID: "ws", Channel: "lab", Raw: []byte(strings.Repeat("x", 512))}}
	window := make(chan struct{}, c.Limits().InFlight)
	b.ResetTimer()
	for range b.N {
		window <- struct{}{}
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		c.Send(ctx, out, func(_ core.Ack, err error) {
			cancel()
			if err != nil {
				b.Error(err)
			}
			<-window
		})
	}
	for range cap(window) {
		window <- struct{}{}
	}
}

// counter is an intake that commits at once and remembers nothing.
type counter struct {
	*recorder
	left atomic.Int64
	done chan struct{}
}

func (c *counter) Offer(_ context.Context, _ core.Inbound, settle func(core.Settlement)) error {
	settle(core.Settlement{Verdict: core.VerdictCommitted})
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
	return nil
}

// BenchmarkReceive offers and acknowledges what a broker has for the carrier.
func BenchmarkReceive(b *testing.B) {
	f := newFastBroker(b, DefaultConfig().TopicPrefix+"/ws/lab/broadcast", []byte(strings.Repeat("x", 512)))
	in := &counter{recorder: committing(), done: make(chan struct{})}
	in.left.Store(int64(b.N))
	benchmarked(b, f, in)
	b.ResetTimer()
	f.publish(b.N)
	<-in.done
}
