package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The addresses and the stream that the gateway uses by default.
const (
	stream     = "COMPOZY_NETWORK_V0"
	allOfUs    = "compozy.network.v0.>"
	subject    = "compozy.network.v0." + workspace + "." + channel + ".broadcast"
	topic      = "compozy/network/v0/" + workspace + "/" + channel + "/broadcast"
	startsIn   = 20 * time.Second
	settledIn  = 20 * time.Second
	streamSize = 1 << 30
)

// natsServer is a nats-server on a disk of its own.
type natsServer struct {
	*process
	address string
	mqtt    string
	conn    *nats.Conn
	js      jetstream.JetStream
}

// startNATS starts a server. extra is more configuration; its mqtt listener, if
// any, is told by mqtt.
func (b *bench) startNATS(ctx context.Context, extra, mqtt string) (*natsServer, error) {
	dir, err := b.scratch("nats")
	if err != nil {
		return nil, err
	}
	n := &natsServer{mqtt: mqtt}
	if n.address, err = freeAddress(); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("server_name: bench\nlisten: %q\nmax_payload: 2MB\njetstream {\n store_dir: %q\n %s\n}\n", n.address, dir, extra)
	if mqtt != "" {
		text += fmt.Sprintf("mqtt { listen: %q }\n", mqtt)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if n.process, err = start("nats-server", b.natsServer, "-c", config); err != nil {
		return nil, err
	}
	if err = n.listening(ctx, n.address); err == nil {
		err = n.connect(ctx)
	}
	if err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// connect makes the stream too, in files and with a bound.
func (n *natsServer) connect(ctx context.Context) error {
	var err error
	if n.conn, err = nats.Connect("nats://" + n.address); err != nil {
		return err
	}
	if n.js, err = jetstream.New(n.conn); err != nil {
		return err
	}
	_, err = n.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{allOfUs}, Storage: jetstream.FileStorage, MaxBytes: streamSize,
	})
	return err
}

func (n *natsServer) stop() {
	if n == nil {
		return
	}
	if n.conn != nil {
		n.conn.Close()
	}
	n.process.stop()
}

// startMosquitto starts a broker that holds back nothing.
func (b *bench) startMosquitto(ctx context.Context) (*process, string, error) {
	dir, err := b.scratch("mosquitto")
	if err != nil {
		return nil, "", err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(dir, "mosquitto.conf")
	text := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n", port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	// Run by root, mosquitto becomes its own user, who must get at its files.
	for _, path := range []string{b.dir, dir, config} {
		if err := os.Chmod(path, 0o755); err != nil {
			return nil, "", err
		}
	}
	p, err := start("mosquitto", b.mosquitto, "-c", config)
	if err != nil {
		return nil, "", err
	}
	if err := p.listening(ctx, address); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, address, nil
}

// gatewayProcess is the gateway's own binary.
type gatewayProcess struct {
	*process
	address string
	dataDir string
}

type object = map[string]any

// startGateway starts the gateway on those brokers; an empty address leaves the
// carrier out.
func (b *bench) startGateway(ctx context.Context, natsAddress, mqttAddress string) (*gatewayProcess, error) {
	dir, err := b.scratch("gateway")
	if err != nil {
		return nil, err
	}
	g := &gatewayProcess{dataDir: filepath.Join(dir, "data")}
	if g.address, err = freeAddress(); err != nil {
		return nil, err
	}
	carriers := object{"http": object{"type": "http", "listen": g.address}}
	if natsAddress != "" {
		carriers["nats"] = object{"type": "nats", "url": "nats://" + natsAddress}
	}
	if mqttAddress != "" {
		carriers["mqtt"] = object{"type": "mqtt", "url": "tcp://" + mqttAddress}
	}
	text, err := json.Marshal(object{
		"name": "bench", "data_dir": g.dataDir, "carriers": carriers,
		"embedded": object{"nats": object{"enabled": false}, "mqtt": object{"enabled": false}},
	})
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "gateway.yaml") // JSON is YAML.
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	if g.process, err = start("gateway", b.gateway, "serve", "--config", config, "--log-level", "warn"); err != nil {
		return nil, err
	}
	if err := g.await(ctx, "it is ready", startsIn, func() bool { return g.ready(ctx) }); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

func (g *gatewayProcess) stop() {
	if g != nil {
		g.process.stop()
	}
}

func (g *gatewayProcess) url(path string) string { return "http://" + g.address + path }

func (g *gatewayProcess) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url("/readyz"), nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
