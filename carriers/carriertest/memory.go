package carriertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Memory is a carrier whose far side is in the same process: Inject puts a
// frame on its wire, Sent tells what came out, and the rest of its methods make
// the far side behave badly. All methods may be called at any time, also while
// the carrier does not run: like a broker, the far side keeps its frames until
// they are settled, over cuts of the link and from one Run to the next.
type Memory struct {
	name  string
	limit core.Limits
	links []core.Link
	now   func() time.Time

	mu sync.Mutex
	// changed is closed and replaced with every change of what stands below.
	changed chan struct{}
	intake  core.Intake // nil unless Run runs
	ended   bool
	cut     bool
	stalled bool
	// connection counts the connections; what belongs to an earlier one is void.
	connection int

	wire    []*Injected // waits to be offered
	flying  []*Injected // offered in this connection and not settled
	acks    []settled   // settled and not yet told to the far side
	learnt  []Learnt
	receive time.Time

	// reports are the calls of done that are due once mu is free again.
	reports   []func()
	sides     map[core.Recipient]*side
	everybody side // what a recipient that is new starts with
	sent      []core.Outbound
	send      time.Time
}

// MemoryConfig says how a Memory differs from the default.
type MemoryConfig struct {
	// Limits default to a carrier that is ordered, redelivers, has no limit of
	// size and takes 64 sends at a time. Without Redelivers a frame that is not
	// taken is lost, as over HTTP.
	Limits core.Limits
	// Links default to one for the carrier itself, in scope of everything.
	Links []core.Link
	// Now is the clock of acknowledgements, of the status and of deadlines;
	// default time.Now.
	Now func() time.Time
}

var _ core.Carrier = (*Memory)(nil)

// NewMemory makes an in-memory carrier of that configured name.
func NewMemory(name string, cfg MemoryConfig) *Memory {
	if cfg.Limits == (core.Limits{}) {
		cfg.Limits = core.Limits{
			InFlight: 64, Redelivers: true, Ordered: true, AckKind: core.AckMQTTPubAck,
			Guarantee: "The far side, in this process, has the message.",
		}
	}
	if cfg.Links == nil {
		cfg.Links = []core.Link{{}}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Memory{
		name: name, limit: cfg.Limits, links: cfg.Links, now: cfg.Now,
		changed: make(chan struct{}), sides: map[core.Recipient]*side{},
	}
}

// Link is the recipient that stands for the carrier itself.
func (m *Memory) Link() core.Recipient { return core.Recipient{Carrier: m.name} }

// Links implements core.Carrier.
func (m *Memory) Links() []core.Link { return m.links }

// Limits implements core.Carrier.
func (m *Memory) Limits() core.Limits { return m.limit }

// Status implements core.Carrier.
func (m *Memory) Status() core.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := core.Status{LastReceive: m.receive, LastSend: m.send}
	switch {
	case m.ended:
		s.State = core.StateStopped
	case m.cut:
		s.State, s.Why = core.StateNotReady, "the link of "+m.name+" is cut"
	case m.intake == nil:
		s.State = core.StateStarting
	default:
		s.State = core.StateReady
	}
	return s
}

// Run implements core.Carrier. It may be called again once it has returned,
// which is how a test restarts a gateway.
func (m *Memory) Run(ctx context.Context, in core.Intake) error {
	m.change(func() { m.intake, m.ended = in, false })
	var acks sync.WaitGroup
	acks.Go(func() { m.writeAcks(ctx) })
	m.offerAll(ctx, in)
	acks.Wait()
	m.change(func() {
		m.intake, m.ended = nil, true
		m.disconnect()
	})
	return nil
}

// Cut takes the link down: what is not settled will come again, sends that wait
// for their acknowledgement fail, and so does every other send.
func (m *Memory) Cut() {
	m.change(func() {
		m.cut = true
		m.disconnect()
	})
}

// Restore ends a Cut.
func (m *Memory) Restore() { m.change(func() { m.cut = false }) }

// Stall makes the far side stop reading acknowledgements, or read on.
func (m *Memory) Stall(on bool) { m.change(func() { m.stalled = on }) }

// Attach attaches a peer through the running gateway, as a carrier does that
// hosts peers.
func (m *Memory) Attach(ctx context.Context, at core.Attachment) error {
	in, err := m.running()
	if err != nil {
		return err
	}
	return in.Attach(ctx, at)
}

// Detach ends an attachment.
func (m *Memory) Detach(ctx context.Context, at core.Attachment) error {
	in, err := m.running()
	if err != nil {
		return err
	}
	return in.Detach(ctx, at)
}

// Acked acknowledges a delivery later than its send.
func (m *Memory) Acked(ctx context.Context, id core.DeliveryID, ack core.Ack) error {
	in, err := m.running()
	if err != nil {
		return err
	}
	return in.Acked(ctx, id, ack)
}

func (m *Memory) running() (core.Intake, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.intake == nil {
		return nil, errors.New("memory carrier " + m.name + " does not run")
	}
	return m.intake, nil
}

// up tells whether frames and messages pass. The caller holds mu.
func (m *Memory) up() bool { return m.intake != nil && !m.cut }

// disconnect ends the connection. The caller holds mu.
func (m *Memory) disconnect() {
	m.connection++
	m.takeBack()
	for _, s := range m.sides {
		for _, o := range slices.Clone(s.open) {
			m.end(s, o, core.Ack{}, m.unavailable())
		}
	}
}

// change makes a change, wakes everybody who waits for one, and reports the
// sends that it has ended.
func (m *Memory) change(f func()) {
	m.mu.Lock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
	due := m.reports
	m.reports = nil
	m.mu.Unlock()
	for _, report := range due {
		report()
	}
}

// await waits until ok, which is called with mu held. It returns the error of
// ctx when that ends first.
func (m *Memory) await(ctx context.Context, ok func() bool) error {
	for {
		m.mu.Lock()
		met, changed := ok(), m.changed
		m.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
