package http

import "github.com/compozy-gateway/gateway/core"

const (
	// minRead, firstRead, maxRead and readBytes bound one read of the store, in
	// messages and about in bytes: envelopes may be a hundred bytes or a million.
	minRead, firstRead, maxRead = 8, 16, 512
	readBytes                   = 1 << 20
)

// readSize adapts the number of messages of a read to their size.
type readSize struct{ limit int }

func newReadSize() *readSize { return &readSize{limit: firstRead} }

// adapt learns from what was read.
func (r *readSize) adapt(messages []core.Message) {
	total := 0
	for i := range messages {
		total += len(messages[i].Envelope)
	}
	r.learn(len(messages), total)
}

func (r *readSize) learn(count, bytes int) {
	if count > 0 {
		r.limit = min(max(readBytes*count/max(bytes, 1), minRead), maxRead)
	}
}
