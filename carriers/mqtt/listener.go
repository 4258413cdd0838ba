package mqtt

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mochi-mqtt/server/v2/listeners"
)

const (
	// connectWithin is how long a new connection may take to say CONNECT.
	connectWithin = 10 * time.Second
	// deviceWriteTimeout bounds one write to a device that does not read.
	deviceWriteTimeout = 5 * time.Second
)

// listener accepts the embedded broker's connections. It knows all of them, also
// those that never said CONNECT, so that closing ends them and waits for their
// goroutines.
type listener struct {
	socket net.Listener
	log    *slog.Logger
	// served is closed when Serve has ended.
	served  chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[*deviceConn]struct{}
}

var _ listeners.Listener = (*listener)(nil)

func newListener(socket net.Listener, log *slog.Logger) *listener {
	return &listener{socket: socket, log: log, served: make(chan struct{}), conns: make(map[*deviceConn]struct{})}
}

// Init does nothing: the socket is open already.
func (l *listener) Init(*slog.Logger) error { return nil }

// ID names the listener inside the broker.
func (l *listener) ID() string { return "tcp" }

// Address is the address that the socket has.
func (l *listener) Address() string { return l.socket.Addr().String() }

// Protocol names the network.
func (l *listener) Protocol() string { return "tcp" }

// Serve accepts connections until the listener is closed.
func (l *listener) Serve(establish listeners.EstablishFn) {
	defer close(l.served)
	for {
		socket, err := l.socket.Accept()
		if err != nil {
			if l.isClosed() {
				return
			}
			l.log.Warn("the embedded MQTT broker could not accept a connection", "reason", err.Error())
			time.Sleep(acceptPause)
			continue
		}
		conn := &deviceConn{Conn: socket}
		if !l.add(conn) {
			_ = socket.Close() // it was never used
			return
		}
		l.serving.Go(func() {
			defer l.remove(conn)
			if err := establish(l.ID(), conn); err != nil {
				l.log.Debug("a device's connection ended", "remote", conn.RemoteAddr().String(), "reason", err.Error())
			}
		})
	}
}

// acceptPause keeps a listener that is short of file descriptors from spinning.
const acceptPause = 50 * time.Millisecond

// Close ends everything that Serve began. The broker says goodbye to its clients
// first, by goodbye.
func (l *listener) Close(goodbye listeners.CloseFn) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.socket.Close() // a listener that is closed already is what we want
	goodbye(l.ID())
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close() // the same holds here
	}
	l.mu.Unlock()
	<-l.served
	l.serving.Wait()
}

func (l *listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *listener) add(conn *deviceConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(connectWithin)) // the first read reports what is wrong
	l.conns[conn] = struct{}{}
	return true
}

func (l *listener) remove(conn *deviceConn) {
	_ = conn.Close() // mostly closed already
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
}

// deviceConn is a device's socket whose every write is bounded: the broker sets
// deadlines by the keepalive, which may be none.
type deviceConn struct{ net.Conn }

func (c *deviceConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(deviceWriteTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
