package gateway

import (
	"sync"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The bounds of what a destination is handed in memory before it has to read
// the outbox.
const (
	handoffRows  = 4096
	handoffBytes = 4 << 20
)

// delivery is a pending delivery with its message.
type delivery struct {
	store.Pending
	env *core.Envelope
}

// handoff hands deliveries that were just committed to their destination, which
// then need not read them from the outbox. It may always be empty: the outbox
// holds everything, and is read again whenever something was not handed over.
//
// While current, it holds every delivery that was committed since the outbox was
// last read to its end, in the order of their positions.
type handoff struct {
	mu      sync.Mutex
	current bool
	// missed is true when something was committed that it does not hold.
	missed bool
	rows   []delivery
	bytes  int
}

// add hands over all that one commit gave the recipient. The envelopes' bytes
// count although destinations share them.
func (h *handoff) add(rows []delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.current {
		h.missed = true
		return
	}
	for _, r := range rows {
		h.bytes += len(r.Payload)
	}
	if len(h.rows)+len(rows) > handoffRows || h.bytes > handoffBytes {
		h.drop()
		h.missed = true
		return
	}
	h.rows = append(h.rows, rows...)
}

// skip notes that the outbox changed otherwise.
func (h *handoff) skip() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
	h.missed = true
}

// reading notes that the outbox is about to be read.
func (h *handoff) reading() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
	h.missed = false
}

// ended notes that the read which began last found the end of the outbox. It
// reports whether nothing was committed since then, so that what is committed
// from now on is handed over.
func (h *handoff) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = !h.missed
	return h.current
}

// take gives what was handed over. current is false when the outbox has to be
// read instead.
func (h *handoff) take() (rows []delivery, current bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows, h.rows, h.bytes = h.rows, nil, 0
	return rows, h.current
}

func (h *handoff) drop() { h.current, h.rows, h.bytes = false, nil, 0 }
