package http

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// memory is a gateway in memory: it takes what is offered in order, knows
// duplicates, and is the backend that readers are shown.
type memory struct {
	mu   sync.Mutex
	wake chan struct{}
	// queue holds the offers that are not settled yet, in order.
	queue   []queued
	offered []core.Inbound
	// full, when set, blocks offers until it is closed.
	full chan struct{}
	// held stops settling.
	held bool
	// offerErr fails every offer, settleWith settles every frame.
	offerErr   error
	settleWith *core.Settlement
	attachErr  error

	messages  []core.Message
	known     map[string]core.Settlement
	content   map[string][32]byte
	committed chan struct{}
	oldest    int64
	reads     int

	attached map[core.Attachment]bool
	inboxes  map[seat][]core.InboxEntry
	served   map[seat]int64
	acked    map[seat]int64

	inspections map[string]*core.Inspection
	works       map[string]*core.WorkView
	threads     []core.ThreadView
	peers       []core.PeerView
	letters     []core.DeadLetter
	replayed    []core.DeliveryID
	discarded   []core.DeliveryID
	carriers    []core.CarrierView
	readErr     error
	// pins are the reserved ids: those of the carrier's tokens, and what a test
	// adds for another carrier, with a principal that is no token.
	pins []core.Pin
}

type queued struct {
	in     core.Inbound
	settle func(core.Settlement)
}

func newMemory() *memory {
	return &memory{
		wake:        make(chan struct{}, 1),
		known:       map[string]core.Settlement{},
		content:     map[string][32]byte{},
		committed:   make(chan struct{}),
		attached:    map[core.Attachment]bool{},
		inboxes:     map[seat][]core.InboxEntry{},
		served:      map[seat]int64{},
		acked:       map[seat]int64{},
		inspections: map[string]*core.Inspection{},
		works:       map[string]*core.WorkView{},
	}
}

// with changes the memory under its lock.
func (m *memory) with(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	m.poke()
}

func (m *memory) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run settles what is offered until ctx ends.
func (m *memory) run(ctx context.Context) {
	for {
		for m.settleNext() {
		}
		select {
		case <-m.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (m *memory) settleNext() bool {
	m.mu.Lock()
	if m.held || len(m.queue) == 0 {
		m.mu.Unlock()
		return false
	}
	next := m.queue[0]
	m.queue = m.queue[1:]
	st := m.accept(next.in)
	m.mu.Unlock()
	next.settle(st)
	return true
}

// accept decides as the gateway would, as far as these tests need it.
func (m *memory) accept(in core.Inbound) core.Settlement {
	if m.settleWith != nil {
		return *m.settleWith
	}
	if max(in.Size, int64(len(in.Payload))) > testMaxEnvelope {
		return refused("", &core.Rejection{Reason: core.ReasonMalformed, Detail: "too large", TooLarge: true})
	}
	e, rej := core.Parse(in.Payload)
	if rej != nil {
		return refused("", rej)
	}
	if p := in.Principal; p != nil && !p.Scope.Allows(e.WorkspaceID, e.Channel, e.From) {
		return refused(e.ID, &core.Rejection{Step: core.StepScope, Reason: core.ReasonNotTarget, Detail: "out of scope"})
	}
	key := e.WorkspaceID + "\x00" + e.ID
	if first, known := m.known[key]; known {
		if m.content[key] != e.Content {
			return refused(e.ID, &core.Rejection{Reason: core.ReasonDuplicate, Detail: "id reused with different content"})
		}
		first.Duplicate = true
		return first
	}
	seq := int64(1)
	if n := len(m.messages); n > 0 {
		seq = m.messages[n-1].Seq + 1
	}
	st := core.Settlement{Verdict: core.VerdictCommitted, ID: e.ID, Seq: seq, CommittedAt: time.Now()}
	m.known[key], m.content[key] = st, e.Content
	msg := core.Message{
		Seq: seq, CommittedAt: st.CommittedAt, Carrier: "http", Envelope: in.Payload,
		ID: e.ID, WorkspaceID: e.WorkspaceID, Channel: e.Channel,
	}
	if e.Surface == core.SurfaceDirect {
		msg.Direct = [2]string{e.From, e.To}
	}
	m.commit(msg)
	return st
}

func refused(id string, rej *core.Rejection) core.Settlement {
	return core.Settlement{Verdict: core.VerdictRejected, ID: id, Rejection: rej}
}

// commit adds messages and tells those who wait.
func (m *memory) commit(messages ...core.Message) {
	m.messages = append(m.messages, messages...)
	close(m.committed)
	m.committed = make(chan struct{})
}

// put commits a message of the channel with these bytes.
func (m *memory) put(seq int64, envelope string, direct ...string) {
	m.with(func() {
		msg := core.Message{
			Seq: seq, CommittedAt: time.Now(), Carrier: "mqtt", Envelope: []byte(envelope),
			ID: fmt.Sprint("m", seq), WorkspaceID: testWS, Channel: testCh,
		}
		copy(msg.Direct[:], direct)
		m.commit(msg)
	})
}

// enqueue puts an entry into an inbox.
func (m *memory) enqueue(peer string, position int64, envelope string) {
	m.with(func() {
		at := seat{testWS, testCh, peer}
		m.inboxes[at] = append(m.inboxes[at], core.InboxEntry{Position: position, Seq: position * 10, Envelope: []byte(envelope)})
		m.commit()
	})
}

// offers lists what was offered so far.
func (m *memory) offers() []core.Inbound {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.offered)
}

func (m *memory) isAttached(at core.Attachment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attached[at]
}

// Offer implements core.Intake.
func (m *memory) Offer(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
	m.mu.Lock()
	full, failure := m.full, m.offerErr
	m.mu.Unlock()
	if full != nil {
		select {
		case <-full:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failure != nil {
		return failure
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offered = append(m.offered, in)
	m.queue = append(m.queue, queued{in, settle})
	m.poke()
	return nil
}

// Attach implements core.Intake.
func (m *memory) Attach(_ context.Context, at core.Attachment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attachErr != nil {
		return m.attachErr
	}
	m.attached[at] = true
	return nil
}

// Detach implements core.Intake.
func (m *memory) Detach(_ context.Context, at core.Attachment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.attached, at)
	return nil
}

// Acked implements core.Intake.
func (m *memory) Acked(context.Context, core.DeliveryID, core.Ack) error { return nil }
