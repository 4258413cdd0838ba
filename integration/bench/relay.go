package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/sync/errgroup"
)

// contestant carries messages from NATS to MQTT.
type contestant struct {
	name string
	// less is true for one that stores nothing and acknowledges nothing.
	less  bool
	start func(ctx context.Context, s *site) (*process, error)
}

func (b *bench) contestants() []contestant {
	return []contestant{
		{name: "gateway", start: func(ctx context.Context, s *site) (*process, error) {
			g, err := b.startGateway(ctx, s.nats.address, s.mqtt)
			if err != nil {
				return nil, err
			}
			return g.process, nil
		}},
		{name: contestWatermill, start: b.startSelf(contestWatermill)},
		{name: contestByHand, start: b.startSelf(contestByHand)},
		{name: "nats-server's MQTT (stores nothing)", less: true},
	}
}

// startSelf starts this program as a contestant.
func (b *bench) startSelf(name string) func(context.Context, *site) (*process, error) {
	return func(ctx context.Context, s *site) (*process, error) {
		dir, err := b.scratch("contestant")
		if err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p, err := start(name, self, "-contestant", name, "-nats", s.nats.address, "-mqtt", s.mqtt, "-dir", dir)
		if err != nil {
			return nil, err
		}
		consumes := func() bool { name, err := consumerName(ctx, s.nats.js); return err == nil && name != "" }
		if err := p.await(ctx, "it consumes", startsIn, consumes); err != nil {
			p.stop()
			return nil, err
		}
		return p, nil
	}
}

// site is a pair of brokers with a subscriber at the far end.
type site struct {
	nats      *natsServer
	mosquitto *process
	mqtt      string
	far       paho.Client
	// took is told of the messages at the far end.
	took func(raw []byte)
}

func (b *bench) startSite(ctx context.Context) (*site, error) {
	s := &site{}
	var err error
	if s.nats, err = b.startNATS(ctx, "", ""); err != nil {
		return nil, err
	}
	if s.mosquitto, s.mqtt, err = b.startMosquitto(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// startLesserSite is one server that is both brokers.
func (b *bench) startLesserSite(ctx context.Context) (*site, error) {
	mqtt, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &site{mqtt: mqtt}
	if s.nats, err = b.startNATS(ctx, "", mqtt); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *site) stop() {
	if s.far != nil {
		s.far.Disconnect(100)
	}
	s.mosquitto.stop()
	s.nats.stop()
}

// subscribe listens at the far end with QoS 1.
func (s *site) subscribe() error {
	client := paho.NewClient(paho.NewClientOptions().AddBroker("tcp://" + s.mqtt).SetClientID("far-end").
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { s.took(m.Payload()) }))
	if err := done(client.Connect()); err != nil {
		return fmt.Errorf("connect the far end: %w", err)
	}
	s.far = client
	if err := done(client.Subscribe(topic, 1, nil)); err != nil {
		return fmt.Errorf("subscribe at the far end: %w", err)
	}
	return nil
}

func done(t paho.Token) error {
	if !t.WaitTimeout(startsIn) {
		return errors.New("no answer from the broker")
	}
	return t.Error()
}

// withRelay runs a contestant between the brokers.
func (b *bench) withRelay(ctx context.Context, c contestant, run func(s *site, p *process) error) error {
	startSite := b.startSite
	if c.less {
		startSite = b.startLesserSite
	}
	s, err := startSite(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	s.took = func([]byte) {}
	if err := s.subscribe(); err != nil {
		return err
	}
	var p *process
	if c.start != nil {
		if p, err = c.start(ctx, s); err != nil {
			return err
		}
		defer p.stop()
	}
	return run(s, p)
}

// load keeps the window full through the contestant and returns the rate.
func (b *bench) load(ctx context.Context, c contestant, s *site, w *window) (float64, error) {
	s.took = func(raw []byte) { w.arrive(numberOf(raw)) }
	load, stop := context.WithCancel(ctx)
	defer stop()
	var publishing errgroup.Group
	publishing.Go(func() error {
		if c.less {
			return b.publishCore(load, s.nats, w)
		}
		return b.publish(load, s.nats, w, func(int64) {})
	})
	rate := w.measure(ctx, b.warm, b.counted)
	stop()
	err := publishing.Wait()
	w.settle(ctx, settledIn)
	return rate, err
}

func (b *bench) publishCore(ctx context.Context, n *natsServer, w *window) error {
	for w.enter(ctx) {
		number, raw := b.mint.say()
		w.left(number, time.Now())
		if err := n.conn.Publish(subject, raw); err != nil {
			return err
		}
	}
	return nil
}

// measureRelays runs every contestant at every window.
func (b *bench) measureRelays(ctx context.Context) error {
	for _, c := range shuffled(b.contestants()) {
		err := b.withRelay(ctx, c, func(s *site, p *process) error {
			for _, size := range b.relayWindows {
				w := newWindow(size)
				rate, err := b.load(ctx, c, s, w)
				if err != nil {
					return err
				}
				b.results.add(relay, c.name, float64(size), perSecond, rate)
				b.results.add(relayP50, c.name, float64(size), milliseconds, w.percentile(0.5))
			}
			return b.noteMemory(c, p)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}
