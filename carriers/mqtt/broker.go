package mqtt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
)

// BrokerConfig is the configuration of the embedded broker.
type BrokerConfig struct {
	Enabled bool `koanf:"enabled"`
	// Listen is host:port of a loopback address; port 0 lets the system choose one.
	Listen string `koanf:"listen"`
	// MaxPacket is the largest packet in bytes that a device may send; a larger
	// one ends its connection. It leaves room above the envelope limit, so that
	// an envelope that is too large is refused with a record.
	MaxPacket int `koanf:"max_packet"`
}

// DefaultBrokerConfig is a broker on this machine's loopback address.
func DefaultBrokerConfig() BrokerConfig {
	return BrokerConfig{Enabled: true, Listen: "127.0.0.1:1883", MaxPacket: 16 << 20}
}

// Validate reports every problem, each with its full key.
func (c BrokerConfig) Validate(key string) []error {
	if !c.Enabled {
		return nil
	}
	var problems []error
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		problems = append(problems, fmt.Errorf("%s.listen: %w", key, err))
	case !loopback(host):
		problems = append(problems, fmt.Errorf("%s.listen: %s is not a loopback address, and the embedded broker lets everybody in; point a carrier's url at a broker of your own for anything else", key, c.Listen))
	}
	if c.MaxPacket < minMaxPacket || c.MaxPacket > maxPacket {
		problems = append(problems, fmt.Errorf("%s.max_packet: %d is not between %d and %d", key, c.MaxPacket, minMaxPacket, maxPacket))
	}
	return problems
}

const (
	// maxClientQueue and maxClientInflight are what the broker keeps for one
	// client; beyond them messages to that client are dropped.
	maxClientQueue    = 4096
	maxClientInflight = 4096
	// minMaxPacket leaves room for an envelope of a useful size.
	minMaxPacket = 64 << 10
	// sysInterval is how often the broker publishes its figures, in seconds.
	sysInterval = 60
)

// Broker is the embedded MQTT broker.
type Broker struct {
	server   *mochi.Server
	listener *listener
	log      *slog.Logger
	// maxPacket is the largest packet that the broker takes.
	maxPacket int
	// secret is part of the client ids of the gateway's own publishers; no other
	// process knows it.
	secret string

	// ctx ends when the broker closes.
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	// served says that the listener has been given to the server.
	served bool

	mu     sync.Mutex
	routes []*route
	// devices are the clients that have published to the gateway.
	devices map[*mochi.Client]*device
	working sync.WaitGroup
}

// NewBroker opens the address, and lets devices wait there until Serve. An
// address that cannot be had is an error that names the key embedded.mqtt.listen.
func NewBroker(cfg BrokerConfig, logger *slog.Logger) (*Broker, error) {
	socket, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded.mqtt.listen: %w", err)
	}
	b := &Broker{log: logger, maxPacket: cfg.MaxPacket, secret: randomID(), devices: make(map[*mochi.Client]*device)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.listener = newListener(socket, logger)

	capabilities := mochi.NewDefaultServerCapabilities()
	capabilities.MaximumPacketSize = uint32(cfg.MaxPacket)
	capabilities.MaximumClientWritesPending = maxClientQueue
	capabilities.MaximumInflight = maxClientInflight
	b.server = mochi.New(&mochi.Options{
		Capabilities:           capabilities,
		Logger:                 slog.New(quiet{next: logger.Handler(), secret: b.secret}),
		SysTopicResendInterval: sysInterval,
	})
	err = errors.Join(
		b.server.AddHook(new(auth.AllowHook), nil),
		b.server.AddHook(&intercept{broker: b}, nil),
		b.server.AddListener(b.listener),
	)
	if err != nil {
		_ = socket.Close() // nothing has been accepted yet
		b.cancel()
		return nil, fmt.Errorf("make the embedded MQTT broker: %w", err)
	}
	return b, nil
}

// Serve begins to serve devices. It comes after the carriers have been made: what
// a device publishes on an address that no carrier has claimed yet would be
// acknowledged and forgotten. It must not be called at the same time as Close.
func (b *Broker) Serve() error {
	if err := b.server.Serve(); err != nil {
		return fmt.Errorf("start the embedded MQTT broker: %w", err)
	}
	b.served = true
	b.log.Info("embedded MQTT broker listens", "address", b.Addr())
	return nil
}

// Addr is the address on which the broker listens, host:port.
func (b *Broker) Addr() string { return b.listener.Address() }

// URL is the address at which this machine reaches the broker.
func (b *Broker) URL() string {
	host, port, err := net.SplitHostPort(b.Addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "tcp://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "tcp://" + b.Addr()
}

// Close ends every connection and waits for everything that the broker runs.
// What devices have published and the gateway has not committed by then is not
// acknowledged to them.
func (b *Broker) Close() error {
	var err error
	b.once.Do(func() {
		b.cancel()
		if !b.served {
			err = b.listener.socket.Close()
			return
		}
		err = b.server.Close()
		b.working.Wait()
	})
	return err
}

// route leads from a topic prefix to the carrier that takes it.
type route struct {
	prefix string
	mu     sync.RWMutex
	at     *reception
}

// reserve makes the prefix the gateway's own: what is published below it passes
// through the carrier that runs for it, and is not taken while none does.
func (b *Broker) reserve(prefix string) (*route, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.routes, func(r *route) bool { return r.prefix == prefix }) {
		return nil, fmt.Errorf("two carriers have the topic prefix %s on the embedded broker", prefix)
	}
	r := &route{prefix: prefix}
	b.routes = append(b.routes, r)
	return r, nil
}

// routeOf finds the route that a topic belongs to, and reads the topic. Where one
// prefix lies below another, the longer one counts.
func (b *Broker) routeOf(topic string) (found *route, at location, ours bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.routes {
		if found != nil && len(r.prefix) < len(found.prefix) {
			continue
		}
		if l, ok := locate(r.prefix, topic); ok {
			found, at, ours = r, l, true
		}
	}
	return found, at, ours
}

// open says who takes what arrives; nil means nobody does.
func (r *route) open(at *reception) {
	r.mu.Lock()
	r.at = at
	r.mu.Unlock()
}

func (r *route) reception() *reception {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.at
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
