package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Config is the gateway's own part of the configuration. Carriers and embedded
// brokers own theirs.
type Config struct {
	// Name makes the peer id of the gateway itself: gateway.NAME.
	Name string `koanf:"name"`
	// DataDir holds the database and the lock file.
	DataDir       string        `koanf:"data_dir"`
	Network       Network       `koanf:"network"`
	Protocol      Protocol      `koanf:"protocol"`
	Store         Store         `koanf:"store"`
	Scopes        Scopes        `koanf:"scopes"`
	Participation Participation `koanf:"participation"`
}

// Network switches availability.
type Network struct {
	// Enabled is availability only: switching it never enrols or removes anybody.
	Enabled bool `koanf:"enabled"`
}

// Protocol bounds freshness, dedup and size (sections 1, 4 and 7 of
// docs/protocol.md).
type Protocol struct {
	MaxReplayAge     time.Duration `koanf:"max_replay_age"`
	MaxLifetime      time.Duration `koanf:"max_lifetime"`
	MaxDeliveryAge   time.Duration `koanf:"max_delivery_age"`
	DedupRetention   time.Duration `koanf:"dedup_retention"`
	MaxEnvelopeBytes int           `koanf:"max_envelope_bytes"`
	// RejectionReceipts is "directed" or "off".
	RejectionReceipts string `koanf:"rejection_receipts"`
}

// Store bounds the database.
type Store struct {
	// Synchronous is SQLite's: "full", or "normal", which may lose the last
	// commits when the power goes.
	Synchronous string        `koanf:"synchronous"`
	Retention   time.Duration `koanf:"retention"`
	// MaxPending bounds the pending deliveries of each destination.
	MaxPending int64 `koanf:"max_pending"`
}

// Scopes maps a carrier's name to what may pass it, in and out. A carrier that
// is not named has no bounds.
type Scopes map[string][]core.Scope

// Participation holds the defaults and ceilings of live agents' bounds.
type Participation struct {
	Defaults core.BoundsRequest `koanf:"defaults"`
	// Limits lower the built-in ceilings.
	Limits core.BoundsRequest `koanf:"limits"`
}

// DefaultConfig is what runs when nothing is configured.
func DefaultConfig() Config {
	return Config{
		Name:    "local",
		DataDir: "data",
		Network: Network{Enabled: true},
		Protocol: Protocol{
			MaxReplayAge:      5 * time.Minute,
			MaxLifetime:       720 * time.Hour,
			MaxDeliveryAge:    24 * time.Hour,
			DedupRetention:    720 * time.Hour,
			MaxEnvelopeBytes:  1 << 20,
			RejectionReceipts: "directed",
		},
		Store: Store{Synchronous: "full", Retention: 720 * time.Hour, MaxPending: 100_000},
	}
}

const (
	// minEnvelopeBytes leaves room for the required fields at their longest.
	minEnvelopeBytes = 4096
	// maxEnvelopeBytes lets the bounded queues of the gateway and its carriers hold
	// several of the largest envelopes.
	maxEnvelopeBytes = 16 << 20
)

// Validate reports every problem, each with its key.
func (c Config) Validate() []error {
	var problems []error
	bad := func(key, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if !core.ValidPeerID(PeerID(c.Name)) || c.Name == "" {
		bad("name", "%q does not make a peer id: use lower-case letters, digits, dot, dash and underscore, at most 120", c.Name)
	}
	if c.DataDir == "" {
		bad("data_dir", "is empty: name a directory")
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"protocol.max_replay_age", c.Protocol.MaxReplayAge},
		{"protocol.max_lifetime", c.Protocol.MaxLifetime},
		{"protocol.max_delivery_age", c.Protocol.MaxDeliveryAge},
		{"protocol.dedup_retention", c.Protocol.DedupRetention},
		{"store.retention", c.Store.Retention},
	} {
		if d.value < time.Second {
			bad(d.key, "is %s: use at least 1s", d.value)
		}
	}
	if n := c.Protocol.MaxEnvelopeBytes; n < minEnvelopeBytes || n > maxEnvelopeBytes {
		bad("protocol.max_envelope_bytes", "is %d: use %d to %d", n, minEnvelopeBytes, maxEnvelopeBytes)
	}
	switch c.Protocol.RejectionReceipts {
	case "directed", "off":
	default:
		bad("protocol.rejection_receipts", "is %q: use directed or off", c.Protocol.RejectionReceipts)
	}
	switch c.Store.Synchronous {
	case "full", "normal":
	default:
		bad("store.synchronous", "is %q: use full or normal", c.Store.Synchronous)
	}
	if c.Store.MaxPending < 1 {
		bad("store.max_pending", "is %d: use at least 1", c.Store.MaxPending)
	}
	return append(problems, c.Participation.validate()...)
}

// validate reports what is wrong with the defaults and the limits, each by
// itself and together.
func (p Participation) validate() []error {
	problems := append(p.Defaults.Check("participation.defaults"), p.Limits.Check("participation.limits")...)
	if len(problems) > 0 {
		return problems
	}
	_, problems = core.ResolveBounds("participation.defaults", p.Defaults, core.BoundsRequest{}, p.Limits)
	return problems
}

// ValidateAgents reports what is wrong with the agents of a carrier beyond what
// the carrier itself can see: a peer id that is the gateway's own, and bounds
// above the configured limits.
func (c Config) ValidateAgents(key string, agents []core.HostedAgent) []error {
	var problems []error
	for _, a := range agents {
		if a.Peer == PeerID(c.Name) {
			problems = append(problems, fmt.Errorf("%s.agents.%s.peer_id: %s is the peer id of the gateway itself", key, a.Name, a.Peer))
		}
		_, found := c.askedFor(key+".agents."+a.Name, a)
		problems = append(problems, found...)
	}
	return problems
}

// ValidateScopes reports scopes that name a carrier which is not configured.
func (c Config) ValidateScopes(carriers []string) []error {
	known := make(map[string]bool, len(carriers))
	for _, name := range carriers {
		known[name] = true
	}
	var problems []error
	for name := range c.Scopes {
		if !known[name] {
			problems = append(problems, fmt.Errorf("scopes.%s: no carrier of that name is configured (there are: %s)", name, strings.Join(carriers, ", ")))
		}
	}
	return problems
}

// PeerID is the peer id of a gateway of that name.
func PeerID(name string) string { return "gateway." + name }

// freshness is the policy as core takes it.
func (p Protocol) freshness() core.FreshnessPolicy {
	return core.FreshnessPolicy{MaxReplayAge: p.MaxReplayAge, MaxLifetime: p.MaxLifetime}
}
