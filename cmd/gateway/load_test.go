package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/http"
	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/carriers/stdio"
)

// loading is one configuration to be loaded.
type loading struct {
	file    string
	environ []string
	dataDir string
	stderr  bytes.Buffer
}

func (l *loading) load(t *testing.T) (*configuration, error) {
	t.Helper()
	p := &process{stderr: &l.stderr, environ: l.environ, dataDir: l.dataDir}
	if l.file != "" {
		p.configFile = writeFile(t, "gateway.yaml", l.file)
	}
	return p.load()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, l *loading) *configuration {
	t.Helper()
	c, err := l.load(t)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return c
}

// carrier finds the configuration of one carrier.
func carrier[C any](t *testing.T, c *configuration, name string) *C {
	t.Helper()
	for _, section := range c.carriers {
		if section.name == name {
			cfg, ok := section.config.(*C)
			if !ok {
				t.Fatalf("carrier %s has the configuration %T", name, section.config)
			}
			return cfg
		}
	}
	t.Fatalf("there is no carrier %s", name)
	return nil
}

func (c *configuration) names() []string {
	var names []string
	for _, section := range c.carriers {
		names = append(names, section.name+":"+section.typ)
	}
	return names
}

func TestWithNoFileTheDefaultsRun(t *testing.T) {
	c := mustLoad(t, &loading{})
	if want := []string{"agents:stdio", "http:http", "mqtt:mqtt", "nats:nats"}; !slices.Equal(c.names(), want) {
		t.Errorf("carriers are %v, want %v", c.names(), want)
	}
	if c.Name != "local" || c.DataDir != "data" || !c.Network.Enabled || c.Protocol.MaxReplayAge != 5*time.Minute ||
		c.Protocol.MaxEnvelopeBytes != 1<<20 || c.Store.MaxPending != 100_000 || c.Store.Synchronous != "full" {
		t.Errorf("unexpected defaults: %+v", c.Config)
	}
	if !c.Embedded.NATS.Enabled || !c.Embedded.NATS.JetStream || c.Embedded.NATS.Listen != "127.0.0.1:4222" ||
		!c.Embedded.MQTT.Enabled || c.Embedded.MQTT.Listen != "127.0.0.1:1883" {
		t.Errorf("unexpected brokers: %+v", c.Embedded)
	}
	if cfg := carrier[nats.Config](t, c, "nats"); cfg.Mode != nats.ModeJetStream || cfg.URL != "nats://127.0.0.1:4222" {
		t.Errorf("unexpected nats carrier: %+v", cfg)
	}
}

func TestCarriersOfAFileReplaceTheWholeSet(t *testing.T) {
	c := mustLoad(t, &loading{file: "carriers:\n  web: {type: http, listen: \"127.0.0.1:0\"}\n"})
	if want := []string{"web:http"}; !slices.Equal(c.names(), want) {
		t.Errorf("carriers are %v, want %v", c.names(), want)
	}
	cfg, standard := carrier[http.Config](t, c, "web"), http.DefaultConfig()
	if cfg.Listen != "127.0.0.1:0" || cfg.AcceptTimeout != standard.AcceptTimeout || cfg.MaxStreams != standard.MaxStreams {
		t.Errorf("keys that are left out must take the type's default: %+v", cfg)
	}
}

func TestAFileWithoutCarriersKeepsTheDefaultSet(t *testing.T) {
	c := mustLoad(t, &loading{file: "name: other\nprotocol: {max_replay_age: 10m}\nembedded: {mqtt: {listen: \"127.0.0.1:1884\"}}\n"})
	if len(c.carriers) != 4 || c.Name != "other" || c.Protocol.MaxReplayAge != 10*time.Minute ||
		c.Protocol.MaxLifetime != 720*time.Hour || !c.Embedded.MQTT.Enabled || c.Embedded.MQTT.Listen != "127.0.0.1:1884" {
		t.Errorf("got %+v with %v", c.keys, c.names())
	}
}

func TestAnEmptyFileIsFine(t *testing.T) {
	if c := mustLoad(t, &loading{file: "# nothing\n---\n"}); len(c.carriers) != 4 {
		t.Errorf("carriers are %v", c.names())
	}
}

