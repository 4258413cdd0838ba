package nats

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestOfAMessageOverTheEnvelopeLimitTheGatewayGetsTheHead(t *testing.T) {
	for _, mode := range []Mode{ModeJetStream, ModeCore} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBroker(t)
			cfg := testConfig(b)
			cfg.Mode = mode
			host := testHost(&logs{})
			host.MaxEnvelopeBytes = 8 << 10
			c, err := New(cfg, host)
			if err != nil {
				t.Fatal(err)
			}
			in := committing()
			runCarrier(t, c, in).awaitReady()
			nc := b.client()
			for _, size := range []int{8 << 10, 64 << 10} {
				if err := nc.Publish(labBroadcast, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "both are offered", func() bool { return len(in.seen()) == 2 })
			whole, head := in.seen()[0], in.seen()[1]
			if len(whole.Payload) != 8<<10 || whole.Size != 0 {
				t.Errorf("at the limit %d bytes are offered with the size %d", len(whole.Payload), whole.Size)
			}
			if len(head.Payload) > 4<<10 || head.Size != 64<<10 {
				t.Errorf("over the limit %d bytes are offered with the size %d", len(head.Payload), head.Size)
			}
		})
	}
}

func TestNothingOfAURLThatMayBeASecretIsShown(t *testing.T) {
	const secret = "hunter2"
	for _, url := range []string{
		"ws://127.0.0.1:1/?token=" + secret,
		"nats://user:" + secret + "@127.0.0.1:1?token=" + secret,
		"127.0.0.1:1?token=" + secret,
		secret + "@127.0.0.1:1,nats://127.0.0.1:2?token=" + secret,
	} {
		t.Run(strings.ReplaceAll(url, secret, "..."), func(t *testing.T) {
			cfg, log := DefaultConfig(), &logs{}
			cfg.URL = url
			if problems := cfg.Validate("carriers.nats"); len(problems) > 0 {
				t.Fatal(problems)
			}
			c, err := New(cfg, testHost(log))
			if err != nil {
				t.Fatal(err)
			}
			r := runCarrier(t, c, committing())
			eventually(t, "the status says what is wrong", func() bool {
				return r.Status().State == core.StateNotReady && strings.Contains(r.Status().Why, "127.0.0.1") && log.String() != ""
			})
			out := message("t", "x")
			out.Deadline = time.Now().Add(time.Minute)
			for _, shown := range []string{log.String(), r.Status().Why, r.send(out).err.Error()} {
				if strings.Contains(shown, secret) {
					t.Errorf("a secret is shown: %s", shown)
				}
			}
		})
	}
}
