package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/compozy-gateway/gateway/core"
	"golang.org/x/sync/semaphore"
)

// Carrier joins the gateway to one MQTT broker.
type Carrier struct {
	cfg       Config
	host      core.Host
	publisher *publisher
	// subscriber is nil on the embedded broker, and route is nil elsewhere.
	subscriber *subscriber
	broker     *Broker
	route      *route
	// maxPayload is the configured limit, or the embedded broker's; 0 is none.
	maxPayload int

	phase       atomic.Int32
	receiving   linkState
	sending     linkState
	lastReceive instant
	lastSend    instant
	dropped     atomic.Uint64
}

var _ core.Carrier = (*Carrier)(nil)

// phase is where a carrier is in its life.
type phase int32

const (
	phaseNew phase = iota
	phaseRunning
	phaseStopped
)

// Option changes how a carrier is built.
type Option func(*Carrier)

// WithBroker puts the carrier on the embedded broker. The configured URL then
// does not count.
func WithBroker(b *Broker) Option { return func(c *Carrier) { c.broker = b } }

// New builds a carrier from a configuration that Validate has nothing to say
// against. It fails when a TLS file cannot be used, or when another carrier on
// the embedded broker has the same topic prefix.
func New(cfg Config, host core.Host, opts ...Option) (*Carrier, error) {
	c := &Carrier{cfg: cfg, host: host, maxPayload: cfg.MaxPayload}
	for _, o := range opts {
		o(c)
	}
	d, login, err := c.endpoint()
	if err != nil {
		return nil, fmt.Errorf("carriers.%s: %w", host.Name, err)
	}
	name := cfg.ClientIDPrefix + "-" + host.InstanceID + "-" + host.Name
	c.publisher = &publisher{
		link:     c.link("sending", identity{clientID: name + "-out", clean: true, keepalive: cfg.Keepalive, login: login}, &c.sending),
		dialer:   d,
		window:   cfg.InFlight,
		now:      host.Now,
		lastSend: &c.lastSend,
		place:    d.url.Host,
	}
	if c.broker != nil {
		if room := c.broker.maxPacket - packetOverhead; c.maxPayload == 0 || c.maxPayload > room {
			c.maxPayload = room
		}
		c.publisher.link.id.clientID = c.broker.publisherID(name)
		if c.route, err = c.broker.reserve(cfg.TopicPrefix); err != nil {
			return nil, fmt.Errorf("carriers.%s.topic_prefix: %w", host.Name, err)
		}
		return c, nil
	}
	c.subscriber = &subscriber{
		link:        c.link("receiving", identity{clientID: name + "-in", keepalive: cfg.Keepalive, login: login}, &c.receiving),
		dialer:      d,
		prefix:      cfg.TopicPrefix,
		filters:     filters(cfg.TopicPrefix),
		largest:     host.MaxEnvelopeBytes,
		answer:      cfg.ConnectTimeout,
		again:       cfg.ReconnectMax,
		log:         host.Logger,
		now:         host.Now,
		lastReceive: &c.lastReceive,
		dropped:     &c.dropped,
		queue:       make(chan frame, cfg.ReceiveQueue),
		budget:      semaphore.NewWeighted(receiveBudget),
	}
	return c, nil
}

func (c *Carrier) link(name string, id identity, state *linkState) *link {
	id.shown = id.clientID
	return &link{
		id: id, max: c.cfg.ReconnectMax, log: c.host.Logger.With("link", name),
		random: rand.Float64, state: state,
	}
}

// endpoint is where to connect to, and with which credentials.
func (c *Carrier) endpoint() (*dialer, credentials, error) {
	if c.broker != nil {
		u, err := url.Parse(c.broker.URL())
		if err != nil {
			return nil, nil, fmt.Errorf("the embedded broker's address: %w", err)
		}
		anonymous := func() (string, string, error) { return "", "", nil }
		return &dialer{url: u, timeout: c.cfg.ConnectTimeout}, anonymous, nil
	}
	u, err := url.Parse(c.cfg.URL)
	if err != nil {
		return nil, nil, errors.New("the broker's URL cannot be read")
	}
	config, err := c.cfg.TLS.Client()
	if err != nil {
		return nil, nil, err
	}
	if config == nil && encrypted(u.Scheme) {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	login := c.cfg.login(u.User)
	u.User = nil
	return &dialer{url: u, tls: config, timeout: c.cfg.ConnectTimeout}, login, nil
}

// login reads the credentials when they are needed, so that a password file may
// change while the gateway runs.
func (c Config) login(user *url.Userinfo) credentials {
	return func() (string, string, error) {
		if user != nil {
			password, _ := user.Password()
			return user.Username(), password, nil
		}
		if c.PasswordFile == "" {
			return c.Username, "", nil
		}
		password, err := readPassword(c.PasswordFile)
		return c.Username, password, err
	}
}

// Run keeps both connections until ctx ends, and returns nil.
func (c *Carrier) Run(ctx context.Context, in core.Intake) error {
	c.phase.Store(int32(phaseRunning))
	var running sync.WaitGroup
	running.Go(func() { c.publisher.run(ctx) })
	if c.subscriber != nil {
		running.Go(func() { c.subscriber.run(ctx, in) })
	} else {
		running.Go(func() { c.receiveEmbedded(ctx, in) })
	}
	running.Wait()
	c.phase.Store(int32(phaseStopped))
	return nil
}

// receiveEmbedded takes what devices publish to the embedded broker.
func (c *Carrier) receiveEmbedded(ctx context.Context, in core.Intake) {
	r := newReception(ctx, c.broker, in, func() { c.lastReceive.set(c.host.Now()) })
	r.largest = c.host.MaxEnvelopeBytes
	c.route.open(r)
	c.receiving.set("")
	<-ctx.Done()
	c.receiving.set(describe(errStopping))
	c.route.open(nil)
	r.close()
}

// Links names the one destination: everybody who subscribes.
func (c *Carrier) Links() []core.Link { return []core.Link{{}} }

// Limits tells what MQTT with QoS 1 can do.
func (c *Carrier) Limits() core.Limits {
	return core.Limits{
		MaxPayload: c.maxPayload,
		InFlight:   c.cfg.InFlight,
		Redelivers: true,
		Ordered:    true,
		AckKind:    core.AckMQTTPubAck,
		Guarantee:  "A PUBACK says that the broker has the message, not that anybody has received it.",
	}
}

// place names the broker for people, without credentials.
func (c *Carrier) place() string { return c.publisher.place }
