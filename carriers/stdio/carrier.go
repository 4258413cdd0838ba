package stdio

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// lineSlack is what a line may be longer than the largest envelope, for the
	// white space around it.
	lineSlack = 64 << 10
	// explicitInFlight is how many deliveries may wait for an agent's own
	// acknowledgement.
	explicitInFlight = 16
)

// seat names a peer: no two agents have the same.
type seat struct{ workspace, peer string }

// Carrier runs agents and speaks with them by lines. It implements core.Carrier,
// core.Pinner, core.Waker and core.Quiescer.
type Carrier struct {
	host core.Host
	// live and local are the agents of either mode, in the order of their names.
	live   []*agent
	local  []*agent
	byPeer map[seat]*agent
	limits core.Limits
	curfew *curfew

	mu    sync.Mutex
	state core.State
}

var (
	_ core.Carrier  = (*Carrier)(nil)
	_ core.Pinner   = (*Carrier)(nil)
	_ core.Waker    = (*Carrier)(nil)
	_ core.Quiescer = (*Carrier)(nil)
)

// New builds a carrier of a configuration that Validate has found no fault
// with. Nothing is started before Run. The program must call GuardMain first of
// all.
func New(cfg Config, host core.Host) (*Carrier, error) {
	if problems := cfg.ValidateMaxLine("carriers."+host.Name, host.MaxEnvelopeBytes); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = host.MaxEnvelopeBytes + lineSlack
	}
	c := &Carrier{host: host, byPeer: map[seat]*agent{}, curfew: newCurfew(), state: core.StateStarting}
	for _, name := range sortedKeys(cfg.Agents) {
		a := newAgent(name, cfg, host, rand.Float64, c.curfew)
		if a.cfg.Participation.Mode != ModeLive {
			a.state = agentLocal
			c.local = append(c.local, a)
			continue
		}
		c.live = append(c.live, a)
		c.byPeer[seat{a.cfg.Workspace, a.cfg.PeerID}] = a
	}
	c.limits = limitsOf(c.live)
	return c, nil
}

// Run implements core.Carrier: it runs the live agents until ctx ends. It fails
// only in a program that does not call GuardMain.
func (c *Carrier) Run(ctx context.Context, in core.Intake) error {
	if os.Getenv(guardEnv) != "" {
		return fmt.Errorf("run the agents of carrier %q: %w", c.host.Name, errNoGuardMain)
	}
	c.enter(core.StateReady)
	defer c.enter(core.StateStopped)
	var parts sync.WaitGroup
	for _, a := range c.local {
		parts.Go(func() { a.detach(ctx, in) })
	}
	for _, a := range c.live {
		parts.Go(func() {
			if a.cfg.Launch == LaunchWake {
				a.standBy(ctx, in)
			} else {
				a.supervise(ctx, in)
			}
			a.stopped()
		})
	}
	<-ctx.Done()
	parts.Wait()
	return nil
}

// Quiesce implements core.Quiescer: no agent is started any more.
func (c *Carrier) Quiesce() { c.curfew.ring() }

// Links implements core.Carrier. Agents are attached peers, so there are none.
func (c *Carrier) Links() []core.Link { return nil }

// Limits implements core.Carrier.
func (c *Carrier) Limits() core.Limits { return c.limits }

// Pins implements core.Pinner: an agent's peer id is for that agent alone.
func (c *Carrier) Pins() []core.Pin {
	pins := make([]core.Pin, 0, len(c.live))
	for _, a := range c.live {
		pins = append(pins, core.Pin{Workspaces: []string{a.cfg.Workspace}, Peer: a.cfg.PeerID, Principal: a.name})
	}
	return pins
}

// Hosted implements core.Hoster: the live agents.
func (c *Carrier) Hosted() []core.Attachment {
	hosted := make([]core.Attachment, 0, len(c.live))
	for _, a := range c.live {
		hosted = append(hosted, a.attachment())
	}
	return hosted
}

// limitsOf gives the limits that hold for all agents: the acknowledgement is the
// weakest of theirs.
func limitsOf(live []*agent) core.Limits {
	l := core.Limits{
		InFlight: 1,
		Ordered:  true,
		AckKind:  core.AckStdioWrite,
		Guarantee: "stdio.write says that the line is in the agent's pipe, not that the agent has read it; " +
			"stdio.ack is the agent's own word that it has taken the message",
	}
	explicit := 0
	for _, a := range live {
		if a.cfg.Ack == AckExplicit {
			explicit++
		}
	}
	if explicit > 0 {
		l.InFlight = explicitInFlight
	}
	if explicit > 0 && explicit == len(live) {
		l.AckKind = core.AckStdioAck
	}
	return l
}

func (c *Carrier) enter(s core.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

// phase is the state of the carrier as a whole, its agents left aside.
func (c *Carrier) phase() core.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}
