package mqtt

import (
	"context"
	"time"

	"github.com/compozy-gateway/gateway/core"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// deviceWindow is how many messages of one device may wait to be answered.
	deviceWindow = 256
	// maxRetryPause bounds how long a device is kept waiting before its connection
	// is ended so that it sends again.
	maxRetryPause = 5 * time.Second
)

// device is one connection of a client that publishes to the gateway. It answers
// in the order of arrival, from its own goroutine.
type device struct {
	broker *Broker
	client *mochi.Client
	// hand publishes in the device's name, without going through intercept.
	hand  *mochi.Client
	queue chan published
}

// published is one message of a device.
type published struct {
	packet packets.Packet
	// answer is the QoS that decides which acknowledgement the device waits for;
	// 0 means none.
	answer  byte
	at      *reception
	settled chan core.Settlement
}

// deviceOf finds or begins the device of a client.
func (b *Broker) deviceOf(cl *mochi.Client) *device {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.devices[cl]; d != nil {
		return d
	}
	d := &device{
		broker: b,
		client: cl,
		hand:   b.server.NewClient(nil, mochi.LocalListener, cl.ID, true),
		queue:  make(chan published, deviceWindow),
	}
	d.hand.Properties.ProtocolVersion = cl.Properties.ProtocolVersion
	b.devices[cl] = d
	b.working.Go(d.run)
	return d
}

// forget ends the device of a client whose connection has ended. What it sent
// before is still settled and shown to subscribers.
func (b *Broker) forget(cl *mochi.Client) {
	b.mu.Lock()
	d := b.devices[cl]
	delete(b.devices, cl)
	b.mu.Unlock()
	if d != nil {
		close(d.queue)
	}
}

// take offers one message. It fails when nothing of it was kept.
func (d *device) take(r *route, at location, p published) error {
	p.at = r.reception()
	if !p.at.enter() {
		return errNoCarrier
	}
	p.at.received()
	p.settled = make(chan core.Settlement, 1)
	in := core.Inbound{
		Payload:     p.packet.Payload,
		Arrival:     at.arrival,
		Address:     at.address,
		BadAddress:  at.bad,
		Redelivered: p.packet.FixedHeader.Dup,
	}.Bounded(p.at.largest)
	// Of a message that is too large nothing is shown, so that nothing need wait
	// for its answer in memory.
	p.packet.Payload = in.Payload
	err := p.at.intake.Offer(p.at.ctx, in, func(s core.Settlement) {
		select {
		case p.settled <- s:
		default: // a second settlement would break the port's promise
		}
	})
	if err != nil {
		p.at.open.Done()
		return err
	}
	select {
	case d.queue <- p:
	case <-d.broker.ctx.Done():
		p.at.open.Done()
	}
	return nil
}

func (d *device) run() {
	for p := range d.queue {
		d.finish(p, d.settlement(p))
		p.at.open.Done()
	}
}

// settlement waits for what became of the message. It is the zero settlement,
// which acknowledges nothing, when the carrier or the broker stops before.
func (d *device) settlement(p published) core.Settlement {
	select {
	case s := <-p.settled:
		return s
	case <-p.at.over:
	case <-d.broker.ctx.Done():
	}
	select {
	case s := <-p.settled:
		return s
	default:
		return core.Settlement{}
	}
}

// finish does what the broker would have done at once: show the message to its
// subscribers and answer the device.
func (d *device) finish(p published, s core.Settlement) {
	switch s.Verdict {
	case core.VerdictCommitted:
		if shown(p, s) {
			d.show(p.packet)
		}
		d.answer(p, packets.CodeSuccess, "")
	case core.VerdictRejected:
		d.answer(p, packets.ErrImplementationSpecificError, reasonOf(s))
	default:
		pause, cancel := context.WithTimeout(p.at.ctx, min(s.RetryAfter, maxRetryPause))
		<-pause.Done()
		cancel()
		d.client.Stop(errNotTaken)
	}
}

// shown reports whether subscribers are to see the message. An echo they have
// seen. A duplicate they may have missed when the device marks it as its own
// redelivery; any other duplicate could be going round in a circle of bridges.
func shown(p published, s core.Settlement) bool {
	return !s.Echo && (!s.Duplicate || p.packet.FixedHeader.Dup)
}

// show gives the message to the broker's subscribers. It is never retained: a
// message that is shown again later would be a replay.
func (d *device) show(pk packets.Packet) {
	pk.FixedHeader.Dup = false
	pk.FixedHeader.Retain = false
	pk.Properties.TopicAlias = 0
	pk.Properties.TopicAliasFlag = false
	if err := d.broker.server.InjectPacket(d.hand, pk); err != nil {
		d.broker.log.Warn("a committed message was not shown to the embedded broker's subscribers", "reason", err.Error())
	}
}

// answer acknowledges the message to the device. With QoS 2 that is the PUBREC;
// the broker itself handles the rest of the exchange, as long as it finds the
// PUBREC among what is in flight. An answer that cannot be written is not missed:
// the device sends again.
func (d *device) answer(p published, code packets.Code, reason string) {
	ack := packets.Packet{
		PacketID:   p.packet.PacketID,
		ReasonCode: code.Code,
		Created:    time.Now().Unix(),
	}
	ack.Properties.ReasonString = reason
	ends := code.Code >= packets.ErrUnspecifiedError.Code && d.client.Properties.ProtocolVersion == 5
	switch p.answer {
	case 1:
		ack.FixedHeader.Type = packets.Puback
	case 2:
		ack.FixedHeader.Type = packets.Pubrec
		if !ends {
			d.client.State.Inflight.Set(ack)
			d.client.State.Inflight.DecreaseReceiveQuota()
		}
	default:
		return
	}
	if err := d.client.WritePacket(ack); err != nil {
		d.broker.log.Debug("a device was not answered", "reason", err.Error())
	}
}

func reasonOf(s core.Settlement) string {
	if s.Rejection == nil {
		return ""
	}
	return s.Rejection.Error()
}
