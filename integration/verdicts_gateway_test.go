package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// matrixPatience bounds every wait for the gateway. Nothing takes that long.
const matrixPatience = 20 * time.Second

// matrixGatewayProcess is a running gateway with one carrier, and HTTP to read
// from it.
type matrixGatewayProcess struct {
	way          matrixWay
	dir          string
	http, broker string
	client       *http.Client
	agents       map[matrixSeat]*matrixAgent
	// counted is what settled was told last.
	counted map[string]int
	said    bytes.Buffer
}

// newMatrixGateway starts a gateway for one way, with the agents that the cases
// speak through, and waits until it is ready.
func newMatrixGateway(t *testing.T, way matrixWay, cases []matrixCase) *matrixGatewayProcess {
	t.Helper()
	g := &matrixGatewayProcess{way: way, dir: t.TempDir(), http: matrixFreeAddress(t), broker: matrixFreeAddress(t)}
	g.client = &http.Client{Timeout: matrixPatience, Transport: &http.Transport{}}
	t.Cleanup(g.client.CloseIdleConnections)
	carriers := map[string]any{"http": map[string]any{"type": "http", "listen": g.http}}
	switch way {
	case matrixNATS, matrixNATSNative:
		carriers["nats"] = map[string]any{"type": "nats", "url": "nats://" + g.broker}
	case matrixMQTT, matrixMQTTNative:
		carriers["mqtt"] = map[string]any{"type": "mqtt", "url": "tcp://" + g.broker}
	case matrixStdio:
		g.agents = newMatrixAgents(t, cases)
		carriers["agents"] = map[string]any{"type": "stdio", "agents": matrixAgentConfig(g.agents)}
	}
	scope := []any{map[string]any{"workspaces": []string{"demo*"}}}
	scopes := map[string]any{}
	for name := range carriers {
		scopes[name] = scope
	}
	g.start(t, map[string]any{
		"name": "local", "data_dir": filepath.Join(g.dir, "data"), "carriers": carriers, "scopes": scopes,
		"store": map[string]any{"synchronous": "normal"},
		"embedded": map[string]any{
			"nats": map[string]any{"enabled": carriers["nats"] != nil, "listen": g.broker},
			"mqtt": map[string]any{"enabled": carriers["mqtt"] != nil, "listen": g.broker},
		},
	})
	return g
}

// start runs the process until the test ends. The configuration is written as
// JSON, which is YAML.
func (g *matrixGatewayProcess) start(t *testing.T, config map[string]any) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.dir, "gateway.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gatewayBinary, "serve", "--config", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = g.dir, &g.said, &g.said, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // only that it has ended counts
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-ended:
		case <-time.After(matrixPatience):
			t.Error("SIGTERM did not end the gateway")
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			text := g.said.String()
			t.Logf("the gateway said:\n%s", text[max(0, len(text)-3000):])
		}
	})
	matrixEventually(t, "the gateway is ready", func() bool {
		select {
		case <-ended:
			t.Fatalf("the gateway ended:\n%s", g.said.String())
		default:
		}
		status, _ := g.tryGet("/readyz")
		return status == http.StatusOK
	})
}

func (g *matrixGatewayProcess) driver(t *testing.T) matrixDriver {
	t.Helper()
	switch g.way {
	case matrixHTTP:
		return &matrixPoster{g: g}
	case matrixNDJSON:
		return &matrixLinePoster{g: g}
	case matrixNATS, matrixNATSNative:
		return newMatrixNATS(t, g)
	case matrixMQTT, matrixMQTTNative:
		return newMatrixMQTT(t, g)
	case matrixStdio:
		return &matrixPuppeteer{g: g}
	}
	t.Fatalf("there is no driver for %s", g.way)
	return nil
}

// tryGet gives status 0 when nobody answers.
func (g *matrixGatewayProcess) tryGet(path string) (int, string) {
	response, err := g.client.Get("http://" + g.http + path)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(body)
}

// message is what the gateway says of a message, empty when there is none.
func (g *matrixGatewayProcess) message(t *testing.T, workspace, id, peer string) string {
	t.Helper()
	status, body := g.tryGet("/v0/workspaces/" + url.PathEscape(workspace) + "/messages/" + url.PathEscape(id) + "?peer=" + peer)
	switch {
	case status == http.StatusOK:
		return body
	case status == 0 || status >= http.StatusInternalServerError:
		t.Errorf("asked for %s, the gateway answers %d %s", id, status, body)
	}
	return ""
}

func (g *matrixGatewayProcess) workState(t *testing.T, w *matrixWorld) core.WorkState {
	t.Helper()
	_, body := g.tryGet("/v0/workspaces/" + matrixWorkspace + "/work/" + w.work() + "?peer=" + w.a)
	var work struct{ State core.WorkState }
	if err := json.Unmarshal([]byte(body), &work); err != nil {
		t.Fatalf("the work is %s: %v", body, err)
	}
	return work.State
}

// counts is how often a carrier settled a frame in each way, as the outcomes of
// the table name them. Echoes are not counted: they come when they like.
func (g *matrixGatewayProcess) counts(t *testing.T, carrier string) map[string]int {
	t.Helper()
	_, body := g.tryGet("/metrics")
	counts := map[string]int{}
	for line := range strings.Lines(body) {
		var label string
		for _, family := range []struct{ head, verdict string }{
			{`gateway_offers_total{carrier="` + carrier + `",verdict="`, ""},
			{`gateway_rejections_total{carrier="` + carrier + `",reason="`, "rejected "},
		} {
			if rest, ok := strings.CutPrefix(line, family.head); ok {
				label = family.verdict + rest
			}
		}
		label, value, ok := strings.Cut(strings.TrimSpace(label), `"} `)
		if !ok || label == "rejected" || label == "echo" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("the metrics say %q", line)
		}
		counts[label] = int(n)
	}
	return counts
}

// settled waits until the carrier has settled n frames more than when it was
// last asked, and gives their outcomes.
func (g *matrixGatewayProcess) settled(t *testing.T, carrier string, n int) []string {
	t.Helper()
	var outcomes []string
	matrixEventually(t, fmt.Sprintf("the carrier %s settles %d frames", carrier, n), func() bool {
		outcomes = nil
		counts := g.counts(t, carrier)
		for outcome, count := range counts {
			for range count - g.counted[outcome] {
				outcomes = append(outcomes, outcome)
			}
		}
		if len(outcomes) < n {
			return false
		}
		g.counted = counts
		return true
	})
	return outcomes
}

// matrixEventually polls until ok holds.
func matrixEventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(matrixPatience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", matrixPatience, what)
		}
		<-tick.C
	}
}

// matrixFreeAddress finds a loopback address for a server of the gateway. Its
// port lies below those that the system gives to outgoing connections, so none
// of them takes it in between.
func matrixFreeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		return address
	}
	t.Fatal("no port is free")
	return ""
}
