package http

import (
	"encoding/json"
	nethttp "net/http"
	"strconv"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// maxReads bounds how often one answer reads the store.
const maxReads = 128

// getHistory gives the committed messages of a channel, oldest first.
func (s *server) getHistory(w nethttp.ResponseWriter, r *request) error {
	q, err := r.historyQuery()
	if err != nil {
		return err
	}
	want, size := q.Limit, newReadSize()
	body := []byte(`{"messages":[`)
	var next *int64
	// A read whose filter few messages pass may give none and a position to go on
	// from.
	for count, reads := 0, 0; count < want && len(body) < pageBudget && reads < maxReads; reads++ {
		q.Limit = min(want-count, size.limit)
		messages, following, err := s.history(r, q)
		if err != nil {
			return err
		}
		for i := range messages {
			if count++; count > 1 {
				body = append(body, ',')
			}
			body = appendMessage(body, &messages[i])
		}
		if next = following; next == nil {
			break
		}
		q.After = *next
		size.adapt(messages)
	}
	body = append(body, `],"next":`...)
	body = appendPosition(body, next)
	body = append(body, '}', '\n')
	return writeBody(w, nethttp.StatusOK, typeJSON, body)
}

func (s *server) history(r *request, q core.HistoryQuery) ([]core.Message, *int64, error) {
	ctx, cancel := s.reader(r)
	defer cancel()
	return s.backend.Reader.History(ctx, q)
}

func (r *request) historyQuery() (q core.HistoryQuery, err error) {
	if q.WorkspaceID, q.Channel, err = r.channel(); err != nil {
		return q, err
	}
	if q.Peer, err = r.readingPeer(q.WorkspaceID, q.Channel); err != nil {
		return q, err
	}
	if q.After, _, err = r.after(); err != nil {
		return q, err
	}
	if q.Limit, err = r.limit(); err != nil {
		return q, err
	}
	kind, err := r.optional("kind", func(v string) bool { return core.Kind(v).Valid() }, "one of greet, whois, say, capability, receipt, trace")
	if err != nil {
		return q, err
	}
	if q.ThreadID, err = r.optional("thread_id", core.ValidThreadID, core.ThreadGrammar); err != nil {
		return q, err
	}
	q.Kind, q.WorkID, q.Admin = core.Kind(kind), r.query.Get("work_id"), r.caller.admin
	return q, nil
}

// appendMessage writes a message around its envelope, whose bytes stay as they
// came: an encoder would write them anew.
func appendMessage(dst []byte, m *core.Message) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, m.Seq, 10)
	dst = append(dst, `,"committed_at":"`...)
	dst = m.CommittedAt.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","carrier":`...)
	dst = appendString(dst, m.Carrier)
	dst = append(dst, `,"envelope":`...)
	dst = append(dst, m.Envelope...)
	return append(dst, '}')
}

// appendString writes a JSON string.
func appendString(dst []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // A string can always be written.
		panic("http: encode a string: " + err.Error())
	}
	return append(dst, quoted...)
}

// appendPosition writes a position, or null.
func appendPosition(dst []byte, position *int64) []byte {
	if position == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *position, 10)
}
