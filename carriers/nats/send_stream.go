package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// statusHeader is set by a server that answers in the place of nobody.
const statusHeader = "Status"

// streamOutlet publishes into the stream. Each message has a reply subject of
// its own below one inbox, so that answers find their send whatever their order,
// and so that nothing of it outlives the connection.
type streamOutlet struct {
	*session
	inbox   string
	waiting *waiting
}

func newStreamOutlet(s *session) (*streamOutlet, error) {
	o := &streamOutlet{session: s, inbox: s.conn.NewInbox() + ".", waiting: newWaiting()}
	if _, err := s.conn.Subscribe(o.inbox+"*", o.answer); err != nil {
		return nil, fmt.Errorf("subscribe to the acknowledgements of publishes: %w", err)
	}
	return o, nil
}

func (o *streamOutlet) send(ctx context.Context, subject string, out core.Outbound, done func(core.Ack, error)) {
	if late := o.late(out); late != nil {
		done(core.Ack{}, late)
		return
	}
	id, ok := o.waiting.add(ctx, subject, done)
	if !ok {
		done(core.Ack{}, unavailable("its session is ending"))
		return
	}
	err := o.conn.PublishMsg(&natsgo.Msg{
		Subject: subject,
		Reply:   o.inbox + strconv.FormatUint(id, 36),
		Header:  natsgo.Header{jetstream.MsgIDHeader: []string{out.Token}},
		Data:    out.Envelope.Raw,
	})
	if err != nil {
		o.waiting.failed(id, func(subject string) *core.SendError {
			return publishError(err, subject, o.conn.MaxPayload())
		})
	}
}

// pubAck is a stream's answer to a publish.
type pubAck struct {
	Error     *jetstream.APIError `json:"error"`
	Stream    string              `json:"stream"`
	Sequence  uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
}

// answer takes what was sent to a reply subject. Anybody who hears a publish can
// answer it: only the configured stream counts, and any other answer leaves the
// send waiting for the true one.
func (o *streamOutlet) answer(msg *natsgo.Msg) {
	id, err := strconv.ParseUint(strings.TrimPrefix(msg.Subject, o.inbox), 36, 64)
	if err != nil {
		return
	}
	if len(msg.Data) == 0 && msg.Header.Get(statusHeader) == strconv.Itoa(http.StatusServiceUnavailable) {
		o.waiting.failed(id, func(string) *core.SendError { return unavailable(errStreamGone.Error()) })
		o.fail(fmt.Errorf("stream %s: %w", o.cfg.Stream, errStreamGone))
		return
	}
	var ack pubAck
	if err := json.Unmarshal(msg.Data, &ack); err != nil {
		o.waiting.answeredBy(id, "(unreadable)")
		return
	}
	switch {
	case ack.Stream == o.cfg.Stream && ack.Error == nil && ack.Sequence > 0:
		o.acked(id, ack)
	case ack.Error != nil && (ack.Stream == "" || ack.Stream == o.cfg.Stream):
		o.waiting.failed(id, func(subject string) *core.SendError { return pubAckError(ack.Error, subject) })
	default:
		o.log.Warn("nats carrier ignores an acknowledgement that is not the stream's", "stream", o.cfg.Stream, "answered_by", shorten(ack.Stream))
		o.waiting.answeredBy(id, ack.Stream)
	}
}

func (o *streamOutlet) acked(id uint64, ack pubAck) {
	detail := fmt.Sprintf("sequence %d", ack.Sequence)
	if ack.Duplicate {
		detail += ", stored by an earlier attempt"
	}
	now := o.host.Now()
	if o.waiting.acked(id, core.Ack{Kind: core.AckJetStreamPubAck, At: now, Detail: detail}) {
		o.status.sent(now)
	}
}

// refused ends the sends that the server does not allow, which would else wait
// in vain for their answer.
func (o *streamOutlet) refused(err error) {
	for _, id := range o.waiting.matching(func(subject string) bool { return refuses(err, subject) }) {
		o.waiting.failed(id, func(subject string) *core.SendError { return refusedError(err, subject) })
	}
}

func (o *streamOutlet) stop() <-chan struct{} { return o.waiting.gate.stop() }

func (o *streamOutlet) abort() { o.waiting.abort() }
