package mqtt

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
	paho "github.com/eclipse/paho.mqtt.golang"
)

const (
	// lastWord is how long the library may take, once a connection has ended, to
	// say which publishes the broker had acknowledged before; handover, to say
	// that it has a publish in hand.
	lastWord = time.Second
	handover = 100 * time.Millisecond
	// maxPacket is the largest packet of MQTT (MQTT 3.1.1, section 2.2.3).
	maxPacket = 268435455
	// packetOverhead is more than our topics and a packet's headers take.
	packetOverhead = 4 << 10
)

// Send publishes one message with QoS 1, retain off. done gets an
// acknowledgement for the PUBACK of that packet on that connection alone. What
// was written on a connection that ended without it has the code CodeTimeout,
// for the broker may have it; what was not written, CodeUnavailable.
func (c *Carrier) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	topic, err := topicFor(c.cfg.TopicPrefix, out.Envelope.WorkspaceID, out.Envelope.Channel, out.To)
	if err != nil {
		done(core.Ack{}, sendError(core.CodeBadAddress, err.Error(), nil))
		return
	}
	size, limit := len(out.Envelope.Raw), c.maxPayload
	if limit == 0 {
		limit = maxPacket - packetOverhead
	}
	if size > limit {
		done(core.Ack{}, sendError(core.CodeTooLarge, fmt.Sprintf("%d bytes are too large for carrier %s, which takes %d", size, c.host.Name, limit), nil))
		return
	}
	c.publisher.send(&publication{
		ctx: ctx, done: done, topic: topic, payload: out.Envelope.Raw, deadline: out.Deadline,
		token: make(chan paho.Token, 1),
	})
}

// publisher sends to a broker.
type publisher struct {
	link     *link
	dialer   *dialer
	window   int
	now      func() time.Time
	lastSend *instant
	// place is the broker's name for people.
	place string

	// mu guards current, which is nil while there is no connection.
	mu      sync.RWMutex
	current *outlet
	// stragglers are calls into the library that may outlive their connection by
	// handoffTimeout.
	stragglers sync.WaitGroup
}

// outlet is the sending side of one connection.
type outlet struct {
	conn *connection
	// slots holds an entry for each publication under way; queue has room for as
	// many.
	slots chan struct{}
	queue chan *publication
	// under counts the publications whose done has not been called.
	under sync.WaitGroup
	// unacknowledged counts publications that were written and whose wait ended
	// before the broker acknowledged them.
	unacknowledged atomic.Int64
}

// run keeps a connection open until ctx ends.
func (p *publisher) run(ctx context.Context) {
	p.link.run(ctx, p.open)
	p.stragglers.Wait()
}

func (p *publisher) open(ctx context.Context) (session, error) {
	conn, err := connect(ctx, p.dialer, p.link.id, nil)
	if err != nil {
		return nil, err
	}
	o := &outlet{conn: conn, slots: make(chan struct{}, p.window), queue: make(chan *publication, p.window)}
	return func(ctx context.Context) error { return p.serve(ctx, o) }, nil
}

// serve lets Send use the connection. Before it returns, every publication of
// this connection has had its answer, so that none of a later connection can
// overtake the news.
func (p *publisher) serve(ctx context.Context, o *outlet) error {
	p.stragglers.Go(func() { p.write(o) })
	p.use(o)
	p.link.state.set("")
	select {
	case <-ctx.Done():
	case <-o.conn.ctx.Done():
	}
	p.link.down(o.conn)
	p.use(nil)
	if ctx.Err() != nil {
		o.part(ctx)
	}
	o.conn.close()
	o.under.Wait()
	return o.conn.lost()
}

func (p *publisher) use(o *outlet) {
	p.mu.Lock()
	p.current = o
	p.mu.Unlock()
}

// take registers one more publication with the current connection.
func (p *publisher) take() *outlet {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.current != nil {
		p.current.under.Add(1)
	}
	return p.current
}

// part waits a little for the acknowledgements that are still to come.
func (o *outlet) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	for range cap(o.slots) {
		select {
		case o.slots <- struct{}{}:
		case <-o.conn.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// send gives the publication its place in the order, or its error.
func (p *publisher) send(pub *publication) {
	o := p.take()
	if o == nil {
		pub.done(core.Ack{}, p.unavailable(nil))
		return
	}
	if err := p.enter(o, pub); err != nil {
		pub.done(core.Ack{}, err)
		o.under.Done()
		return
	}
	o.queue <- pub // it has as much room as there are slots
	go func() {
		defer o.under.Done()
		ack, err := p.await(o, pub)
		<-o.slots
		pub.done(ack, err)
	}()
}

// enter waits for a slot.
func (p *publisher) enter(o *outlet, pub *publication) error {
	if !o.conn.client.IsConnectionOpen() {
		return p.unavailable(o.conn.lost())
	}
	select {
	case o.slots <- struct{}{}:
		return nil
	case <-o.conn.ctx.Done():
		return p.unavailable(o.conn.lost())
	case <-pub.ctx.Done():
		return p.unsent(pub.ctx.Err())
	}
}

// write publishes what is queued, in order, until the connection ends.
func (p *publisher) write(o *outlet) {
	for {
		select {
		case pub := <-o.queue:
			if !pub.state.CompareAndSwap(queued, written) {
				continue
			}
			if !pub.deadline.IsZero() && !p.now().Before(pub.deadline) {
				pub.token <- nil
				continue
			}
			token := o.conn.client.Publish(pub.topic, 1, false, pub.payload)
			pub.token <- token
			if failed(token) {
				o.conn.drop(token.Error())
			}
			o.awaitWritten()
		case <-o.conn.ctx.Done():
			return
		}
	}
}

// awaitWritten waits until the packet has left. Given a second one meanwhile,
// the library would hold it, and when the connection ended hold the caller for
// handoffTimeout.
func (o *outlet) awaitWritten() {
	select {
	case <-o.conn.wire.Load().published:
	case <-o.conn.ctx.Done():
	}
}

// failed reports whether a publish failed before anybody could acknowledge it.
func failed(t paho.Token) bool {
	select {
	case <-t.Done():
		return t.Error() != nil
	default:
		return false
	}
}