func TestEnvironmentWinsOverTheFileAndFlagsOverBoth(t *testing.T) {
	l := &loading{
		file: "data_dir: from-file\nname: from-file\ncarriers:\n  Bus: &b {type: mqtt}\n" +
			"  main: {type: nats, url: \"nats://file:1\"}\n  hands: {type: stdio, agents: {}}\n",
		environ: []string{
			"GATEWAY_DATA_DIR=from-environment",
			"GATEWAY_NAME=from-environment",
			"GATEWAY_PROTOCOL__MAX_REPLAY_AGE=7m",
			"GATEWAY_PROTOCOL__MAX_ENVELOPE_BYTES=65536",
			"GATEWAY_NETWORK__ENABLED=false",
			"GATEWAY_CARRIERS__MAIN__URL=nats://user:pass@environment:2",
			"GATEWAY_CARRIERS__EXTRA__TYPE=mqtt",
			"GATEWAY_CARRIERS__EXTRA__URL=tcp://environment:3",
			"GATEWAY_CARRIERS__EXTRA__IN_FLIGHT=9",
			"GATEWAY_SCOPES={main: [{workspaces: [a]}]}",
			"GATEWAY_CARRIERS__HANDS__AGENTS__BOB__COMMAND=[cat, -u]",
			"GATEWAY_CARRIERS__HANDS__AGENTS__BOB__ENV__KEY=a=b",
			"PATH=/bin",
		},
		dataDir: "from-flag",
	}
	l.file = strings.Replace(l.file, "  Bus: &b {type: mqtt}\n", "", 1)
	c := mustLoad(t, l)
	if c.DataDir != "from-flag" || c.Name != "from-environment" || c.Network.Enabled ||
		c.Protocol.MaxReplayAge != 7*time.Minute || c.Protocol.MaxEnvelopeBytes != 65536 {
		t.Errorf("got %+v", c.Config)
	}
	if cfg := carrier[nats.Config](t, c, "main"); cfg.URL != "nats://user:pass@environment:2" {
		t.Errorf("main is %+v", cfg)
	}
	if cfg := carrier[mqtt.Config](t, c, "extra"); cfg.URL != "tcp://environment:3" || cfg.InFlight != 9 {
		t.Errorf("extra is %+v", cfg)
	}
	if scope := c.Scopes["main"]; len(scope) != 1 || !slices.Equal(scope[0].Workspaces, []string{"a"}) || scope[0].Channels != nil {
		t.Errorf("scopes are %+v", c.Scopes)
	}
	bob := carrier[stdio.Config](t, c, "hands").Agents["bob"]
	if !slices.Equal(bob.Command, []string{"cat", "-u"}) || bob.Env["key"] != "a=b" {
		t.Errorf("bob is %+v", bob)
	}
	if l.stderr.Len() > 0 {
		t.Errorf("unexpected warnings: %s", &l.stderr)
	}
}

func TestUnknownEnvironmentVariablesWarnOnly(t *testing.T) {
	for _, name := range []string{
		"GATEWAY_PORT", "GATEWAY_SERVICE_HOST", "GATEWAY_PORT_8080_TCP_ADDR", "GATEWAY_", "GATEWAY_CARRIERS",
		"GATEWAY_CARRIERS__NATS", "GATEWAY_CARRIERS__OTHER__URL", "GATEWAY_CARRIERS__NATS__NOPE", "GATEWAY_NAME__X", "GATEWAY____",
	} {
		t.Run(name, func(t *testing.T) {
			l := &loading{environ: []string{name + "=tcp://10.0.0.1:8080"}}
			c := mustLoad(t, l)
			if len(c.carriers) != 4 || !strings.Contains(l.stderr.String(), "variable="+name+"\n") {
				t.Errorf("carriers %v, stderr %q", c.names(), &l.stderr)
			}
			if strings.Contains(l.stderr.String(), "10.0.0.1") {
				t.Errorf("the warning shows the value: %s", &l.stderr)
			}
		})
	}
}

