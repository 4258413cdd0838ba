package nats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if problems := DefaultConfig().Validate("carriers.nats"); len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	if problems := DefaultServerConfig().Validate("embedded.nats"); len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
}

func TestConfigProblemsNameTheirKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"no url", func(c *Config) { c.URL = " " }, []string{"carriers.nats.url: "}},
		{"foreign scheme", func(c *Config) { c.URL = "nats://a:4222,http://b" }, []string{"carriers.nats.url: address 2"}},
		{"no host", func(c *Config) { c.URL = "nats://:4222" }, []string{"carriers.nats.url: address 1"}},
		{"unknown mode", func(c *Config) { c.Mode = "stan" }, []string{"carriers.nats.mode: "}},
		{"empty prefix", func(c *Config) { c.SubjectPrefix = "" }, []string{"carriers.nats.subject_prefix: "}},
		{"wildcard prefix", func(c *Config) { c.SubjectPrefix = "a.>" }, []string{"carriers.nats.subject_prefix: "}},
		{"prefix with an empty part", func(c *Config) { c.SubjectPrefix = "a..b" }, []string{"carriers.nats.subject_prefix: "}},
		{"prefix with a dot at its end", func(c *Config) { c.SubjectPrefix = "a." }, []string{"carriers.nats.subject_prefix: "}},
		{"reserved prefix", func(c *Config) { c.SubjectPrefix = "$JS.API" }, []string{"carriers.nats.subject_prefix: "}},
		{"long prefix", func(c *Config) { c.SubjectPrefix = strings.Repeat("p", 513) }, []string{"carriers.nats.subject_prefix: "}},
		{"stream with a dot", func(c *Config) { c.Stream = "A.B" }, []string{"carriers.nats.stream: "}},
		{"negative payload", func(c *Config) { c.MaxPayload = -1 }, []string{"carriers.nats.max_payload: "}},
		{"short ack_wait", func(c *Config) { c.AckWait = time.Millisecond }, []string{"carriers.nats.ack_wait: "}},
		{"no acks pending", func(c *Config) { c.MaxAckPending = 0 }, []string{"carriers.nats.max_ack_pending: "}},
		{"negative age", func(c *Config) { c.StreamMaxAge = -1 }, []string{"carriers.nats.stream_max_age: "}},
		{"no replicas", func(c *Config) { c.StreamReplicas = 0 }, []string{"carriers.nats.stream_replicas: "}},
		{"user without password", func(c *Config) { c.Username = "ada" }, []string{"carriers.nats.password_file: "}},
		{"missing file", func(c *Config) { c.TokenFile = secret + ".missing" }, []string{"carriers.nats.token_file: "}},
		{"two ways to log in", func(c *Config) { c.TokenFile, c.NKeyFile = secret, secret }, []string{"carriers.nats.token_file: "}},
		{"half a certificate", func(c *Config) { c.TLS.CertFile = secret }, []string{"carriers.nats.tls: "}},
		{"all at once", func(c *Config) { c.URL, c.Mode, c.Stream = "", "", "" }, []string{
			"carriers.nats.url: ", "carriers.nats.mode: ", "carriers.nats.stream: ",
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tc.change(&cfg)
			problems := cfg.Validate("carriers.nats")
			if len(problems) != len(tc.want) {
				t.Fatalf("problems: %v, want %d", problems, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(problems[i].Error(), want) {
					t.Errorf("problem %q does not begin with %q", problems[i], want)
				}
			}
			if _, err := New(cfg, core.Host{Name: "nats"}); err == nil {
				t.Error("New takes what Validate refuses")
			}
		})
	}
}

func TestServerConfigProblemsNameTheirKey(t *testing.T) {
	for _, listen := range []string{"", "4222", "127.0.0.1:x", "127.0.0.1:70000", "0.0.0.0:4222", "[::]:4222", ":4222", "example.org:4222"} {
		problems := ServerConfig{Enabled: true, Listen: listen}.Validate("embedded.nats")
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "embedded.nats.listen: ") {
			t.Errorf("listen %q: problems %v", listen, problems)
		}
	}
	if problems := (ServerConfig{Listen: "nonsense"}).Validate("embedded.nats"); problems != nil {
		t.Errorf("a server that is off has problems: %v", problems)
	}
}

func TestURLsAreShownWithoutCredentials(t *testing.T) {
	cases := map[string]string{
		"nats://127.0.0.1:4222":                      "nats://127.0.0.1:4222",
		"nats://ada:pa55word@h:1, tls://t0ken@g:2":   "nats://h:1,tls://g:2",
		"ada:pa55word@h:4222":                        "nats://h:4222",
		"wss://ada:pa55word@h/path?token=t0ken#frag": "wss://h",
		"nats://ada:pa55word@h:port":                 "(unreadable address)",
	}
	for list, want := range cases {
		if got := RedactURL(list); got != want {
			t.Errorf("RedactURL of a list is %q, want %q", got, want)
		}
	}
}

func TestProblemsOfAURLDoNotRepeatIt(t *testing.T) {
	for _, list := range []string{"nats://ada:pa55word@h:port", "http://ada:pa55word@h", "nats://ada:pa55word@"} {
		cfg := DefaultConfig()
		cfg.URL = list
		problems := cfg.Validate("k")
		if len(problems) != 1 || strings.Contains(problems[0].Error(), "pa55word") {
			t.Errorf("problems: %v", problems)
		}
	}
}
