package mqtt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheDefaultsAreValid(t *testing.T) {
	if problems := DefaultConfig().Validate("carriers.mqtt"); len(problems) > 0 {
		t.Errorf("carrier: %v", problems)
	}
	if problems := DefaultBrokerConfig().Validate("embedded.mqtt"); len(problems) > 0 {
		t.Errorf("broker: %v", problems)
	}
}

func TestEveryProblemIsReportedWithItsKey(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	tests := []struct {
		name   string
		change func(*Config)
		keys   []string
	}{
		{"no scheme", func(c *Config) { c.URL = "127.0.0.1:1883" }, []string{"url"}},
		{"other scheme", func(c *Config) { c.URL = "http://127.0.0.1" }, []string{"url"}},
		{"no host", func(c *Config) { c.URL = "tcp://" }, []string{"url"}},
		{"credentials twice", func(c *Config) { c.URL, c.Username = "tcp://a:b@h:1", "a" }, []string{"url"}},
		{"tls without ssl", func(c *Config) { c.TLS.CAFile = os.Args[0] }, []string{"url"}},
		{"tls file missing", func(c *Config) { c.URL, c.TLS.CAFile = "ssl://h:1", missing }, []string{"tls.ca_file"}},
		{"prefix empty", func(c *Config) { c.TopicPrefix = "" }, []string{"topic_prefix"}},
		{"prefix wildcard", func(c *Config) { c.TopicPrefix = "a/+/b" }, []string{"topic_prefix"}},
		{"prefix slash", func(c *Config) { c.TopicPrefix = "a/" }, []string{"topic_prefix"}},
		{"prefix dollar", func(c *Config) { c.TopicPrefix = "$SYS/a" }, []string{"topic_prefix"}},
		{"prefix NUL", func(c *Config) { c.TopicPrefix = "a\x00" }, []string{"topic_prefix"}},
		{"client id", func(c *Config) { c.ClientIDPrefix = "a b" }, []string{"client_id_prefix"}},
		{"password without user", func(c *Config) { c.PasswordFile = missing }, []string{"password_file", "password_file"}},
		{"keepalive too small", func(c *Config) { c.Keepalive = time.Millisecond }, []string{"keepalive"}},
		{"keepalive not whole", func(c *Config) { c.Keepalive = 1500 * time.Millisecond }, []string{"keepalive"}},
		{"connect timeout", func(c *Config) { c.ConnectTimeout = 0 }, []string{"connect_timeout"}},
		{"reconnect too slow", func(c *Config) { c.ReconnectMax = time.Hour }, []string{"reconnect_max"}},
		{"max payload", func(c *Config) { c.MaxPayload = -1 }, []string{"max_payload"}},
		{"in flight", func(c *Config) { c.InFlight = 0 }, []string{"in_flight"}},
		{"receive queue", func(c *Config) { c.ReceiveQueue = 0 }, []string{"receive_queue"}},
		{"everything", func(c *Config) { *c = Config{} }, []string{
			"url", "topic_prefix", "client_id_prefix", "keepalive", "connect_timeout", "reconnect_max", "in_flight", "receive_queue",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			var keys []string
			for _, p := range cfg.Validate("carriers.mqtt") {
				key, _, _ := strings.Cut(strings.TrimPrefix(p.Error(), "carriers.mqtt."), ":")
				keys = append(keys, key)
			}
			if !slices.Equal(keys, tt.keys) {
				t.Errorf("the keys are %v, want %v", keys, tt.keys)
			}
		})
	}
}

func TestNoProblemShowsAPassword(t *testing.T) {
	for _, url := range []string{"tcp://ada:hunter2@[::1", "http://ada:hunter2@h", "tcp://ada:hunter2@", "tcp://ada:hunter2@h:1"} {
		cfg := DefaultConfig()
		cfg.URL, cfg.Username = url, "ada"
		for _, p := range cfg.Validate("carriers.mqtt") {
			if strings.Contains(p.Error(), "hunter2") {
				t.Errorf("%q is reported as %v", url, p)
			}
		}
	}
}

func TestTheBrokerListensOnLoopbackAlone(t *testing.T) {
	tests := []struct {
		listen   string
		problems int
	}{
		{"127.0.0.1:1883", 0},
		{"localhost:1883", 0},
		{"[::1]:0", 0},
		{"0.0.0.0:1883", 1},
		{":1883", 1},
		{"192.0.2.1:1883", 1},
		{"127.0.0.1", 1},
	}
	for _, tt := range tests {
		cfg := DefaultBrokerConfig()
		cfg.Listen = tt.listen
		problems := cfg.Validate("embedded.mqtt")
		if len(problems) != tt.problems {
			t.Errorf("listen %q: %v", tt.listen, problems)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Error(), "embedded.mqtt.listen: ") {
				t.Errorf("listen %q: %v", tt.listen, p)
			}
		}
	}
	if problems := (BrokerConfig{}).Validate("embedded.mqtt"); len(problems) != 0 {
		t.Errorf("a broker that is off: %v", problems)
	}
}

func TestThePasswordIsReadForEveryConnection(t *testing.T) {
	b := newFakeBroker(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	cfg, host := testConfig(b.url()), testHost("mqtt")
	cfg.Username, cfg.PasswordFile, host.Logger = "ada", file, log.logger()
	c, err := New(cfg, host)
	if err != nil {
		t.Fatal(err)
	}
	start(t, c, committing())
	ready(t, c)
	if err := os.WriteFile(file, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.cut()
	until(t, "the new password is used", func() bool {
		all := b.connections()
		return all[len(all)-1].password == "second" && all[len(all)-1].username == "ada"
	})
	if first := b.connections()[0]; first.password != "first" {
		t.Errorf("the first password was %q", first.password)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	b.cut()
	until(t, "the status says that the password is missing", func() bool { return strings.Contains(c.Status().Why, "password") })
	until(t, "the log names its file", func() bool { return strings.Contains(log.String(), file) })
	if why := c.Status().Why; strings.Contains(why, file) {
		t.Errorf("the file is named to anybody: %s", why)
	}
}
