package mqtt

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestNothingOfAURLThatMayBeASecretIsShown(t *testing.T) {
	const secret = "hunter2"
	broker := newFakeBroker(t) // It speaks no HTTP, and closes what is no MQTT.
	place := strings.TrimPrefix(broker.url(), "tcp://")
	for _, tt := range []struct{ name, url string }{
		{"a web socket that is refused", "ws://127.0.0.1:1/mqtt?token=" + secret},
		{"no web socket at all", "ws://user:" + secret + "@" + place + "/mqtt?token=" + secret},
		{"no TLS at all", "wss://" + place + "/?" + secret},
		{"a query that means nothing", "ssl://user:" + secret + "@" + place + "?token=" + secret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log logBuffer
			host := testHost("mqtt")
			host.Logger = log.logger()
			cfg := testConfig(tt.url)
			if problems := cfg.Validate("carriers.mqtt"); len(problems) > 0 {
				t.Fatal(problems)
			}
			c, err := New(cfg, host)
			if err != nil {
				t.Fatal(err)
			}
			start(t, c, committing())
			until(t, "the status says what is wrong", func() bool {
				s := c.Status()
				return s.State == core.StateNotReady && log.String() != ""
			})
			got := result(t, send(c, time.Second, "x"))
			s := c.Status()
			for _, shown := range []string{log.String(), s.Why, got.err.Error()} {
				if strings.Contains(shown, secret) {
					t.Errorf("a secret is shown: %s", shown)
				}
			}
		})
	}
}
