package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The bounds of what is parked, and of a shutdown.
const (
	maxParked     = 10_000
	maxParkedFrom = 100
	// sendGrace is how long a stopping gateway waits for acknowledgements of what
	// it sent.
	sendGrace = 3 * time.Second
)

// Options is what a gateway is made of.
type Options struct {
	Config Config
	Store  *store.Store
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Gateway takes envelopes in from its carriers, commits each once, and sends it
// on.
type Gateway struct {
	config Config
	store  *store.Store
	log    *slog.Logger
	now    func() time.Time
	policy policy

	dir            *directory
	committer      *committer
	dispatcher     *dispatcher
	runner         *runner
	watch          *watch
	metrics        *metrics
	pins           *pins
	receiptLimiter *receiptLimiter
	discovery      *discovery
	handed         *handed

	// carriers is complete before Run.
	carriers map[string]*carrier
	order    []string
	// agents are those that the carriers host; complete before Run.
	agents []*hosted

	mu sync.Mutex
	// storeTrouble says why the store cannot write now, empty while it can.
	storeTrouble string
}

// carrier is a configured carrier with what the gateway knows of it.
type carrier struct {
	name   string
	typ    string
	impl   core.Carrier
	scopes []core.Scope
	origin *origin
}

// New makes a gateway over an open store. Carriers are added before Run.
func New(o Options) (*Gateway, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Gateway{
		config: o.Config, store: o.Store, log: o.Logger, now: o.Now,
		policy: policy{
			freshness:      o.Config.Protocol.freshness(),
			maxDeliveryAge: o.Config.Protocol.MaxDeliveryAge,
			peerID:         PeerID(o.Config.Name),
			receipts:       o.Config.Protocol.RejectionReceipts == "directed",
			maxParked:      maxParked,
			maxParkedFrom:  maxParkedFrom,
			enabled:        o.Config.Network.Enabled,
		},
		dir:            newDirectory(),
		watch:          newWatch(),
		receiptLimiter: newReceiptLimiter(),
		handed:         newHanded(),
		carriers:       map[string]*carrier{},
	}
	g.pins = &pins{own: g.policy.peerID, carriers: map[string]core.Pinner{}}
	g.metrics = newMetrics(g)
	g.committer = newCommitter(g)
	g.dispatcher = newDispatcher(g)
	g.runner = newRunner(g)
	g.discovery = newDiscovery(g)
	if err := g.committer.start(context.Background()); err != nil {
		return nil, fmt.Errorf("read the gateway's state: %w", err)
	}
	return g, nil
}

// Host is what a carrier of that name is told of the gateway.
func (g *Gateway) Host(name string) core.Host {
	return core.Host{
		Name: name, InstanceID: g.store.InstanceID(), MaxEnvelopeBytes: g.config.Protocol.MaxEnvelopeBytes,
		Logger: g.log.With("carrier", name), Now: g.now,
	}
}

// AddCarrier takes a carrier in under its configured name. All carriers are
// added before Run.
func (g *Gateway) AddCarrier(name, typ string, impl core.Carrier) error {
	if g.carriers[name] != nil {
		return fmt.Errorf("carrier %s is there twice", name)
	}
	c := &carrier{name: name, typ: typ, impl: impl, scopes: g.config.Scopes[name]}
	ctx := context.Background()
	err := g.store.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		row, err := tx.EnsureRecipient(ctx, core.Recipient{Carrier: name})
		if err != nil {
			return err
		}
		own := g.dir.put(row, nil)
		c.origin = &origin{name: name, row: row.ID}
		for _, link := range impl.Links() {
			target := own
			if link.Name == "" {
				c.origin.link = true
			} else {
				if row, err = tx.EnsureRecipient(ctx, core.Recipient{Carrier: name, Link: link.Name}); err != nil {
					return err
				}
				target = g.dir.put(row, nil)
			}
			g.dir.addLink(target, c.scopes, link.Scope)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("register carrier %s: %w", name, err)
	}
	g.carriers[name] = c
	g.order = append(g.order, name)
	g.discovery.add(c)
	if p, ok := impl.(core.Pinner); ok {
		g.pins.carriers[name] = p
	}
	if w, ok := impl.(core.Waker); ok {
		return g.addAgents(c, w)
	}
	return nil
}

// Run serves until ctx ends, then stops in an order that loses nothing: what was
// taken is committed and acknowledged, what was sent gets a moment for its
// acknowledgement, and the rest stays in the outbox.
func (g *Gateway) Run(ctx context.Context) error {
	rows, err := g.store.Recipients(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("read the recipients: %w", err)
	}
	counts := map[int64]int64{}
	for _, row := range rows {
		g.dir.put(row, g.scopesOf(row.Carrier))
		counts[row.ID] = row.Pending
	}
	g.dir.recount(counts)
	if err := g.detachForgotten(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("detach what is not hosted any more: %w", err)
	}
	if err := g.enrol(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("enrol the agents: %w", err)
	}

	quitCommitter := make(chan struct{})
	var committing sync.WaitGroup
	committing.Go(func() { g.committer.run(quitCommitter) })

	if err := g.recoverWakes(context.WithoutCancel(ctx)); err != nil {
		close(quitCommitter)
		committing.Wait()
		return err
	}
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	g.dispatcher.start(sending)

	receiving, stopReceiving := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReceiving()
	carriers, carriersCtx := errgroup.WithContext(receiving)
	for _, name := range g.order {
		c := g.carriers[name]
		carriers.Go(func() error {
			if err := c.impl.Run(carriersCtx, &intake{gateway: g, carrier: c}); err != nil {
				return fmt.Errorf("carrier %s: %w", c.name, err)
			}
			return nil
		})
	}
	upkeep, stopUpkeep := context.WithCancel(ctx)
	defer stopUpkeep()
	var keeping sync.WaitGroup
	keeping.Go(func() { g.keepUp(upkeep) })
	keeping.Go(func() { g.discovery.run(upkeep) })
	var waking sync.WaitGroup
	waking.Go(func() { g.runner.run(upkeep, receiving) })

	select {
	case <-ctx.Done():
	case <-carriersCtx.Done():
	}
	g.log.Info("stopping: what was taken is committed first")
	g.quiesce()
	stopUpkeep()
	g.committer.stop()
	_ = g.committer.settleAll() // A store that cannot write has been logged.
	stopSending()
	if !g.dispatcher.wait(sendGrace) {
		g.log.Warn("some sends have no acknowledgement yet; they stay in the outbox")
	}
	stopReceiving()
	err = carriers.Wait()
	waking.Wait()
	g.dispatcher.running.Wait()
	keeping.Wait()
	close(quitCommitter)
	committing.Wait()
	return err
}

func (g *Gateway) scopesOf(carrierName string) []core.Scope {
	return g.config.Scopes[carrierName]
}

// origins finds the origin of a carrier by name. One that is no longer
// configured locates nobody and is no link.
func (g *Gateway) origins(name string) *origin {
	if c := g.carriers[name]; c != nil {
		return c.origin
	}
	return &origin{name: name}
}

// deliveryToken is the delivery's own id: the same on each attempt, unguessable,
// and different for every message, so that on a carrier that drops repeats by
// id only our own retry can be taken for one.
func (g *Gateway) deliveryToken(id core.DeliveryID, env *core.Envelope) string {
	mac := hmac.New(sha256.New, g.store.Secret())
	fmt.Fprintf(mac, "delivery\x00%s\x00%s\x00%s", id, env.WorkspaceID, env.ID)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (g *Gateway) setStoreTrouble(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.storeTrouble = why
}

// StoreTrouble says why nothing can be committed now, empty while all is well.
func (g *Gateway) StoreTrouble() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.storeTrouble
}
