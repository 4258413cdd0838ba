package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/compozy-gateway/gateway/core"
)

// discoveryQueue bounds the greets and answers that wait to be offered. Discovery
// is a courtesy: what does not fit is counted and logged, and asking again
// helps.
const discoveryQueue = 1024

// discovery speaks for the hosted peers that have a card: a greet when the peer
// comes, an answer when it is asked. What it says goes through the same
// acceptance as everything else, as an arrival from the peer's own carrier.
type discovery struct {
	gateway *Gateway
	log     *slog.Logger
	// peers are constant while the gateway runs.
	peers map[channelKey][]hostedPeer
	queue chan errand
	// loud keeps a flood of requests out of the log.
	loud rate.Sometimes
}

type hostedPeer struct {
	core.HostedPeer
	carrier *carrier
}

// errand is something to say for a peer: an answer, or without a request a
// greet.
type errand struct {
	peer    hostedPeer
	request *core.Envelope
}

func newDiscovery(g *Gateway) *discovery {
	return &discovery{
		gateway: g, log: g.log, peers: map[channelKey][]hostedPeer{}, queue: make(chan errand, discoveryQueue),
		loud: rate.Sometimes{Interval: time.Minute},
	}
}

// add takes in the cards of a carrier.
func (d *discovery) add(c *carrier) {
	host, ok := c.impl.(core.DiscoveryHost)
	if !ok {
		return
	}
	for _, peer := range host.Cards() {
		key := channelKey{peer.WorkspaceID, peer.Channel}
		d.peers[key] = append(d.peers[key], hostedPeer{HostedPeer: peer, carrier: c})
	}
}

// came announces a peer that has just been attached.
func (d *discovery) came(c *carrier, at core.Attachment) {
	for _, peer := range d.peers[channelKey{at.WorkspaceID, at.Channel}] {
		if peer.carrier == c && peer.Peer == at.Peer {
			d.enqueue(errand{peer: peer})
		}
	}
}

// heard looks at a message that was just accepted: whom does it ask?
func (d *discovery) heard(env *core.Envelope) {
	if env.Kind != core.KindWhois {
		return
	}
	for _, peer := range d.peers[channelKey{env.WorkspaceID, env.Channel}] {
		if d.gateway.dir.attachedPeer(env.WorkspaceID, env.Channel, peer.Peer) != nil && peer.Asked(env) {
			d.enqueue(errand{peer: peer, request: env})
		}
	}
}

// enqueue never blocks: it is called right after a commit.
func (d *discovery) enqueue(e errand) {
	select {
	case d.queue <- e:
	default:
		d.gateway.metrics.discoveryDropped.Inc()
		d.loud.Do(func() {
			d.log.Warn("too much discovery at once; greets and answers are left out, and counted in gateway_discovery_dropped_total", "peer", e.peer.Peer)
		})
	}
}

func (d *discovery) run(ctx context.Context) {
	for {
		select {
		case e := <-d.queue:
			if err := d.say(ctx, e); err != nil && ctx.Err() == nil {
				d.log.Warn("cannot speak for a hosted peer", "peer", e.peer.Peer, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (d *discovery) say(ctx context.Context, e errand) error {
	now := d.gateway.now()
	var payload []byte
	var err error
	if e.request == nil {
		payload, err = e.peer.Greet("greet-"+rand.Text(), now)
	} else {
		payload, err = e.peer.Answer(e.request, now)
	}
	if err != nil {
		return fmt.Errorf("build the envelope: %w", err)
	}
	c := e.peer.carrier
	in := &intake{gateway: d.gateway, carrier: c}
	frame := core.Inbound{
		Payload: payload, Arrival: core.ArrivalIngress,
		Principal: &core.Principal{Name: e.peer.Principal, Scope: core.Scope{Peers: []string{e.peer.Peer}}},
	}
	return in.Offer(ctx, frame, func(s core.Settlement) {
		if s.Verdict == core.VerdictRejected {
			d.log.Warn("what was said for a hosted peer is refused", "peer", e.peer.Peer, "reason", s.Rejection.Reason, "detail", s.Rejection.Detail)
		}
	})
}
