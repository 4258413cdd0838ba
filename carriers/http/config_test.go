package http

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/internal/tlsfiles"
	"github.com/compozy-gateway/gateway/core"
)

func TestDefaultsAreValid(t *testing.T) {
	if problems := DefaultConfig().Validate("carriers.http"); len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
}

func TestValidateNamesTheKeyOfEachProblem(t *testing.T) {
	token := file(t, "token", "secret-word")
	empty, two, bad := file(t, "empty", "\n"), file(t, "two", "one two"), file(t, "bad", "whsec_!!!")
	peers := core.Scope{Workspaces: []string{testWS}, Channels: []string{testCh}, Peers: []string{"ada"}}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"no port":            {func(c *Config) { c.Listen = "127.0.0.1" }, []string{"listen"}},
		"bad port":           {func(c *Config) { c.Listen = "127.0.0.1:99999" }, []string{"listen"}},
		"every address":      {func(c *Config) { c.Listen = ":8080" }, []string{"listen"}},
		"a network address":  {func(c *Config) { c.Listen = "192.0.2.1:8080" }, []string{"listen"}},
		"a name":             {func(c *Config) { c.Listen = "gateway.example:8080" }, []string{"listen"}},
		"insecure":           {func(c *Config) { c.Listen, c.Insecure = ":8080", true }, nil},
		"with tokens":        {func(c *Config) { c.Listen = ":8080"; c.Tokens = map[string]TokenConfig{"a": {TokenFile: token}} }, nil},
		"localhost":          {func(c *Config) { c.Listen = "localhost:0" }, nil},
		"IPv6 loopback":      {func(c *Config) { c.Listen = "[::1]:0" }, nil},
		"no token file":      {func(c *Config) { c.Tokens = map[string]TokenConfig{"a": {}} }, []string{"tokens.a.token_file"}},
		"missing token file": {func(c *Config) { c.Tokens = map[string]TokenConfig{"a": {TokenFile: "/nonexistent"}} }, []string{"tokens.a.token_file"}},
		"empty token file":   {func(c *Config) { c.Tokens = map[string]TokenConfig{"a": {TokenFile: empty}} }, []string{"tokens.a.token_file"}},
		"two tokens in one":  {func(c *Config) { c.Tokens = map[string]TokenConfig{"a": {TokenFile: two}} }, []string{"tokens.a.token_file"}},
		"a bad token name":   {func(c *Config) { c.Tokens = map[string]TokenConfig{"a b": {TokenFile: token}} }, []string{"tokens.a b"}},
		"one token twice":    {func(c *Config) { c.Tokens = map[string]TokenConfig{"a": {TokenFile: token}, "b": {TokenFile: token}} }, []string{"tokens.b.token_file"}},
		"certificate no key": {func(c *Config) { c.TLS = tlsfiles.Config{CertFile: token} }, []string{"tls"}},
		"TLS no certificate": {func(c *Config) { c.TLS = tlsfiles.Config{ClientCAFile: token} }, []string{"tls"}},
		"no URL":             {withHook(""), []string{"webhooks.crm.url"}},
		"not a URL":          {withHook("http://user:hidden@[::1"), []string{"webhooks.crm.url"}},
		"another scheme":     {withHook("ftp://user:hidden@example.com/"), []string{"webhooks.crm.url"}},
		"no host":            {withHook("http:///hidden"), []string{"webhooks.crm.url"}},
		"a fragment":         {withHook("http://example.com/#hidden"), []string{"webhooks.crm.url"}},
		"a secret that is no key": {
			withHook("http://example.com", func(w *WebhookConfig) { w.SecretFile = bad }), []string{"webhooks.crm.secret_file"},
		},
		"peers as patterns": {
			withHook("http://example.com", func(w *WebhookConfig) { w.Scope = core.Scope{Workspaces: []string{"*"}, Peers: []string{"a*"}} }),
			[]string{"webhooks.crm.peers", "webhooks.crm.workspaces", "webhooks.crm.channels"},
		},
		"two webhooks for one peer": {func(c *Config) {
			c.Webhooks = map[string]WebhookConfig{"a": {URL: "http://a.example", Scope: peers}, "b": {URL: "http://b.example", Scope: peers}}
		}, []string{"webhooks.b.peers"}},
		"durations and bounds": {
			func(c *Config) { *c = Config{Listen: c.Listen, Heartbeat: time.Minute} },
			[]string{
				"accept_timeout", "read_timeout", "read_header_timeout", "body_timeout", "write_timeout", "idle_timeout",
				"shutdown_timeout", "webhook_timeout", "heartbeat", "max_body", "max_streams",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			c.change(&cfg)
			problems := cfg.Validate("carriers.x")
			if len(problems) != len(c.want) {
				t.Fatalf("problems %v, want those of %v", problems, c.want)
			}
			for i, key := range c.want {
				if got := problems[i].Error(); !strings.HasPrefix(got, "carriers.x."+key+": ") || strings.Contains(got, "hidden") || strings.Contains(got, "secret-word") {
					t.Errorf("problem %q, want one of %s", got, key)
				}
			}
			if _, err := New(cfg, testHost(&logBuffer{}), Backend{}); (err != nil) != (len(c.want) > 0) {
				t.Errorf("New returned %v", err)
			}
		})
	}
}
