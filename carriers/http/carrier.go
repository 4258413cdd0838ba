package http

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Carrier is the HTTP carrier. Build it with New.
type Carrier struct {
	cfg     Config
	host    core.Host
	backend Backend
	keys    *keyring
	hooks   map[string]*endpoint
	// pushed finds the webhook that stands in for a peer's inbox.
	pushed map[seat]*endpoint
	sends  activity
	// streams holds one entry for each stream and long poll that is open.
	streams chan struct{}

	mu          sync.Mutex
	listener    net.Listener
	state       core.State
	why         string
	lastReceive time.Time
	lastSend    time.Time
}

var (
	_ core.Carrier = (*Carrier)(nil)
	_ core.Pinner  = (*Carrier)(nil)
)

// New builds the carrier. It reads the files that cfg names, and neither
// listens nor calls anybody before Run (or Listen).
func New(cfg Config, host core.Host, backend Backend) (*Carrier, error) {
	if problems := cfg.Validate("carriers." + host.Name); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	c := &Carrier{
		cfg:     cfg,
		host:    host,
		backend: backend,
		keys:    newKeyring(cfg.Tokens, host.Logger, host.Now),
		hooks:   map[string]*endpoint{},
		pushed:  map[seat]*endpoint{},
		streams: make(chan struct{}, cfg.MaxStreams),
		state:   core.StateStarting,
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Webhooks)) {
		hook, err := newEndpoint(name, cfg.Webhooks[name], cfg.WebhookTimeout, host)
		if err != nil {
			return nil, fmt.Errorf("carriers.%s.webhooks.%s: %w", host.Name, name, err)
		}
		c.hooks[name] = hook
		for _, place := range cfg.Webhooks[name].seats() {
			c.pushed[place] = hook
		}
	}
	return c, nil
}

// Listen takes the port, so that a port in use is known before anything else
// starts. Run does it where nobody has. The error names the key.
func (c *Carrier) Listen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", c.cfg.Listen)
	if err != nil {
		return fmt.Errorf("carriers.%s.listen: %w", c.host.Name, err)
	}
	c.listener = l
	return nil
}

// Addr is the address that the carrier listens on; nil before Listen.
func (c *Carrier) Addr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return nil
	}
	return c.listener.Addr()
}

// Run serves until ctx has ended, and then until requests and webhook calls have
// ended too, at most for the shutdown timeout. It returns an error when it
// cannot listen.
func (c *Carrier) Run(ctx context.Context, in core.Intake) error {
	defer c.close()
	if err := c.Listen(); err != nil {
		return err
	}
	tlsConfig, err := c.cfg.TLS.Server()
	if err != nil {
		return fmt.Errorf("carriers.%s.tls: %w", c.host.Name, err)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	tasks.Go(func() { c.keys.watch(running) })
	tasks.Go(func() { c.attachWebhookPeers(running, in) })

	s := newServer(running, c, in)
	c.become(core.StateReady, "")
	return s.serve(c.listener, tlsConfig)
}

// close ends what outlives the server: webhook calls and their connections.
func (c *Carrier) close() {
	c.become(core.StateStopped, "")
	c.sends.end()
	for _, hook := range c.hooks {
		hook.client.CloseIdleConnections()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		_ = c.listener.Close() // Closed by the server already, where it came so far.
	}
}

// Links names the webhooks that are links of their own.
func (c *Carrier) Links() []core.Link {
	var links []core.Link
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Webhooks)) {
		hook := c.cfg.Webhooks[name]
		if hook.Peers == nil {
			links = append(links, core.Link{Name: name, Scope: hook.Scope})
		}
	}
	return links
}

// Pins reserves the peer ids that tokens name without a pattern.
func (c *Carrier) Pins() []core.Pin {
	var pins []core.Pin
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Tokens)) {
		token := c.cfg.Tokens[name]
		for _, peer := range exactPeers(token.Scope) {
			pins = append(pins, core.Pin{Workspaces: token.Workspaces, Peer: peer, Principal: name})
		}
	}
	return pins
}

// Limits implements core.Carrier. One call at a time keeps the order of an
// endpoint's deliveries.
func (c *Carrier) Limits() core.Limits {
	return core.Limits{
		InFlight: 1,
		Ordered:  true,
		AckKind:  core.AckHTTP2xx,
		Guarantee: "202 and 200 say that the envelope is committed; a webhook's 2xx says that its endpoint answered, " +
			"and an inbox's cursor that its reader went on: neither says that anybody acted on the message.",
	}
}

// Status implements core.Carrier. A webhook that is down does not make the
// carrier not ready; its circuit stands in the detail.
func (c *Carrier) Status() core.Status {
	c.mu.Lock()
	st := core.Status{State: c.state, Why: c.why, LastReceive: c.lastReceive, LastSend: c.lastSend, Detail: map[string]any{}}
	if c.listener != nil {
		st.Detail["listen"] = c.listener.Addr().String()
	}
	c.mu.Unlock()
	st.Detail["streams"] = len(c.streams)
	if len(c.hooks) > 0 {
		circuits := map[string]any{}
		for name, hook := range c.hooks {
			circuits[name] = hook.circuit.view(c.host.Now())
		}
		st.Detail["webhooks"] = circuits
	}
	return st
}

func (c *Carrier) become(state core.State, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.why = state, why
}

func (c *Carrier) received() {
	now := c.host.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastReceive = now
}

func (c *Carrier) sent() {
	now := c.host.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastSend = now
}
