package nats

import (
	"context"
	"errors"
	"sync"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
)

// flushOutlet publishes without a stream: a message is sent when the server has
// answered a ping behind it. One message is under way at a time, so that a
// refusal, which stands before that answer and names no message, is this one's.
type flushOutlet struct {
	*session
	waiting  *waiting
	oneByOne sync.Mutex
}

func newFlushOutlet(s *session) *flushOutlet {
	return &flushOutlet{session: s, waiting: newWaiting()}
}

func (o *flushOutlet) send(ctx context.Context, subject string, out core.Outbound, done func(core.Ack, error)) {
	o.oneByOne.Lock()
	defer o.oneByOne.Unlock()
	if late := o.late(out); late != nil {
		done(core.Ack{}, late)
		return
	}
	id, ok := o.waiting.add(ctx, subject, done)
	if !ok {
		done(core.Ack{}, unavailable("its session is ending"))
		return
	}
	before := o.conn.LastError()
	if err := o.conn.Publish(subject, out.Envelope.Raw); err != nil {
		o.waiting.failed(id, func(subject string) *core.SendError {
			return publishError(err, subject, o.conn.MaxPayload())
		})
		return
	}
	bounded, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	if err := o.conn.FlushWithContext(bounded); err != nil {
		o.waiting.failed(id, func(subject string) *core.SendError { return noAnswer(err, subject, "") })
		return
	}
	//nolint:errorlint // whether it is the same occurrence, not whether it is of the same kind
	if refusal := o.conn.LastError(); refusal != before && errors.Is(refusal, natsgo.ErrPermissionViolation) {
		o.waiting.failed(id, func(subject string) *core.SendError { return refusedError(refusal, subject) })
		return
	}
	now := o.host.Now()
	if o.waiting.acked(id, core.Ack{Kind: core.AckNATSFlush, At: now, Detail: "flushed to the server"}) {
		o.status.sent(now)
	}
}

// refused has nothing to do: send looks for a refusal itself.
func (o *flushOutlet) refused(error) {}

func (o *flushOutlet) stop() <-chan struct{} { return o.waiting.gate.stop() }

func (o *flushOutlet) abort() { o.waiting.abort() }
