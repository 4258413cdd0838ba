//go:build brokers

package integration

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sieve is a TCP proxy that can swallow what clients say, while it passes on what
// the server says.
type sieve struct {
	listener net.Listener
	target   string
	deaf     atomic.Bool
	work     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newSieve(t *testing.T, target string) *sieve {
	t.Helper()
	l, err := net.Listen("tcp", address(0))
	if err != nil {
		t.Fatal(err)
	}
	s := &sieve{listener: l, target: target}
	s.work.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.closeAll()
		s.work.Wait()
	})
	return s
}

func (s *sieve) accept() {
	for {
		near, err := s.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", s.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, near, far)
		s.mu.Unlock()
		s.work.Go(func() { s.pass(far, near, true) })
		s.work.Go(func() { s.pass(near, far, false) })
	}
}

func (s *sieve) pass(to io.WriteCloser, from io.ReadCloser, upwards bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if upwards && s.deaf.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *sieve) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// onAWorkQueue is a gateway whose stream is a work queue, where a Term takes a
// message off for good. Behind the sieve, the server need not hear it.
func onAWorkQueue(t *testing.T) (*gateway, *node, *sieve) {
	t.Helper()
	at := brokers{nats: newNATSServer(t), mosquittoPort: freePort(t)}
	at.nats.start(t)
	client := connectNode(t, at.nats.url())
	client.do(t, object{"do": "create", "config": object{
		"name": streamName, "subjects": []string{"compozy.network.v0.>"}, "retention": "workqueue",
	}})
	s := newSieve(t, address(at.nats.port))
	g := newGateway(t, at, object{
		"carriers.nats.url": "nats://" + s.listener.Addr().String(), "carriers.nats.ack_wait": "2s",
	})
	g.start(t)
	client.store(t, broadcastSubject, say("first", "client", "all is well").String())
	eventually(t, arriveWithin, "a message is taken off the queue", func() bool { return client.held(t) == 0 })
	return g, client, s
}

const noEnvelope = `{"not":"an envelope"`

// TestAKillBetweenARejectionAndItsTermLosesNothing: the message is still in the
// stream and is settled after the restart.
func TestAKillBetweenARejectionAndItsTermLosesNothing(t *testing.T) {
	t.Parallel()
	g, client, s := onAWorkQueue(t)
	s.deaf.Store(true)
	client.store(t, broadcastSubject, noEnvelope)
	eventually(t, arriveWithin, "the rejection is committed", func() bool { return g.refusals(t) == 1 })
	g.crash()
	if n := client.held(t); n != 1 {
		t.Fatalf("the queue holds %d messages after the kill, want the refused one", n)
	}
	s.deaf.Store(false)
	client.store(t, broadcastSubject, say("second", "client", "goes on").String())
	g.start(t)
	eventually(t, 30*time.Second, "everything is taken off the queue", func() bool { return client.held(t) == 0 })
	if n := g.refusals(t); n != 2 {
		t.Errorf("the message was refused %d times, want once before the kill and once after it", n)
	}
	for _, id := range []string{"first", "second"} {
		g.inspect(t, id)
	}
}

// TestNoTermComesBeforeTheRejectionIsCommitted kills the gateway while it cannot
// commit what it has refused.
func TestNoTermComesBeforeTheRejectionIsCommitted(t *testing.T) {
	t.Parallel()
	g, client, _ := onAWorkQueue(t)
	unlock := lockDatabase(t, filepath.Join(g.dataDir(), "gateway.db"))
	client.store(t, broadcastSubject, noEnvelope)
	eventually(t, arriveWithin, "the gateway has the message", func() bool { return client.unacknowledged(t) == 1 })
	throughout(t, 3*time.Second, "the queue holds the message", func() bool { return client.held(t) == 1 })
	g.crash()
	unlock()
	if n := g.refusals(t); n != 0 {
		t.Fatalf("%d refusals are committed in a locked database", n)
	}
	g.start(t)
	eventually(t, 30*time.Second, "the message is taken off the queue", func() bool { return client.held(t) == 0 })
	if n := g.refusals(t); n != 1 {
		t.Errorf("the message was refused %d times", n)
	}
}

// refusals is how many frames the log of rejections counts. It reads the database
// itself, because only there it shows that they are committed.
func (g *gateway) refusals(t *testing.T) int {
	t.Helper()
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?mode=ro&_pragma=busy_timeout(5000)", filepath.Join(g.dataDir(), "gateway.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT coalesce(sum(count), 0) FROM rejections").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestADeviceThatWasAwayGetsWhatAStreamHeld takes messages from a stream to the
// persistent session of a subscriber that is not there, over a restart of its
// broker and a kill of the gateway.
func TestADeviceThatWasAwayGetsWhatAStreamHeld(t *testing.T) {
	t.Parallel()
	at := foreignBrokers(t)
	g := newGateway(t, at)
	g.start(t)
	openSession(t, at.mqtt.port, "device", broadcastTopic)
	client := connectNode(t, g.nats)
	var all, ids []string
	send := func(prefix string) {
		lines, sent := publicSays(prefix, 20)
		for _, line := range lines {
			client.store(t, broadcastSubject, line)
		}
		all, ids = append(all, lines...), append(ids, sent...)
	}
	send("there")
	eventually(t, arriveWithin, "all are known", func() bool { return len(g.history(t, "")) == len(ids) })
	checkAcked(t, g, arriveWithin, ids)
	at.mqtt.stop(t)
	send("gone")
	eventually(t, arriveWithin, "all are known", func() bool { return len(g.history(t, "")) == len(ids) })
	g.crash()
	at.mqtt.start(t)
	g.start(t)
	checkAcked(t, g, backWithin, ids)
	at.mqtt.stop(t)
	at.mqtt.start(t)
	device := subscribe(t, at.mqtt.port, "device", broadcastTopic)
	device.await(t, arriveWithin, "the device", all...)
}
