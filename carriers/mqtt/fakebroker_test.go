package mqtt

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// fakeBroker is a scripted MQTT 3.1.1 broker with sessions. It does what a test
// says, also what no decent broker would do.
type fakeBroker struct {
	socket  net.Listener
	serving sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	down     bool
	conns    map[*fakeConn]bool
	sessions map[string]*fakeSession
	connects []connectSeen
	received []publishSeen
	acked    []ackSeen
	grants   map[string]byte
	asked    int // SUBSCRIBE packets
	epoch    int

	// withhold keeps PUBACKs back; silent keeps everything back but CONNACK and
	// SUBACK; deaf stops reading.
	withhold, silent bool
	deaf             chan struct{}
	// dropPublishes closes the connection on that many publishes, without PUBACK.
	dropPublishes int
	// tooLarge closes the connection on a publish that is larger; 0 is no limit.
	tooLarge int
}

type connectSeen struct {
	clientID           string
	clean              bool
	username, password string
	at                 time.Time
}

type publishSeen struct {
	clientID string
	epoch    int
	packet   packets.Packet
}

type ackSeen struct {
	epoch  int
	id     uint16
	topic  string
	answer []byte // the payload that was acknowledged
}

type fakeSession struct {
	filters []string
	unacked []packets.Packet
	lastID  uint16
	conn    *fakeConn
}

// fakeConn is one connection; a goroutine of its own writes, so that a client
// that does not read holds nothing up.
type fakeConn struct {
	*peer
	clientID string
	epoch    int
	out      chan packets.Packet
	ended    chan struct{}
}

func (c *fakeConn) send(pk packets.Packet) {
	select {
	case c.out <- pk:
	case <-c.ended:
	}
}

func (c *fakeConn) writeAll() {
	for {
		select {
		case pk := <-c.out:
			if c.write(pk) != nil {
				_ = c.Close()
			}
		case <-c.ended:
			return
		}
	}
}

func newFakeBroker(t *testing.T) *fakeBroker {
	t.Helper()
	b := startFakeBroker(t)
	t.Cleanup(b.close)
	return b
}

func startFakeBroker(t *testing.T) *fakeBroker {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBroker{
		socket: socket, conns: map[*fakeConn]bool{}, sessions: map[string]*fakeSession{},
		grants: map[string]byte{}, deaf: make(chan struct{}),
	}
	close(b.deaf)
	b.serving.Go(b.accept)
	return b
}

func (b *fakeBroker) url() string { return "tcp://" + b.socket.Addr().String() }

func (b *fakeBroker) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	_ = b.socket.Close()
	b.hear(true)
	b.cut()
	b.serving.Wait()
}

func (b *fakeBroker) accept() {
	for {
		socket, err := b.socket.Accept()
		if err != nil {
			return
		}
		c := &fakeConn{peer: newPeer(socket), out: make(chan packets.Packet, 1<<14), ended: make(chan struct{})}
		if !b.add(c) {
			_ = socket.Close()
			continue
		}
		b.serving.Go(c.writeAll)
		b.serving.Go(func() {
			defer b.remove(c)
			b.serve(c)
		})
	}
}

func (b *fakeBroker) add(c *fakeConn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down || b.closed {
		return false
	}
	b.epoch++
	c.epoch = b.epoch
	b.conns[c] = true
	return true
}

func (b *fakeBroker) remove(c *fakeConn) {
	_ = c.Close()
	close(c.ended)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
	if s := b.sessions[c.clientID]; s != nil && s.conn == c {
		s.conn = nil
	}
}

func (b *fakeBroker) serve(c *fakeConn) {
	for {
		b.mu.Lock()
		deaf := b.deaf
		b.mu.Unlock()
		<-deaf
		pk, err := c.read()
		if err != nil || !b.handle(c, pk) {
			return
		}
	}
}

// handle answers one packet, and reports whether the connection lives on.
func (b *fakeBroker) handle(c *fakeConn, pk packets.Packet) bool {
	switch pk.FixedHeader.Type {
	case packets.Connect:
		b.connect(c, pk)
	case packets.Subscribe:
		b.subscribe(c, pk)
	case packets.Publish:
		return b.publish(c, pk)
	case packets.Puback:
		b.puback(c, pk)
	case packets.Pingreq:
		if !b.is(&b.silent) {
			c.send(packets.Packet{FixedHeader: header(packets.Pingresp)})
		}
	case packets.Disconnect:
		return false
	}
	return true
}

