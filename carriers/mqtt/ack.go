package mqtt

import (
	"context"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	paho "github.com/eclipse/paho.mqtt.golang"
)

// redeliverAfter is the pause before a frame is asked for again where the
// settlement names none.
const redeliverAfter = time.Second

// acks acknowledges the frames of one connection in the order of their arrival
// (MQTT-4.6.0-2), whatever the order in which they are settled.
type acks struct {
	mu      sync.Mutex
	waiting []*pendingAck
	// changed and empty each hold at most one signal.
	changed chan struct{}
	empty   chan struct{}
}

// pendingAck is one frame that has been offered.
type pendingAck struct {
	of      *acks
	message paho.Message
	// settled and settlement are guarded by acks.mu.
	settled    bool
	settlement core.Settlement
}

func newAcks() *acks {
	return &acks{changed: make(chan struct{}, 1), empty: make(chan struct{}, 1)}
}

// expect gives the frame its place in the order.
func (a *acks) expect(m paho.Message) *pendingAck {
	p := &pendingAck{of: a, message: m}
	a.mu.Lock()
	a.waiting = append(a.waiting, p)
	a.mu.Unlock()
	return p
}

// settle records what became of the frame. It never blocks, and does nothing
// once the connection has ended.
func (p *pendingAck) settle(s core.Settlement) {
	p.of.mu.Lock()
	p.settled, p.settlement = true, s
	p.of.mu.Unlock()
	signal(p.of.changed)
}

// head is the first frame, if it has been settled, and what became of it.
func (a *acks) head() (*pendingAck, core.Settlement, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 || !a.waiting[0].settled {
		return nil, core.Settlement{}, false
	}
	return a.waiting[0], a.waiting[0].settlement, true
}

func (a *acks) pop() {
	a.mu.Lock()
	a.waiting[0] = nil
	a.waiting = a.waiting[1:]
	last := len(a.waiting) == 0
	a.mu.Unlock()
	if last {
		signal(a.empty)
	}
}

func (a *acks) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// run writes the acknowledgements until the connection ends. A frame that was
// not taken is not acknowledged; since MQTT 3.1.1 redelivers on a new connection
// only, run ends this one when it is time to get the frame again.
func (a *acks) run(conn *connection) {
	var again <-chan time.Time
	for {
		for {
			p, s, ok := a.head()
			if !ok {
				break
			}
			switch s.Verdict {
			case core.VerdictCommitted, core.VerdictRejected:
				p.message.Ack()
			default:
				if again == nil {
					again = time.After(orDefault(s.RetryAfter, redeliverAfter))
				}
			}
			a.pop()
		}
		select {
		case <-a.changed:
		case <-again:
			conn.drop(errRedeliver)
			return
		case <-conn.ctx.Done():
			return
		}
	}
}

// drain waits until every frame has been settled and acknowledged, but not
// beyond ctx or the end of the connection.
func (a *acks) drain(ctx context.Context, conn *connection) {
	for a.len() > 0 {
		select {
		case <-a.empty:
		case <-conn.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// signal leaves at most one signal in the channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
