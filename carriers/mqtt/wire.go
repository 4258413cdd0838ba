package mqtt

import (
	"bufio"
	"net"
	"sync"
	"time"
)

const (
	// readBuffer spares the library's reads of a few bytes each.
	readBuffer = 16 << 10
	// writeBuffer is how many bytes may wait for the network.
	writeBuffer = 64 << 10
)

// The packet types of PUBLISH and DISCONNECT. The library writes each packet
// with one call.
const (
	typePublish    = 3
	typeDisconnect = 14
)

// wire is the network connection of one MQTT client. What the library writes
// while the network is busy goes out together. It bounds every write to the
// network, for the client's keepalive cannot find a dead peer while it waits
// behind a write itself, and it tells when and why it ended.
type wire struct {
	net.Conn
	in           *bufio.Reader
	writeTimeout time.Duration
	// ended is called once, with the first error that was seen.
	ended func(error)
	// published gets a signal after each PUBLISH that was written, or could not be.
	published chan struct{}
	// pending gets a signal when there is something to flush, or when there will be
	// nothing more; flushed is closed when flush has ended.
	pending chan struct{}
	flushed chan struct{}

	mu sync.Mutex
	// changed is told when the network took something, and of the first error.
	changed *sync.Cond
	// out waits for the network, which is busy with what came before it.
	out   []byte
	busy  bool
	cause error
	once  sync.Once
}

// newWire takes the connection over. Close ends what it starts.
func newWire(conn net.Conn, timeout time.Duration, ended func(error)) *wire {
	w := &wire{
		Conn: conn, in: bufio.NewReaderSize(conn, readBuffer), writeTimeout: timeout, ended: ended,
		published: make(chan struct{}, 1), pending: make(chan struct{}, 1), flushed: make(chan struct{}),
	}
	w.changed = sync.NewCond(&w.mu)
	go w.flush()
	return w
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	w.note(err)
	return n, err
}

// Write gives a packet its place behind those before it. It waits for room, and
// for a DISCONNECT, behind which the library closes the connection, until that
// has left. An error means that the connection is lost.
func (w *wire) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	w.mu.Lock()
	for w.cause == nil && len(w.out) > 0 && len(w.out)+len(p) > writeBuffer {
		w.changed.Wait()
	}
	if w.cause == nil {
		w.out = append(w.out, p...)
		signal(w.pending)
	}
	for p[0]>>4 == typeDisconnect && w.cause == nil && (w.busy || len(w.out) > 0) {
		w.changed.Wait()
	}
	err := w.cause
	w.mu.Unlock()
	if p[0]>>4 == typePublish {
		signal(w.published)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline does nothing: writes to the network have their own, and the
// library's would have to be set and lifted for each packet.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// flush writes to the network until the connection ends.
func (w *wire) flush() {
	defer close(w.flushed)
	var spare []byte
	for range w.pending {
		for {
			w.mu.Lock()
			if w.cause != nil {
				w.mu.Unlock()
				return
			}
			next := w.out
			w.out, w.busy = spare[:0], len(next) > 0
			w.changed.Broadcast()
			w.mu.Unlock()
			if len(next) == 0 {
				spare = next
				break
			}
			if err := w.write(next); err != nil {
				// The library takes a closed socket for one that it closed itself, so it is
				// the end of the connection that tells.
				w.note(err)
				_ = w.Conn.Close()
				w.end()
				return
			}
			if spare = next; cap(spare) > writeBuffer {
				spare = nil
			}
		}
	}
}

func (w *wire) write(p []byte) error {
	if err := w.Conn.SetWriteDeadline(time.Now().Add(w.writeTimeout)); err != nil {
		return err
	}
	_, err := w.Conn.Write(p)
	return err
}

// Close ends the connection. The library calls it for every kind of end.
func (w *wire) Close() error {
	w.note(errDisconnects)
	err := w.Conn.Close()
	<-w.flushed
	w.end()
	return err
}

// end tells that the connection has ended.
func (w *wire) end() {
	w.once.Do(func() {
		w.mu.Lock()
		cause := w.cause
		w.mu.Unlock()
		w.ended(cause)
	})
}

// note keeps the first error, after which nothing is written any more.
func (w *wire) note(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	if w.cause == nil {
		w.cause = err
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	signal(w.pending)
}
