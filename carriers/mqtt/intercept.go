package mqtt

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/compozy-gateway/gateway/core"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Why the embedded broker ends a device's connection.
var (
	errNoCarrier = errors.New("no carrier takes messages of the gateway at the moment")
	errNotTaken  = errors.New("the gateway could not take the message")
)

// publisherID is the client id of one of the gateway's own publishers.
func (b *Broker) publisherID(name string) string { return name + "-" + b.secret }

// own reports whether the client is one of the gateway's own: its publishers, or
// the hand by which it shows committed messages to subscribers.
func (b *Broker) own(cl *mochi.Client) bool {
	return cl.Net.Inline || strings.HasSuffix(cl.ID, b.secret)
}

// intercept stands between devices and the broker. What a device publishes on
// an address of the gateway goes to the carrier; the broker itself leaves it
// alone, and device does the rest once the gateway has committed it.
type intercept struct {
	mochi.HookBase
	broker *Broker
}

// ID names the hook in the broker's log.
func (*intercept) ID() string { return "gateway" }

// Provides tells the broker which of the methods are meant.
func (*intercept) Provides(method byte) bool {
	switch method {
	case mochi.OnConnect, mochi.OnPublish, mochi.OnDisconnect:
		return true
	}
	return false
}

// OnConnect takes a will on our addresses out of the broker's hands, which would
// show it to subscribers without asking. OnDisconnect publishes it.
func (i *intercept) OnConnect(cl *mochi.Client, pk packets.Packet) error {
	if pk.Connect.WillFlag && !i.broker.own(cl) {
		if _, _, ours := i.broker.routeOf(pk.Connect.WillTopic); ours {
			atomic.StoreUint32(&cl.Properties.Will.Flag, 0)
		}
	}
	return nil
}

// OnPublish is called on the device's own goroutine, before the broker has done
// anything about the packet. It blocks while the gateway is full; the device then
// meets back-pressure.
func (i *intercept) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if i.broker.own(cl) {
		return pk, nil
	}
	route, at, ours := i.broker.routeOf(pk.TopicName)
	if !ours {
		return pk, nil
	}
	if err := i.broker.deviceOf(cl).take(route, at, published{packet: pk, answer: pk.FixedHeader.Qos}); err != nil {
		cl.Stop(err)
	}
	return pk, packets.ErrRejectPacket
}

// OnDisconnect is called on the device's own goroutine when its connection has
// ended; err is nil when the device said goodbye.
func (i *intercept) OnDisconnect(cl *mochi.Client, err error, _ bool) {
	will := cl.Properties.Will
	if err != nil && will.TopicName != "" && atomic.LoadUint32(&cl.Properties.Will.Flag) == 0 {
		i.publishWill(cl, will)
	}
	i.broker.forget(cl)
}

func (i *intercept) publishWill(cl *mochi.Client, will mochi.Will) {
	route, at, ours := i.broker.routeOf(will.TopicName)
	if !ours || i.broker.own(cl) {
		return
	}
	pk := packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: will.Qos},
		TopicName:   will.TopicName,
		Payload:     will.Payload,
	}
	if will.Qos > 0 {
		pk.PacketID = 1 // the broker wants one; it is never sent
	}
	pk.Properties.User = will.User
	if err := i.broker.deviceOf(cl).take(route, at, published{packet: pk}); err != nil {
		i.broker.log.Warn("a device's will was not taken", "reason", err.Error())
	}
}

// reception is a running carrier as the broker sees it.
type reception struct {
	intake   core.Intake
	received func()
	// largest is the largest envelope that the gateway takes, in bytes.
	largest int
	// ctx ends when nothing more is to be offered.
	ctx    context.Context
	cancel context.CancelFunc
	// unbind cuts the tie between ctx and the broker's end.
	unbind func() bool
	// over is closed when settlements are not waited for any more.
	over chan struct{}
	// open counts what has been offered and not answered.
	open sync.WaitGroup
	mu   sync.RWMutex
	shut bool
}

func newReception(ctx context.Context, b *Broker, in core.Intake, received func()) *reception {
	r := &reception{intake: in, received: received, over: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.unbind = context.AfterFunc(b.ctx, r.cancel)
	return r
}

// enter registers one more frame, unless the carrier is stopping.
func (r *reception) enter() bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.shut {
		return false
	}
	r.open.Add(1)
	return true
}

// close takes nothing more, and gives what is under way a moment.
func (r *reception) close() {
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	r.cancel()
	r.unbind()
	answered := make(chan struct{})
	go func() {
		r.open.Wait()
		close(answered)
	}()
	timeout, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	select {
	case <-answered:
	case <-timeout.Done():
	}
	close(r.over)
	<-answered
}