func (b *fakeBroker) connect(c *fakeConn, pk packets.Packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.clientID = pk.Connect.ClientIdentifier
	b.connects = append(b.connects, connectSeen{
		clientID: c.clientID, clean: pk.Connect.Clean, at: time.Now(),
		username: string(pk.Connect.Username), password: string(pk.Connect.Password),
	})
	s := b.sessions[c.clientID]
	present := s != nil && !pk.Connect.Clean
	if !present {
		s = &fakeSession{}
		b.sessions[c.clientID] = s
	}
	if s.conn != nil {
		_ = s.conn.Close() // the same client id pushes the older connection out
	}
	s.conn = c
	c.send(packets.Packet{FixedHeader: header(packets.Connack), SessionPresent: present})
	for _, old := range s.unacked {
		old.FixedHeader.Dup = true
		c.send(old)
	}
}

func (b *fakeBroker) subscribe(c *fakeConn, pk packets.Packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	s := b.sessions[c.clientID]
	codes := make([]byte, len(pk.Filters))
	for i, f := range pk.Filters {
		codes[i] = f.Qos
		if code, ok := b.grants[f.Filter]; ok {
			codes[i] = code
		}
		if codes[i] < subscriptionFailure && !slices.Contains(s.filters, f.Filter) {
			s.filters = append(s.filters, f.Filter)
		}
	}
	c.send(packets.Packet{FixedHeader: header(packets.Suback), PacketID: pk.PacketID, ReasonCodes: codes})
}

func (b *fakeBroker) publish(c *fakeConn, pk packets.Packet) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropPublishes > 0 || b.tooLarge > 0 && len(pk.Payload) > b.tooLarge {
		b.dropPublishes = max(0, b.dropPublishes-1)
		return false
	}
	b.received = append(b.received, publishSeen{clientID: c.clientID, epoch: c.epoch, packet: pk})
	if !b.withhold && !b.silent {
		c.send(packets.Packet{FixedHeader: header(packets.Puback), PacketID: pk.PacketID})
	}
	return true
}

func (b *fakeBroker) puback(c *fakeConn, pk packets.Packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[c.clientID]
	seen := ackSeen{epoch: c.epoch, id: pk.PacketID}
	i := slices.IndexFunc(s.unacked, func(p packets.Packet) bool { return p.PacketID == pk.PacketID })
	if i >= 0 {
		seen.topic, seen.answer = s.unacked[i].TopicName, s.unacked[i].Payload
		s.unacked = slices.Delete(s.unacked, i, i+1)
	}
	b.acked = append(b.acked, seen)
}

// deliver publishes to every session that subscribes to the topic.
func (b *fakeBroker) deliver(topic string, payload []byte, qos byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if !slices.ContainsFunc(s.filters, func(f string) bool { return matches(f, topic) }) {
			continue
		}
		pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: qos}, TopicName: topic, Payload: payload}
		if qos > 0 {
			s.lastID++
			pk.PacketID = s.lastID
			s.unacked = append(s.unacked, pk)
		}
		if s.conn != nil {
			s.conn.send(pk)
		}
	}
}

func matches(filter, topic string) bool {
	want, have := strings.Split(filter, "/"), strings.Split(topic, "/")
	if last := len(want) - 1; want[last] == "#" && len(have) >= last {
		want, have = want[:last], have[:last]
	}
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "+" || w == h })
}

// cut closes every connection.
func (b *fakeBroker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}

// setDown makes the broker turn every new connection away, or take it again.
func (b *fakeBroker) setDown(down bool) {
	b.mu.Lock()
	b.down = down
	b.mu.Unlock()
	if down {
		b.cut()
	}
}

// hear makes the broker read, or not.
func (b *fakeBroker) hear(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.deaf:
		if !on {
			b.deaf = make(chan struct{})
		}
	default:
		if on {
			close(b.deaf)
		}
	}
}

// wipe forgets all sessions.
func (b *fakeBroker) wipe() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = map[string]*fakeSession{}
}

func (b *fakeBroker) is(flag *bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *flag
}

// set changes something of the broker under its lock.
func (b *fakeBroker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *fakeBroker) publishes() []publishSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func (b *fakeBroker) acks() []ackSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.acked)
}

func (b *fakeBroker) connections() []connectSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.connects)
}

// acknowledge sends a PUBACK that a test made up.
func (b *fakeBroker) acknowledge(clientID string, id uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sessions[clientID]; s != nil && s.conn != nil {
		s.conn.send(packets.Packet{FixedHeader: header(packets.Puback), PacketID: id})
	}
}
