package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	example "github.com/compozy-gateway/gateway"
	"gopkg.in/yaml.v3"
)

func TestTheExampleFileSaysWhatRunsWithoutIt(t *testing.T) {
	fromFile := mustLoad(t, &loading{file: example.Config()})
	defaults := mustLoad(t, &loading{})
	if a, b := printed(t, fromFile), printed(t, defaults); a != b {
		t.Errorf("the file says\n%s\nthe defaults are\n%s", a, b)
	}
}

// printed compares configurations by what they say: an empty section and an
// absent one are the same.
func printed(t *testing.T, c *configuration) string {
	t.Helper()
	text, err := yaml.Marshal(c.render())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheExampleFileHasEveryKey(t *testing.T) {
	var file map[string]any
	if err := yaml.Unmarshal([]byte(example.Config()), &file); err != nil {
		t.Fatal(err)
	}
	carriers := file["carriers"].(map[string]any)
	requireKeys(t, "", file, reflect.TypeFor[keys]())
	for name, section := range carriers {
		section := section.(map[string]any)
		requireKeys(t, "carriers."+name, section, carrierShape(section["type"].(string)))
	}
}

// requireKeys finds every koanf tag of a struct in a section of the file.
func requireKeys(t *testing.T, key string, section map[string]any, shape reflect.Type) {
	t.Helper()
	for shape.Kind() == reflect.Pointer {
		shape = shape.Elem()
	}
	for i := range shape.NumField() {
		field := shape.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("koanf"), ",")
		if options == "squash" {
			requireKeys(t, key, section, field.Type)
			continue
		}
		value, there := section[name]
		if !there && field.Type.Kind() == reflect.Pointer {
			continue // What is optional has no default.
		}
		if !there && strings.Contains(example.Config(), "    # "+name+": ") {
			continue // Set to its default it would mean something else.
		}
		if !there {
			t.Errorf("%s.%s is missing", key, name)
			continue
		}
		if below, ok := value.(map[string]any); ok && field.Type.Kind() == reflect.Struct {
			requireKeys(t, key+"."+name, below, field.Type)
		}
	}
}

func TestTheCommentedExamplesLoadToo(t *testing.T) {
	secret := writeFile(t, "secret", "whsec_"+strings.Repeat("QUFB", 8)+"\n")
	token1, token2 := writeFile(t, "token", strings.Repeat("a", 40)), writeFile(t, "token", strings.Repeat("b", 40))
	text := example.Config()
	for _, r := range [][2]string{
		{"    tokens: {}\n", "    tokens:\n"},
		{"    webhooks: {}\n", "    webhooks:\n"},
		{"    agents: {}\n", "    agents:\n"},
		{"scopes: {}\n", ""},
		{"/etc/gateway/ops.token", token1},
		{"/etc/gateway/bots.token", token2},
		{"/etc/gateway/audit.secret", secret},
	} {
		if !strings.Contains(text, r[0]) {
			t.Fatalf("the example file has no %q", r[0])
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	text = moveBehind(text, "    tokens:\n", "    #   ops:", "    #   bots:")
	text = moveBehind(text, "    webhooks:\n", "    #   audit:", "    #   bot:")
	text = moveBehind(text, "    agents:\n", "    #   echo:", "    #     ")
	text = strings.Replace(text, "#   scopes:\n#     mqtt:", "scopes:\n  mqtt:", 1)
	text = strings.Replace(text, "dir: /var/lib/echo", "dir: "+t.TempDir(), 1)
	c := mustLoad(t, &loading{file: text})
	if len(c.Scopes["mqtt"]) != 1 {
		t.Errorf("scopes are %+v", c.Scopes)
	}
	shown := printed(t, c)
	if !strings.Contains(shown, "command: [/usr/local/bin/echo-agent, --verbose]") || !strings.Contains(shown, "display_name: Echo") {
		t.Errorf("the agents are\n%s", shown)
	}
}

// moveBehind takes the commented lines with the given beginnings out of the text
// and puts them, uncommented, behind a line.
func moveBehind(text, line string, beginnings ...string) string {
	var kept, moved []string
	for l := range strings.Lines(text) {
		isMoved := false
		for _, b := range beginnings {
			isMoved = isMoved || strings.HasPrefix(l, b)
		}
		if isMoved {
			moved = append(moved, strings.Replace(l, "    # ", "    ", 1))
		} else {
			kept = append(kept, l)
		}
	}
	return strings.Replace(strings.Join(kept, ""), line, line+strings.Join(moved, ""), 1)
}

func TestConfigPrintCanBeLoadedAgainAndHidesSecrets(t *testing.T) {
	printed := command(t, "", "config", "print")
	if printed.status != exitGood {
		t.Fatalf("got %+v", printed)
	}
	again := command(t, "", "config", "print", "--config", writeFile(t, "printed.yaml", printed.stdout))
	if again.status != exitGood || again.stdout != printed.stdout {
		t.Errorf("printed\n%s\nread and printed again\n%s%s", printed.stdout, again.stdout, again.stderr)
	}

	const secret = "hunter2"
	environ := []string{
		"GATEWAY_CARRIERS__NATS__URL=nats://user:" + secret + "@broker:4222",
		"GATEWAY_CARRIERS__MQTT__URL=ws://user:" + secret + "@broker:1883/mqtt?token=" + secret + "&a=b," + secret,
		"GATEWAY_CARRIERS__HTTP__WEBHOOKS={w: {url: 'https://user:" + secret + "@host/?" + secret + "'}}",
		"GATEWAY_CARRIERS__AGENTS__AGENTS={a: {command: [cat], peer_id: a, workspace: w, channel: c, env: {KEY: " + secret + "}}}",
	}
	for _, format := range []string{"text", "json"} {
		got := commandIn(t.Context(), environ, strings.NewReader(""), "config", "print", "-o", format)
		if got.status != exitGood || strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("status %d, a secret is shown or the configuration is bad:\n%s%s", got.status, got.stdout, got.stderr)
		}
		for _, kept := range []string{"@broker:4222", "@broker:1883", "KEY", "@host"} {
			if !strings.Contains(got.stdout, kept) {
				t.Errorf("%s is missing:\n%s", kept, got.stdout)
			}
		}
	}
}

func TestConfigInitKeepsAFileThatExists(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gateway.yaml")
	if got := command(t, "", "config", "init", name); got.status != exitGood {
		t.Fatalf("got %+v", got)
	}
	if err := os.WriteFile(name, []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "", "config", "init", name); got.status != exitUsage || !strings.Contains(got.stderr, "--force") {
		t.Errorf("got %+v", got)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "name: mine\n" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	if got := command(t, "", "config", "init", "--force", name); got.status != exitGood {
		t.Errorf("got %+v", got)
	}
	if got := command(t, "", "config", "init", "-"); got.status != exitGood || got.stdout != example.Config() {
		t.Errorf("got status %d", got.status)
	}
}
