package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"modernc.org/sqlite"
)

// slowCommits makes every commit on a database below the directory take as long
// as that.
func slowCommits(t *testing.T, dir string, each time.Duration) {
	t.Helper()
	// The hook stays for the life of the process, and knows its directory.
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, name string) error {
		if !strings.Contains(name, dir) {
			return nil
		}
		hooks, ok := conn.(sqlite.HookRegisterer)
		if !ok {
			return fmt.Errorf("the driver's %T takes no hooks", conn)
		}
		hooks.RegisterCommitHook(func() int32 { time.Sleep(each); return 0 })
		return nil
	})
}

// ownBroker leaves the gateway the broker inside it.
func ownBroker(*testing.T) (url string, environ []string) { return "", nil }

// foreignBroker starts a broker that is not the gateway's own.
func foreignBroker(t *testing.T) (url string, environ []string) {
	t.Helper()
	broker := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := broker.AddHook(new(auth.AllowHook), nil); err != nil {
		t.Fatal(err)
	}
	listener := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	if err := broker.AddListener(listener); err != nil {
		t.Fatal(err)
	}
	if err := broker.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	url = "tcp://" + listener.Address()
	return url, []string{"GATEWAY_CARRIERS__MQTT__URL=" + url, "GATEWAY_EMBEDDED__MQTT__ENABLED=false"}
}

// TestASlowStoreBreaksNoConnectionToItsBroker: what comes in at a broker goes out
// at the same one, while commits are slow and the broker would end a connection
// that is silent for three seconds.
func TestASlowStoreBreaksNoConnectionToItsBroker(t *testing.T) {
	const messages = 500
	for _, site := range []struct {
		name   string
		commit time.Duration
		broker func(t *testing.T) (url string, environ []string)
	}{
		{"its own broker", 50 * time.Millisecond, ownBroker},
		{"its own broker, crawling", 500 * time.Millisecond, ownBroker},
		{"a foreign broker", 50 * time.Millisecond, foreignBroker},
		{"a foreign broker, crawling", 500 * time.Millisecond, foreignBroker},
	} {
		t.Run(site.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			slowCommits(t, dir, site.commit)
			url, environ := site.broker(t)
			s := serveGatewayIn(t, append(freePorts(), append(environ, "GATEWAY_CARRIERS__MQTT__KEEPALIVE=2s")...), dir)
			if url == "" {
				url = s.mqtt
			}
			out := newCrowd()
			reader := connectDevice(t, url, "reader")
			token := reader.Subscribe("compozy/network/v0/demo/general/broadcast", 1, func(_ paho.Client, m paho.Message) { out.add(string(m.Payload())) })
			if token.Wait() && token.Error() != nil {
				t.Fatal(token.Error())
			}
			writer := connectDevice(t, url, "writer")
			sent := make([]string, messages)
			tokens := make([]paho.Token, messages)
			for i := range sent {
				sent[i] = envelope(fmt.Sprintf("slow-%d", i), "dev", "through a slow store")
				tokens[i] = writer.Publish("compozy/network/v0/demo/general/ingress", 1, false, sent[i])
			}
			for i, token := range tokens {
				if !token.WaitTimeout(patience) || token.Error() != nil {
					t.Fatalf("message %d is not acknowledged: %v", i, token.Error())
				}
			}
			eventually(t, "all messages are back at the broker", func() bool { return out.kinds() == messages })
			for _, payload := range sent {
				if n := out.count(payload); n != 1 {
					t.Fatalf("came %d times: %s", n, payload)
				}
			}
			if !s.ready(t) {
				t.Error("the gateway is not ready")
			}
			for _, client := range []paho.Client{reader, writer} {
				if !client.IsConnectionOpen() {
					t.Error("a device's connection broke")
				}
			}
			if log := s.stderr.String(); strings.Contains(log, "no connection to the broker") {
				t.Errorf("the gateway lost its broker:\n%s", log)
			}
		})
	}
}

// connectDevice connects an MQTT client that does not connect again.
func connectDevice(t *testing.T, url, id string) paho.Client {
	t.Helper()
	client := paho.NewClient(paho.NewClientOptions().AddBroker(url).SetClientID(id).SetAutoReconnect(false).SetOrderMatters(false))
	if token := client.Connect(); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	t.Cleanup(func() { client.Disconnect(100) })
	return client
}

// crowd counts what comes from several goroutines.
type crowd struct {
	mu   sync.Mutex
	seen map[string]int
}

func newCrowd() *crowd { return &crowd{seen: map[string]int{}} }

func (c *crowd) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[what]++
}

func (c *crowd) kinds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

func (c *crowd) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}
