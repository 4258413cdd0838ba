package http

import (
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// writeAtOnce is how many bytes of events are collected for one write.
const writeAtOnce = 64 << 10

// eventStream writes server-sent events. Each write has its own deadline: a
// reader that takes nothing is an error, after which the stream must end.
type eventStream struct {
	s    *server
	w    nethttp.ResponseWriter
	rc   *nethttp.ResponseController
	buf  []byte
	beat *time.Ticker
}

// startEvents begins the answer and sends its first byte at once. stop must be
// called.
func (s *server) startEvents(w nethttp.ResponseWriter) (es *eventStream, stop func(), err error) {
	h := w.Header()
	h.Set("Content-Type", typeSSE)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(nethttp.StatusOK)
	es = &eventStream{s: s, w: w, rc: nethttp.NewResponseController(w), beat: time.NewTicker(s.cfg.Heartbeat)}
	return es, es.beat.Stop, es.comment("open")
}

// comment writes a line that readers ignore.
func (es *eventStream) comment(text string) error {
	es.buf = append(es.buf, ": "+text+"\n\n"...)
	return es.flush()
}

// position tells the reader, without an event, from where the stream goes on, so
// that one whose connection breaks before the first event misses nothing. The
// comment before it is for readers that take any other block for an event.
func (es *eventStream) position(id int64) error {
	es.buf = append(es.buf, ": position\nid: "...)
	es.buf = strconv.AppendInt(es.buf, id, 10)
	es.buf = append(es.buf, "\n\n"...)
	return es.flush()
}

// write collects an encoded event.
func (es *eventStream) write(event []byte) error {
	es.buf = append(es.buf, event...)
	if len(es.buf) < writeAtOnce {
		return nil
	}
	return es.send()
}

// flush sends everything collected, down to the socket.
func (es *eventStream) flush() error {
	if err := es.send(); err != nil {
		return err
	}
	es.s.extendWrite(es.w)
	return es.rc.Flush()
}

// flushOrBeat is flush, and keeps the connection awake where there is nothing.
func (es *eventStream) flushOrBeat() error {
	if len(es.buf) == 0 {
		select {
		case <-es.beat.C:
			return es.comment("heartbeat")
		default:
			return nil
		}
	}
	return es.flush()
}

func (es *eventStream) send() error {
	es.s.extendWrite(es.w)
	_, err := es.w.Write(es.buf)
	es.buf = es.buf[:0]
	if cap(es.buf) > 4*writeAtOnce {
		es.buf = nil
	}
	return err
}

// gap tells the reader that messages behind its position are not to be had, and
// that the stream goes on from another one.
func (es *eventStream) gap(after, goesOn int64) error {
	event := []byte("id: ")
	event = strconv.AppendInt(event, goesOn, 10)
	event = append(event, "\nevent: gap\ndata: {\"after\":"...)
	event = strconv.AppendInt(event, after, 10)
	event = append(event, ",\"continues_after\":"...)
	event = strconv.AppendInt(event, goesOn, 10)
	return es.write(append(event, "}\n\n"...))
}

// envelopeEvent encodes an envelope as one event, on one line of data.
func envelopeEvent(id int64, envelope []byte) []byte {
	event := make([]byte, 0, len(envelope)+64)
	event = append(event, "id: "...)
	event = strconv.AppendInt(event, id, 10)
	event = append(event, "\nevent: envelope\ndata: "...)
	event = append(event, core.OneLine(envelope)...)
	return append(event, "\n\n"...)
}

// resume is where the reader of a stream wants to go on. A Last-Event-ID wins
// over after=, for a reader that reconnects sends both. unknown is true for an
// id that we never gave.
func (r *request) resume() (position int64, set, unknown bool, err error) {
	if id := strings.TrimSpace(r.Header.Get("Last-Event-ID")); id != "" {
		position, err := strconv.ParseInt(id, 10, 64)
		if err != nil || position < 0 {
			return 0, true, true, nil
		}
		return position, true, false, nil
	}
	position, set, err = r.after()
	return position, set, false, err
}

// enterStream takes one of the places for streams and long polls.
func (s *server) enterStream() (leave func(), err error) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, unavailable("too many streams and polls are open", retrySoon)
	}
}
