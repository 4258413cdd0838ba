//go:build brokers

package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// brokers are the brokers that a gateway uses. One that is nil is embedded: it
// has a port and nothing to run.
type brokers struct {
	nats *natsServer
	mqtt *mosquitto

	natsPort, mosquittoPort int
}

// sites are what tests run on that must hold with the embedded brokers and with
// foreign ones.
func sites(t *testing.T, test func(t *testing.T, at brokers)) {
	t.Run("embedded brokers", func(t *testing.T) {
		t.Parallel()
		test(t, embeddedBrokers(t))
	})
	t.Run("mosquitto and nats-server", func(t *testing.T) {
		t.Parallel()
		test(t, foreignBrokers(t))
	})
}

// embeddedBrokers are ports for the brokers inside the gateway.
func embeddedBrokers(t *testing.T) brokers {
	t.Helper()
	return brokers{natsPort: freePort(t), mosquittoPort: freePort(t)}
}

// foreignBrokers are brokers of their own, and running.
func foreignBrokers(t *testing.T) brokers {
	t.Helper()
	b := brokers{nats: newNATSServer(t), mqtt: newMosquitto(t)}
	b.nats.start(t)
	b.mqtt.start(t)
	return b
}

func (b brokers) natsURL() string {
	if b.nats == nil {
		return "nats://" + address(b.natsPort)
	}
	return b.nats.url()
}

func (b brokers) mqttPort() int {
	if b.mqtt == nil {
		return b.mosquittoPort
	}
	return b.mqtt.port
}

// mosquitto is a mosquitto broker with its state, which may be started several
// times.
type mosquitto struct {
	port    int
	dir     string
	process *program
	// more is further lines of the configuration.
	more string
	// runningOn is the port of the last start.
	runningOn int
}

func newMosquitto(t *testing.T) *mosquitto {
	t.Helper()
	return &mosquitto{port: freePort(t), dir: t.TempDir(), more: "allow_anonymous true\n"}
}

func (m *mosquitto) start(t *testing.T) {
	t.Helper()
	m.startOn(t, m.port)
}

// startOn starts the broker on another port than its own, where the gateway does
// not look.
func (m *mosquitto) startOn(t *testing.T, port int) {
	t.Helper()
	config := fmt.Sprintf(`listener %d 127.0.0.1
persistence true
persistence_location %s/
autosave_interval 1
autosave_on_changes true
max_queued_messages 0
log_dest stderr
%s`, port, m.dir, m.more)
	file := filepath.Join(m.dir, "mosquitto.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	// Run by root, mosquitto becomes its own user, who must get at its files.
	for dir := m.dir; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	m.process = start(t, launch{}, need(t, "mosquitto", "mosquitto"), "-c", file)
	m.runningOn = port
	awaitListener(t, m.process, port)
}

// stop lets the broker write its state down and end.
func (m *mosquitto) stop(t *testing.T) {
	t.Helper()
	m.process.terminate(t, 10*time.Second)
}

// wipe takes everything from the broker that it remembered. It must not run.
func (m *mosquitto) wipe(t *testing.T) {
	t.Helper()
	if err := os.Remove(filepath.Join(m.dir, "mosquitto.db")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// natsServer is a nats-server with its streams, which may be started several
// times.
type natsServer struct {
	port    int
	dir     string
	process *program
	// more is further lines of the configuration.
	more string
}

func newNATSServer(t *testing.T) *natsServer {
	t.Helper()
	return &natsServer{port: freePort(t), dir: t.TempDir()}
}

func (n *natsServer) url() string { return "nats://" + address(n.port) }

func (n *natsServer) start(t *testing.T) {
	t.Helper()
	config := fmt.Sprintf(`listen: "%s"
max_payload: 2MB
jetstream: {store_dir: "%s"}
%s`, address(n.port), n.dir, n.more)
	file := filepath.Join(n.dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	n.process = start(t, launch{}, need(t, "nats-server", "nats-server"), "-c", file)
	awaitListener(t, n.process, n.port)
}

func (n *natsServer) stop(t *testing.T) {
	t.Helper()
	n.process.terminate(t, 10*time.Second)
}

// wipe takes all streams from the server. It must not run.
func (n *natsServer) wipe(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(n.dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
}

func awaitListener(t *testing.T, p *program, port int) {
	t.Helper()
	eventually(t, 10*time.Second, p.name+" listens", func() bool {
		if p.ended() {
			t.Fatalf("%s ended:\n%s", p.name, p.said.tail(20))
		}
		c, err := net.DialTimeout("tcp", address(port), time.Second)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}
