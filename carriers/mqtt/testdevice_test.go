package mqtt

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// testDevice is a device on a broker: a plain client that connects again when
// its connection ends, and sends again, marked DUP, what was not acknowledged.
type testDevice struct {
	address string
	connect packets.Packet
	done    chan struct{}
	working sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	current *peer
	version byte
	filters []string
	lastID  uint16
	unacked []packets.Packet
	acked   [][]byte
	codes   []packets.Packet // the acknowledgements themselves
	got     []packets.Packet
	subacks int
	lost    int
	// resend is what a device does after a lost connection; false gives up.
	resend bool
	out    chan packets.Packet
}

func dialDevice(t *testing.T, b *Broker, clientID string, options ...func(*testDevice)) *testDevice {
	t.Helper()
	d := &testDevice{
		address: b.Addr(), done: make(chan struct{}), version: 4, resend: true,
		out: make(chan packets.Packet, 1<<14),
	}
	d.connect = packets.Packet{FixedHeader: header(packets.Connect)}
	d.connect.Connect = packets.ConnectParams{ProtocolName: []byte("MQTT"), ClientIdentifier: clientID, Keepalive: 30}
	for _, o := range options {
		o(d)
	}
	d.working.Go(d.live)
	until(t, "the device is connected", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.current != nil
	})
	t.Cleanup(d.close)
	return d
}

// live keeps the device connected.
func (d *testDevice) live() {
	for {
		if d.session() {
			return
		}
		select {
		case <-d.done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// session is one connection. It reports whether the device gives up.
func (d *testDevice) session() bool {
	socket, err := net.Dial("tcp", d.address)
	if err != nil {
		return false
	}
	p := newPeer(socket)
	p.version = d.version
	defer func() {
		_ = p.Close()
		d.mu.Lock()
		d.current = nil
		d.lost++
		d.mu.Unlock()
	}()
	if p.write(d.connect) != nil {
		return false
	}
	if pk, err := p.read(); err != nil || pk.FixedHeader.Type != packets.Connack || pk.ReasonCode != 0 {
		return false
	}
	if !d.resume(p) {
		return true
	}
	var writing sync.WaitGroup
	ended := make(chan struct{})
	writing.Go(func() { d.writeAll(p, ended) })
	for {
		pk, err := p.read()
		if err != nil {
			break
		}
		d.handle(p, pk)
	}
	close(ended)
	writing.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.resend
}

// resume takes the connection into use and sends again what was not acknowledged.
func (d *testDevice) resume(p *peer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.current = p
	for len(d.out) > 0 {
		<-d.out // it stands among the unacknowledged, too
	}
	if len(d.filters) > 0 {
		d.out <- subscribePacket(d.filters)
	}
	for _, pk := range d.unacked {
		pk.FixedHeader.Dup = d.lost > 0
		d.out <- pk
	}
	return true
}

func subscribePacket(filters []string) packets.Packet {
	pk := packets.Packet{FixedHeader: header(packets.Subscribe), PacketID: 65000}
	for _, f := range filters {
		pk.Filters = append(pk.Filters, packets.Subscription{Filter: f, Qos: 1})
	}
	return pk
}

func (d *testDevice) writeAll(p *peer, ended <-chan struct{}) {
	for {
		select {
		case pk := <-d.out:
			if p.write(pk) != nil {
				return
			}
		case <-ended:
			return
		}
	}
}

func (d *testDevice) handle(p *peer, pk packets.Packet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch pk.FixedHeader.Type {
	case packets.Puback, packets.Pubcomp:
		d.settle(pk)
	case packets.Pubrec:
		if pk.ReasonCode >= packets.ErrUnspecifiedError.Code {
			d.settle(pk)
			return
		}
		_ = p.write(packets.Packet{FixedHeader: header(packets.Pubrel), PacketID: pk.PacketID})
	case packets.Suback:
		d.subacks++
	case packets.Publish:
		d.got = append(d.got, pk)
		if pk.FixedHeader.Qos == 1 {
			_ = p.write(packets.Packet{FixedHeader: header(packets.Puback), PacketID: pk.PacketID})
		}
	}
}

func (d *testDevice) settle(pk packets.Packet) {
	i := slices.IndexFunc(d.unacked, func(u packets.Packet) bool { return u.PacketID == pk.PacketID })
	if i >= 0 {
		d.acked = append(d.acked, d.unacked[i].Payload)
		d.codes = append(d.codes, pk)
		d.unacked = slices.Delete(d.unacked, i, i+1)
	}
}

// publish sends a message, at once or as soon as the device is connected.
func (d *testDevice) publish(topic string, payload []byte, qos byte) {
	d.send(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: qos}, TopicName: topic, Payload: payload})
}

func (d *testDevice) send(pk packets.Packet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pk.FixedHeader.Qos > 0 {
		d.lastID++
		pk.PacketID = d.lastID
		d.unacked = append(d.unacked, pk)
	}
	if d.current != nil || pk.FixedHeader.Qos == 0 {
		d.out <- pk
	}
}

func (d *testDevice) subscribe(t *testing.T, filters ...string) {
	t.Helper()
	d.mu.Lock()
	d.filters = append(d.filters, filters...)
	want := d.subacks + 1
	d.out <- subscribePacket(filters)
	d.mu.Unlock()
	until(t, "the device has subscribed", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.subacks >= want
	})
}

// acknowledged lists the payloads that the broker acknowledged, in order.
func (d *testDevice) acknowledged() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.acked)
}

func (d *testDevice) answers() []packets.Packet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.codes)
}

// received lists what the device's subscriptions brought.
func (d *testDevice) received() []packets.Packet {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.got)
}

func (d *testDevice) losses() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// cut ends the connection without a goodbye.
func (d *testDevice) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current != nil {
		_ = d.current.Close()
	}
}

func (d *testDevice) close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.done)
	}
	d.resend = false
	d.mu.Unlock()
	d.cut()
	d.working.Wait()
}
