package mqtt

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
	paho "github.com/eclipse/paho.mqtt.golang"
)

// publication is one message on its way to the broker.
type publication struct {
	ctx      context.Context
	done     func(core.Ack, error)
	topic    string
	payload  []byte
	deadline time.Time
	// state decides whether the publication is written or given up.
	state atomic.Int32
	// token gets the library's token once the message is written, or nil when its
	// deadline had passed before.
	token chan paho.Token
}

// The states of a publication. Only one side can take it out of the first.
const (
	queued int32 = iota
	written
	abandoned
)

// abandon gives the publication up. It reports false when it may have been
// written.
func (pub *publication) abandon() bool { return pub.state.CompareAndSwap(queued, abandoned) }

// await waits for the outcome of a publication.
func (p *publisher) await(o *outlet, pub *publication) (core.Ack, error) {
	token, err := p.awaitWrite(o, pub)
	if err != nil {
		return core.Ack{}, err
	}
	if token == nil {
		return core.Ack{}, sendError(core.CodeExpired, "the deadline passed before the write to "+p.place, nil)
	}
	select {
	case <-token.Done():
	case <-o.conn.ctx.Done():
		awaitLastWord(pub.ctx, token)
	case <-pub.ctx.Done():
	}
	return p.outcome(o, pub, token)
}

// awaitWrite waits until the publication has been handed to the library.
func (p *publisher) awaitWrite(o *outlet, pub *publication) (paho.Token, error) {
	select {
	case token := <-pub.token:
		return token, nil
	case <-o.conn.ctx.Done():
		if pub.abandon() {
			return nil, p.unavailable(o.conn.lost())
		}
	case <-pub.ctx.Done():
		if pub.abandon() {
			return nil, p.unsent(pub.ctx.Err())
		}
		return nil, p.unknown(pub.ctx.Err())
	}
	// The library is about to have it in hand, or is held up (handoffTimeout).
	timeout := time.NewTimer(handover)
	defer timeout.Stop()
	select {
	case token := <-pub.token:
		return token, nil
	case <-pub.ctx.Done():
	case <-timeout.C:
	}
	return nil, p.unknown(o.conn.lost())
}

// awaitLastWord waits for the library to clear up after a lost connection: it
// completes every token, also those of publishes that were acknowledged just
// before the loss.
func awaitLastWord(ctx context.Context, token paho.Token) {
	timeout := time.NewTimer(lastWord)
	defer timeout.Stop()
	select {
	case <-token.Done():
	case <-ctx.Done():
	case <-timeout.C:
	}
}

// outcome reads the token. Without error it stands for the PUBACK and nothing
// else: the client never reconnects and its session is clean.
func (p *publisher) outcome(o *outlet, pub *publication, token paho.Token) (core.Ack, error) {
	select {
	case <-token.Done():
	default:
		if o.conn.ctx.Err() == nil && o.unacknowledged.Add(1) > int64(p.window) {
			o.conn.drop(errNoPubAcks)
		}
		if lost := o.conn.lost(); lost != nil {
			return core.Ack{}, p.unknown(lost)
		}
		return core.Ack{}, p.unknown(pub.ctx.Err())
	}
	switch err := token.Error(); {
	case err == nil:
		at := p.now()
		p.lastSend.set(at)
		return core.Ack{Kind: core.AckMQTTPubAck, At: at, Detail: "packet " + packetID(token)}, nil
	case errors.Is(err, paho.ErrNotConnected):
		return core.Ack{}, p.unavailable(o.conn.lost())
	default:
		return core.Ack{}, p.unknown(err)
	}
}

func packetID(t paho.Token) string {
	if published, ok := t.(*paho.PublishToken); ok {
		return strconv.Itoa(int(published.MessageID()))
	}
	return "unknown"
}

// unavailable: the message was not written, and no other could be.
func (p *publisher) unavailable(err error) error {
	detail := "no connection to " + p.place
	if err != nil {
		detail += ": " + describe(err)
	}
	return sendError(core.CodeUnavailable, detail, err)
}

// unsent: the message had to wait too long for its turn.
func (p *publisher) unsent(err error) error {
	return sendError(core.CodeTimeout, "the message could not be written to "+p.place+" in time", err)
}

// unknown: the message was written, and the broker may have it or not.
func (p *publisher) unknown(err error) error {
	return sendError(core.CodeTimeout, p.place+" has not acknowledged the message", err)
}