func TestEveryProblemIsNamedByItsKeyAndAllAtOnce(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	cases := []struct {
		name    string
		file    string
		environ []string
		says    []string
	}{
		{
			"unknown keys", "nmae: x\nstore: {retension: 1h}\n", nil,
			[]string{"nmae: unknown key; the nearest valid one is name", "store.retension: unknown key; the nearest valid one is store.retention"},
		},
		{
			"unknown key of a carrier", "carriers: {a: {type: mqtt, urll: x}}\n", nil,
			[]string{"carriers.a.urll: unknown key; the nearest valid one is carriers.a.url"},
		},
		{"key of another type", "carriers: {a: {type: mqtt, listen: x}}\n", nil, []string{"carriers.a.listen: unknown key"}},
		{"unknown type", "carriers: {a: {type: natz}}\n", nil, []string{`carriers.a.type: "natz" is unknown`, "nearest is nats"}},
		{"no type", "carriers: {a: {url: x}}\n", nil, []string{"carriers.a.type: is required"}},
		{"carrier that is no section", "carriers: {a: nats, b: [1]}\n", nil, []string{"carriers.a: must be", "carriers.b: must be"}},
		{"carriers that are no section", "carriers: [nats]\n", nil, []string{"carriers: must be"}},
		{"carriers without a value", "carriers:\n", nil, []string{"carriers: has no value"}},
		{"no carriers", "carriers: {}\n", nil, []string{"carriers: names no carrier"}},
		{
			"unknown keys beside bad values", "nmae: x\nstore: {max_pending: 0, nope: 1}\ncarriers: {a: {type: mqtt, in_flight: 0, urll: x}, b: {type: natz}, c: {type: nats, ack_wait: 1ms}}\n", nil,
			[]string{"nmae: unknown", "store.max_pending: ", "store.nope: unknown", "carriers.a.urll: unknown", "carriers.a.in_flight: ", "carriers.b.type: ", "carriers.c.ack_wait: "},
		},
		{
			"live agents without a command",
			"nmae: x\ncarriers: {s: {type: stdio, agents: {a: {command: [], peer_id: a, workspace: w, channel: c, participation: {mode: live}}, b: {command: [\"\"]}}}}\n", nil,
			[]string{"nmae: unknown", "carriers.s.agents.a.command: ", "carriers.s.agents.b.command: "},
		},
		{
			"more than the limits allow", "store: {max_pending: 0}\nparticipation: {limits: {max_wakes: 2}, defaults: {max_wakes: 1}}\ncarriers: {s: {type: stdio, agents: {a: {command: [x], peer_id: a, workspace: w, channel: c, participation: {mode: live, bounds: {max_wakes: 9}}}}}}\n", nil,
			[]string{"store.max_pending: ", "carriers.s.agents.a.participation.bounds.max_wakes: "},
		},
		{"bad carrier name", "carriers: {\"A b\": {type: nats}}\n", nil, []string{"carriers.A b: a carrier's name"}},
		{
			"wrong types everywhere", "name: 1\nprotocol: {max_replay_age: 5, max_envelope_bytes: big}\ncarriers: {a: {type: mqtt, in_flight: x}, b: {type: http, tokens: [1]}}\n", nil,
			[]string{"name: must be", "protocol.max_replay_age: must be", "protocol.max_envelope_bytes: must be", "carriers.a.in_flight: must be", "carriers.b.tokens: must be"},
		},
		{
			"bad values in several parts", "name: \"A B\"\nstore: {synchronous: off, max_pending: 0}\nembedded: {nats: {listen: nowhere}}\ncarriers: {a: {type: mqtt, in_flight: 0}}\n", nil,
			[]string{"name: ", "store.synchronous: ", "store.max_pending: ", "embedded.nats.listen: ", "carriers.a.in_flight: "},
		},
		{
			"missing files", "carriers: {n: {type: nats, token_file: " + missing + "}, h: {type: http, tokens: {t: {token_file: " + missing + "}}}}\n", nil,
			[]string{"carriers.n.token_file: ", "carriers.h.tokens.t.token_file: "},
		},
		{"open listener without tokens", "carriers: {h: {type: http, listen: \"0.0.0.0:8080\"}}\n", nil, []string{"carriers.h.listen: "}},
		{"scope of nobody", "scopes: {nobody: []}\n", nil, []string{"scopes.nobody: no carrier"}},
		{"streams from a server without", "embedded: {nats: {jetstream: false}}\n", nil, []string{"carriers.nats.mode: is jetstream"}},
		{"bad YAML", "a: [\n", nil, []string{"--config: "}},
		{"repeated key", "name: a\nname: b\n", nil, []string{"--config: ", "already defined"}},
		{"two documents", "name: a\n---\nname: b\n", nil, []string{"more than one YAML document"}},
		{"a list for a file", "- a\n", nil, []string{"--config: "}},
		{
			"bad values from the environment", "",
			[]string{"GATEWAY_PROTOCOL__MAX_REPLAY_AGE=5", "GATEWAY_STORE__MAX_PENDING=many", "GATEWAY_NETWORK__ENABLED=perhaps"},
			[]string{"protocol.max_replay_age: ", "from GATEWAY_PROTOCOL__MAX_REPLAY_AGE", "store.max_pending: ", "network.enabled: "},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := (&loading{file: c.file, environ: c.environ}).load(t)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is missing in:\n%v", text, err)
				}
			}
		})
	}
}

func TestAValueThatCannotBeReadIsNotToldToBeMissingAsWell(t *testing.T) {
	_, err := (&loading{file: "carriers: {s: {type: stdio, agents: {a: {command: 5, peer_id: a, workspace: w, channel: c, participation: {mode: live}}}}}\n"}).load(t)
	if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.HasPrefix(err.Error(), "carriers.s.agents.a.command: must be a list") {
		t.Errorf("got %v", err)
	}
}

func TestConfigCheckWritesOneLineForEachProblem(t *testing.T) {
	file := writeFile(t, "bad.yaml", "nmae: x\nprotocol: {max_replay_age: 5}\n")
	got := command(t, "", "config", "check", "--config", file)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	if got.status != exitUsage || got.stdout != "" || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "error: nmae: ") || !strings.HasPrefix(lines[1], "error: protocol.max_replay_age: ") {
		t.Errorf("got %+v", got)
	}
	if got := command(t, "", "config", "check"); got.status != exitGood || got.stderr != "" {
		t.Errorf("the defaults are bad: %+v", got)
	}
}
