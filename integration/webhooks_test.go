//go:build brokers

package integration

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// endpoint is a webhook's receiving end: a Node program that verifies signatures
// with the npm package standardwebhooks.
type endpoint struct {
	port    int
	process *program

	mu    sync.Mutex
	calls []call
}

// call is one call as the endpoint saw it.
type call struct {
	Call       string
	Status     int
	Timestamp  string
	Signatures int
	// Verified tells for each of the endpoint's keys whether the call is signed
	// with it.
	Verified []bool
	// Forged is true when an altered call passed too.
	Forged bool
	Body   []byte
}

// newEndpoint starts an endpoint that knows the keys.
func newEndpoint(t *testing.T, keys ...string) *endpoint {
	t.Helper()
	if _, err := os.Stat("testdata/node/node_modules/standardwebhooks"); err != nil {
		t.Fatalf("the npm package standardwebhooks is not installed; run npm ci in integration/testdata/node: %v", err)
	}
	e := &endpoint{port: freePort(t)}
	arguments := append([]string{"webhook.mjs", strconv.Itoa(e.port)}, keys...)
	e.process = start(t, launch{dir: "testdata/node", stdout: &splitter{take: e.take}}, need(t, "node", "nodejs"), arguments...)
	awaitListener(t, e.process, e.port)
	return e
}

func (e *endpoint) take(line []byte) {
	var c call
	if err := json.Unmarshal(line, &c); err != nil {
		_, _ = e.process.said.Write(line) // a transcript takes everything
		return
	}
	if c.Call == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, c)
}

func (e *endpoint) url() string { return "http://" + address(e.port) + "/hook" }

// of are the calls with one envelope.
func (e *endpoint) of(id string) []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []call
	for _, c := range e.calls {
		if (arrival{payload: string(c.Body)}).id() == id {
			out = append(out, c)
		}
	}
	return out
}

// newKey makes a signing key as the convention writes them.
func newKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 24)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// TestAnotherLanguageVerifiesWebhooks rotates the key of a running gateway, with
// every call failing once.
func TestAnotherLanguageVerifiesWebhooks(t *testing.T) {
	t.Parallel()
	former, next, foreign := newKey(t), newKey(t), newKey(t)
	e := newEndpoint(t, former, next, foreign)
	secret := filepath.Join(t.TempDir(), "keys")
	g := newGateway(t, embeddedBrokers(t), object{"carriers.http.webhooks.crm": object{
		"url": e.url(), "secret_file": secret, "allow_private": true,
	}})
	for _, phase := range []struct {
		name     string
		keys     []string
		verified []bool
	}{
		{"before", []string{former}, []bool{true, false, false}},
		{"during", []string{former, next}, []bool{true, true, false}},
		{"after", []string{next}, []bool{false, true, false}},
	} {
		if err := os.WriteFile(secret, []byte(strings.Join(phase.keys, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.process == nil {
			g.start(t)
		}
		m := say(phase.name+".1.2", "caller", "signed, with é and <b> & \u2028")
		m.more = unusual
		sent := pretty(t, m)
		g.post(t, sent)
		if ack := g.awaitSettled(t, backWithin, m.id).acks()["webhook:crm"]; ack != "acked http.2xx" {
			t.Errorf("%s the rotation the delivery ends as %q", phase.name, ack)
		}
		calls := e.of(m.id)
		if len(calls) != 2 || calls[0].Status != 500 || calls[1].Status != 200 {
			t.Fatalf("%s the rotation the calls are %+v", phase.name, calls)
		}
		for _, c := range calls {
			if !slices.Equal(c.Verified, phase.verified) || c.Signatures != len(phase.keys) {
				t.Errorf("%s the rotation %d signatures verify as %v, want %v", phase.name, c.Signatures, c.Verified, phase.verified)
			}
			if c.Forged {
				t.Errorf("%s the rotation an altered call passes", phase.name)
			}
			if string(c.Body) != sent || c.Call != calls[0].Call || strings.Contains(c.Call, ".") {
				t.Errorf("%s the rotation the call %s has the body\n%s\nwant\n%s", phase.name, c.Call, c.Body, sent)
			}
		}
	}
	for _, key := range []string{former, next} {
		if strings.Contains(g.log.String(), strings.TrimPrefix(key, "whsec_")) {
			t.Error("a key stands in the log")
		}
	}
}
