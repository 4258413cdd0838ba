package mqtt

import (
	"log/slog"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that must come.
const patience = 30 * time.Second

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func testHost(name string) core.Host {
	return core.Host{
		Name: name, InstanceID: "0123456789abcdef", MaxEnvelopeBytes: 1 << 20,
		Logger: discard(), Now: time.Now,
	}
}

// testConfig is a carrier's configuration that reconnects without long pauses.
func testConfig(url string) Config {
	cfg := DefaultConfig()
	cfg.URL = url
	cfg.ReconnectMax = 50 * time.Millisecond
	cfg.ConnectTimeout = 2 * time.Second
	return cfg
}

// until waits for something that must come.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

func within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain until %s", d, what)
		}
	}
}

// never watches for something that must not come.
func never(t *testing.T, d time.Duration, what string, bad func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if bad() {
			t.Fatal(what)
		}
	}
}

// ready waits until the carrier is.
func ready(t testing.TB, c *Carrier) {
	t.Helper()
	until(t, "the carrier is ready", func() bool { return c.Status().State == core.StateReady })
}
