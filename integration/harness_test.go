//go:build brokers

package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The names that most tests use.
const (
	workspace = "demo"
	channel   = "general"
	thread    = "thread_main"
)

// readyWithin bounds the start of a gateway whose brokers are there.
const readyWithin = 20 * time.Second

// gateway is a gateway with its data, which may be started several times.
type gateway struct {
	name    string
	dir     string
	config  map[string]any
	http    int
	nats    string
	mqtt    int
	process *program
	log     *transcript
}

// object is a part of a configuration or of a JSON answer.
type object = map[string]any

// newGateway writes the configuration of a gateway at the given brokers, and
// does not start it. The last arguments change single keys, each named by its
// path: "carriers.http.accept_timeout".
func newGateway(t *testing.T, at brokers, changes ...object) *gateway {
	t.Helper()
	g := &gateway{
		name: "local", dir: t.TempDir(), http: freePort(t), nats: at.natsURL(), mqtt: at.mqttPort(), log: &transcript{},
	}
	g.config = object{
		"name":     g.name,
		"data_dir": filepath.Join(g.dir, "data"),
		"embedded": object{
			"nats": object{"enabled": at.nats == nil, "listen": strings.TrimPrefix(g.nats, "nats://")},
			"mqtt": object{"enabled": at.mqtt == nil, "listen": address(g.mqtt)},
		},
		"carriers": object{
			"nats":   object{"type": "nats", "url": g.nats},
			"mqtt":   object{"type": "mqtt", "url": "tcp://" + address(g.mqtt), "reconnect_max": "2s"},
			"http":   object{"type": "http", "listen": address(g.http), "accept_timeout": "3s"},
			"agents": object{"type": "stdio", "agents": object{}},
		},
	}
	for _, change := range changes {
		for path, value := range change {
			set(g.config, path, value)
		}
	}
	if name, ok := g.config["name"].(string); ok {
		g.name = name
	}
	g.writeConfig(t)
	t.Cleanup(func() {
		if t.Failed() {
			g.log.show(t, "the gateway "+g.name)
		}
	})
	return g
}

// set puts a value below a path of keys.
func set(config object, path string, value any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		below, ok := config[key].(object)
		if !ok {
			below = object{}
			config[key] = below
		}
		config = below
	}
	config[keys[len(keys)-1]] = value
}

func (g *gateway) configFile() string { return filepath.Join(g.dir, "gateway.yaml") }

func (g *gateway) dataDir() string { return g.config["data_dir"].(string) }

// writeConfig writes JSON, which is YAML.
func (g *gateway) writeConfig(t *testing.T) {
	t.Helper()
	text, err := json.MarshalIndent(g.config, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.configFile(), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// launch starts the process and waits until it answers.
func (g *gateway) launch(t *testing.T) {
	t.Helper()
	g.relaunch(t)
	eventually(t, readyWithin, "the gateway answers", func() bool {
		if g.process.ended() {
			t.Fatalf("the gateway ended:\n%s", g.log.tail(20))
		}
		status, _ := g.get("/healthz")
		return status == http.StatusOK
	})
}

// relaunch starts the process and waits for nothing.
func (g *gateway) relaunch(t *testing.T) {
	t.Helper()
	g.process = start(t, launch{dir: g.dir, said: g.log}, gatewayBinary, "serve", "--config", g.configFile())
}

// start starts the process and waits until every carrier is ready.
func (g *gateway) start(t *testing.T) {
	t.Helper()
	g.launch(t)
	g.awaitReady(t, readyWithin)
}

func (g *gateway) awaitReady(t *testing.T, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !g.ready() {
		if time.Now().After(deadline) {
			_, why := g.get("/readyz")
			t.Fatalf("the gateway is not ready after %v: %s", within, why)
		}
		pause(50 * time.Millisecond)
	}
}

func (g *gateway) ready() bool {
	status, _ := g.get("/readyz")
	return status == http.StatusOK
}

// crash kills the process as kill -9 does.
func (g *gateway) crash() { g.process.kill() }

// restart kills the process and starts it again.
func (g *gateway) restart(t *testing.T) {
	t.Helper()
	g.crash()
	g.start(t)
}

// stop ends the process as a supervisor does, and wants it to end well.
func (g *gateway) stop(t *testing.T) {
	t.Helper()
	if status := g.process.terminate(t, 10*time.Second); status != 0 {
		t.Fatalf("SIGTERM ended the gateway with status %d", status)
	}
}

func (g *gateway) url(path string) string { return "http://" + address(g.http) + path }

// get reads from the gateway for the harness itself; what a test is about goes
// through curl. The status is 0 when nobody answers.
func (g *gateway) get(path string) (status int, body []byte) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(g.url(path))
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err = readAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, body
}

// address is the loopback address with that port.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ports remembers which ports were handed out.
var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// freePort finds a port for a server that will be stopped and started again. It
// lies below those that the system gives to outgoing connections, so none of
// them takes it in between.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
		if ports.taken[port] {
			continue
		}
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports.taken[port] = true
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// processState is the state letter of a process, 0 when there is none.
func processState(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The state stands behind the name, which is in parentheses.
	_, rest, _ := strings.Cut(string(stat), ") ")
	if rest == "" {
		return 0
	}
	return rest[0]
}
