//go:build brokers

package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the process that locks the database
)

// strike is one message on each carrier while the gateway cannot commit.
type strike struct {
	g      *gateway
	client *node
	puppet *agent
	ids    []string

	http   string
	device *program
}

// newStrike sends the messages and does not wait for any.
func newStrike(t *testing.T, g *gateway, client *node, puppet *agent, prefix string) *strike {
	t.Helper()
	s := &strike{g: g, client: client, puppet: puppet}
	text := func(via, from string) string {
		s.ids = append(s.ids, prefix+"-"+via)
		return say(prefix+"-"+via, from, "in trouble").String()
	}
	s.device = publishing(t, g.mqtt, broadcastTopic, []byte(text("mqtt", "device")))
	client.store(t, broadcastSubject, text("nats", "client"))
	puppet.says(t, text("stdio", puppet.peer))
	s.http = text("http", "caller")
	return s
}

// checkNothingTaken wants no acknowledgement on any carrier.
func (s *strike) checkNothingTaken(t *testing.T) {
	t.Helper()
	if a := s.g.tryPost(t, s.http); a.Status != 503 || a.retryAfter == "" || a.contentType != "application/problem+json" {
		t.Errorf("POST gives %+v, want 503 with Retry-After", a)
	}
	if s.device.ended() {
		t.Errorf("the device's message was acknowledged")
	}
	if n := s.client.unacknowledged(t); n != 1 {
		t.Errorf("%d messages of the stream are unacknowledged, want 1", n)
	}
	if id := s.stdioID(); s.puppet.heard(t, id) {
		t.Errorf("the agent was told of %s", id)
	}
}

// checkNotReady wants the trouble told.
func checkNotReady(t *testing.T, g *gateway) {
	t.Helper()
	if status, body := g.get("/readyz"); status != 503 || !strings.Contains(string(body), `"trouble":"store"`) {
		t.Errorf("readyz gives %d %s", status, body)
	}
}

func (s *strike) stdioID() string {
	return s.ids[slices.IndexFunc(s.ids, func(id string) bool { return strings.HasSuffix(id, "-stdio") })]
}

// checkTakenOnce wants every message taken, and acknowledged, exactly once,
// without a restart.
func (s *strike) checkTakenOnce(t *testing.T, within time.Duration) {
	t.Helper()
	if status := s.device.status(t, within); status != 0 {
		t.Errorf("mosquitto_pub ends with %d", status)
	}
	eventually(t, within, "the stream's message is acknowledged", func() bool { return s.client.unacknowledged(t) == 0 })
	s.puppet.hears(t, within, `{"carrier":{"ack":"`+s.stdioID()+`"`)
	if a := s.g.tryPost(t, s.http); !a.taken() {
		t.Errorf("POST gives %+v", a)
	}
	s.g.awaitReady(t, backWithin)
	history := ofPeers(s.g.history(t, ""))
	for _, id := range s.ids {
		if n := occurrences(history, id); n != 1 {
			t.Errorf("%s stands in the history %d times", id, n)
		}
	}
}

func TestALockedDatabaseAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	puppet := newAgent(t, "puppet", "puppet.sh")
	g := newGateway(t, embeddedBrokers(t), puppet.config())
	g.start(t)
	client := connectNode(t, g.nats)

	unlock := lockDatabase(t, filepath.Join(g.dataDir(), "gateway.db"))
	locked := time.Now()
	s := newStrike(t, g, client, puppet, "locked")
	s.checkNothingTaken(t)
	// The gateway's own patience with a lock, five seconds, must run out.
	pause(time.Until(locked.Add(8 * time.Second)))
	s.checkNothingTaken(t)
	checkNotReady(t, g)
	unlock()
	s.checkTakenOnce(t, backWithin)
	if g.process.ended() {
		t.Error("the gateway ended")
	}
}

// lockDatabase keeps everybody else from writing until unlock is called.
func lockDatabase(t *testing.T, file string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatalf("lock the database: %v", err)
	}
	open := true
	unlock = func() {
		if !open {
			return
		}
		open = false
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Errorf("unlock the database: %v", err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
	t.Cleanup(unlock)
	return unlock
}

func TestAFullDiskAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	puppet := newAgent(t, "puppet", "puppet.sh")
	// The streams are elsewhere, so that the NATS client's message gets that far.
	at := brokers{nats: newNATSServer(t), mosquittoPort: freePort(t)}
	at.nats.start(t)
	g := newGateway(t, at, puppet.config(), object{"data_dir": filepath.Join(disk, "data")})
	g.start(t)
	client := connectNode(t, g.nats)
	checkAcked(t, g, arriveWithin, []string{postLarge(t, g, "before")})

	free := fill(t, disk)
	full := stuffDatabase(t, g)
	s := newStrike(t, g, client, puppet, "full")
	s.ids = append(s.ids, full)
	s.checkNothingTaken(t)
	checkNotReady(t, g)
	free()
	s.checkTakenOnce(t, backWithin)
	if g.process.ended() {
		t.Error("the gateway ended")
	}
}

// TestTheEmbeddedServersSurviveAFullDisk has the streams on the full disk too.
func TestTheEmbeddedServersSurviveAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	g := newGateway(t, embeddedBrokers(t), object{"data_dir": filepath.Join(disk, "data")})
	g.start(t)
	client := connectNode(t, g.nats)
	before := say("before", "client", "before").String()
	client.store(t, broadcastSubject, before)
	checkAcked(t, g, arriveWithin, []string{postLarge(t, g, "large")})

	free := fill(t, disk)
	held := stuffDatabase(t, g)
	stored := 0
	for client.tryStore(t, broadcastSubject, large(fmt.Sprintf("stored-%d", stored)).String()).Error == "" {
		if stored++; stored > 100 {
			t.Fatal("the server stores on a full disk")
		}
	}
	free()

	after := say("after", "client", "there is room again").String()
	eventually(t, time.Minute, "the stream takes messages again", func() bool {
		return client.tryStore(t, broadcastSubject, after).Error == ""
	})
	g.awaitReady(t, backWithin)
	var history []string
	eventually(t, backWithin, "the gateway takes what the stream has", func() bool {
		history = ofPeers(g.history(t, ""))
		return slices.Contains(history, "after")
	})
	want := []string{"before", "large", held, "after"}
	for n := range stored {
		want = append(want, fmt.Sprintf("stored-%d", n))
	}
	for _, id := range want {
		if n := occurrences(history, id); n != 1 {
			t.Errorf("%s stands in the history %d times", id, n)
		}
	}
	checkAcked(t, g, backWithin, []string{"large", held})
}

// large is a say that takes room. It is for nobody who is here, so that it waits
// for no agent to be woken.
func large(id string) message {
	m := say(id, "sender", strings.Repeat("room ", 40_000))
	m.to = "somebody"
	return m
}

func postLarge(t *testing.T, g *gateway, id string) string {
	t.Helper()
	g.post(t, large(id).String())
	return id
}

// stuffDatabase posts until the database finds no room, which it may still have
// inside its own files. It returns the id of the message that waits for room.
func stuffDatabase(t *testing.T, g *gateway) (held string) {
	t.Helper()
	for n := range 200 {
		id := fmt.Sprintf("stuffing-%d", n)
		switch a := g.tryPost(t, large(id).String()); {
		case a.Status == 503:
			return id
		case !a.taken():
			t.Fatalf("POST gives %+v on a full disk", a)
		}
	}
	t.Fatal("the database still finds room on a full disk")
	return ""
}

func occurrences(list []string, of string) int {
	n := 0
	for _, s := range list {
		if s == of {
			n++
		}
	}
	return n
}

// smallDisk is a file system of its own, of 32 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=0755"); err != nil {
		t.Fatalf("mount a small file system, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill takes all space that is left, until free is called.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "ballast")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for block := make([]byte, 1<<20); ; {
		_, err := file.Write(block)
		if errors.Is(err, syscall.ENOSPC) && len(block) == 1 {
			break
		}
		if errors.Is(err, syscall.ENOSPC) {
			block = block[:max(1, len(block)/2)]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Errorf("free the disk: %v", err)
		}
	}
}
