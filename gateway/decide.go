package gateway

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// policy is what decisions depend on beside the envelope and the state.
type policy struct {
	freshness      core.FreshnessPolicy
	maxDeliveryAge time.Duration
	peerID         string
	receipts       bool
	maxParked      int
	maxParkedFrom  int
	// enabled is network.enabled.
	enabled bool
}

// offer is an inbound frame on its way to a commit.
type offer struct {
	origin *origin
	in     core.Inbound
	size   int64
	// hash is that of a payload which was dropped because it is too large to be
	// kept while it waits.
	hash *[sha256.Size]byte
	// env is nil when the bytes are no envelope.
	env *core.Envelope
	// refusal is what steps 1 to 7 said, nil when they passed.
	refusal *core.Rejection
	// fromAllowed is what step 7 alone says, whatever failed before it.
	fromAllowed bool
	// receiptAllowed is drawn once from the sender's allowance of receipts.
	receiptAllowed func() bool
	settle         func(core.Settlement)
}

// origin is the carrier that an offer came in on.
type origin struct {
	// name is the carrier's configured name.
	name string
	// row is the recipient row that stands for the carrier.
	row int64
	// link is true where the carrier itself is a link, so that peers can be
	// located behind it.
	link bool
}

// decider settles a group of offers in order, against the state as the
// transaction sees it. It does no I/O: it reads and changes the state in memory
// and lists what has to be written.
type decider struct {
	// origins finds the carrier of a parked message by its name.
	origins func(name string) *origin
	policy  policy
	now     time.Time
	state   *store.State
	dir     *directory
	changes *store.Changes
	// lastSeq is the last position used.
	lastSeq int64
	// parked counts what was parked before the group, parkedDelta what the group
	// changed of it.
	parked      *parkedCounts
	parkedDelta *parkedCounts
	// delivered are the messages of changes.Deliveries, one for each.
	delivered []*core.Envelope
	// waiting are deliveries to peers that are located nowhere; their recipient
	// rows are made before the write.
	waiting []waiting
	// located are peers that were heard on another link than before, or while
	// something waits for them elsewhere.
	located []location
	// receipts are the rejection receipts that this group owes.
	receipts []owedReceipt
	// touched are the works, containers and peers to be written, once each.
	touched touched
	// givenUp are the rejections of messages that were parked.
	givenUp []store.Rejection
}

type waiting struct {
	recipient core.Recipient
	delivery  int
}

type location struct {
	peer store.PeerKey
	link int64
}

type touched struct {
	works      map[store.WorkKey]bool
	containers map[store.ContainerKey]bool
	peers      map[store.PeerKey]bool
}

func newDecider(p policy, now time.Time, state *store.State, dir *directory, lastSeq int64, parked *parkedCounts) *decider {
	return &decider{
		policy: p, now: now, state: state, dir: dir, lastSeq: lastSeq,
		changes:     &store.Changes{Now: now},
		parked:      parked,
		parkedDelta: newParkedCounts(),
		touched: touched{
			works:      map[store.WorkKey]bool{},
			containers: map[store.ContainerKey]bool{},
			peers:      map[store.PeerKey]bool{},
		},
	}
}

// settle decides one offer: accepted, parked, duplicate, echo or rejected.
func (d *decider) settle(o *offer) core.Settlement {
	if o.env == nil || (o.refusal != nil && o.refusal.Step <= core.StepFields) {
		return d.reject(o, o.refusal)
	}
	if s, known := d.settleKnown(o); known {
		return s
	}
	if o.refusal != nil {
		return d.reject(o, o.refusal)
	}
	// The group may have waited for the disk since intake looked at the clock. A
	// message that was fresh when it reached us stays so, unless it says itself
	// that its time is over.
	if o.env.HasExpiry {
		if stale := o.env.CheckFresh(d.now, d.policy.freshness); stale != nil {
			return d.reject(o, stale)
		}
	}
	m := &message{env: o.env, origin: o.origin, arrival: o.in.Arrival, address: o.in.Address, wake: d.writtenIn(o), heard: d.now}
	outcome, refusal := d.judge(m)
	if refusal != nil {
		return d.reject(o, refusal)
	}
	if outcome == outcomePark {
		return d.park(o)
	}
	seq := d.accept(m)
	return core.Settlement{Verdict: core.VerdictCommitted, ID: o.env.ID, Seq: seq, CommittedAt: d.now}
}

// settleKnown settles an id that was committed before: a known key settles
// first, however stale the envelope has become (section 3).
func (d *decider) settleKnown(o *offer) (core.Settlement, bool) {
	known := d.state.Keys[keyOf(o.env)]
	if known == nil {
		return core.Settlement{}, false
	}
	same := known.Content == o.env.Content
	if same && o.in.Arrival == core.ArrivalNative && slices.Contains(known.Recipients, o.origin.row) {
		return core.Settlement{Verdict: core.VerdictCommitted, ID: o.env.ID, Seq: known.Seq, CommittedAt: known.CommittedAt, Echo: true}, true
	}
	// Who may not speak here learns nothing of what is known here.
	if !o.fromAllowed {
		return core.Settlement{}, false
	}
	if !same {
		return d.reject(o, &core.Rejection{Step: core.StepDedup, Reason: core.ReasonDuplicate, Detail: "id reused with different content"}), true
	}
	if !o.in.Redelivered {
		d.oweReceipt(o, &core.Rejection{Step: core.StepDedup, Reason: core.ReasonDuplicate, Detail: "the message was taken before"})
	}
	return core.Settlement{
		Verdict: core.VerdictCommitted, ID: o.env.ID, Seq: known.Seq, CommittedAt: known.CommittedAt,
		Duplicate: true, Parked: known.Parked,
	}, true
}

// message is an envelope that passed steps 1 to 8.
type message struct {
	env     *core.Envelope
	origin  *origin
	arrival core.Arrival
	address *core.Address
	// released is true for what was parked before.
	released bool
	// heard is when it reached us.
	heard time.Time
	// work is the work as it will stand, nil where there is none; opens is true
	// for its first message.
	work  *store.Work
	opens bool
	// other is the recipient in a direct room.
	other string
	// wake is the wake in which it was written, nil where there was none.
	wake *store.Run
}

type outcome uint8

const (
	outcomeAccept outcome = iota
	outcomePark
)

// judge applies step 9: the rules of conversations and work.
func (d *decider) judge(m *message) (outcome, *core.Rejection) {
	work, refusal := d.checkContainer(m.env)
	if refusal != nil {
		return outcomeAccept, refusal
	}
	if refusal := d.checkRoom(m); refusal != nil {
		return outcomeAccept, refusal
	}
	if m.env.WorkID == "" {
		return outcomeAccept, nil
	}
	if work == nil {
		return d.judgeUnknownWork(m)
	}
	next, refusal := coreWork(work).Apply(m.env)
	if refusal != nil {
		return outcomeAccept, refusal
	}
	if next != work.State {
		changed := *work
		changed.State = next
		m.work = &changed
	}
	return outcomeAccept, nil
}

// checkContainer finds the work that the envelope names and checks that it lives
// in the envelope's container, which comes before every other rule of state.
func (d *decider) checkContainer(env *core.Envelope) (*store.Work, *core.Rejection) {
	if env.WorkID == "" {
		return nil, nil
	}
	work := d.state.Works[workKeyOf(env)]
	if work == nil {
		return nil, nil
	}
	if work.Channel != env.Channel || work.Container != env.Container() {
		return work, &core.Rejection{
			Step: core.StepState, Reason: core.ReasonWorkContainerMismatch,
			Detail: "work_id is bound to another container",
		}
	}
	return work, nil
}

func (d *decider) judgeUnknownWork(m *message) (outcome, *core.Rejection) {
	switch m.env.Kind {
	case core.KindSay, core.KindCapability:
		w := core.OpenWork(m.env)
		m.opens = true
		m.work = &store.Work{
			Key: workKeyOf(m.env), Channel: w.Channel, Container: w.Container,
			Initiator: w.Initiator, Target: w.Target, State: w.State,
		}
		return outcomeAccept, nil
	}
	if m.env.Trace != nil && m.env.Trace.State == core.WorkSubmitted {
		return outcomeAccept, &core.Rejection{
			Step: core.StepState, Reason: core.ReasonMalformed,
			Detail: "body.state submitted is set by the opener alone",
		}
	}
	if !d.roomToPark(m.env) {
		return outcomeAccept, &core.Rejection{
			Step: core.StepState, Reason: core.ReasonBusy,
			Detail: "too many messages wait for the opener of their work: send it again later",
		}
	}
	return outcomePark, nil
}

// checkRoom applies the rules of direct rooms and finds the other party.
func (d *decider) checkRoom(m *message) *core.Rejection {
	env := m.env
	if env.Surface != core.SurfaceDirect {
		return nil
	}
	room := d.state.Containers[containerKeyOf(env)]
	if room == nil {
		if env.To == "" {
			return &core.Rejection{
				Step: core.StepState, Reason: core.ReasonConversationNotFound,
				Detail: "direct_id names no room that is known, and without to its parties cannot be told",
			}
		}
		m.other = env.To
		return nil
	}
	switch env.From {
	case room.PeerA:
		m.other = room.PeerB
	case room.PeerB:
		m.other = room.PeerA
	default:
		return &core.Rejection{Step: core.StepState, Reason: core.ReasonNotTarget, Detail: "from is no party of the direct room"}
	}
	if env.To != "" && env.To != m.other {
		return &core.Rejection{Step: core.StepState, Reason: core.ReasonNotTarget, Detail: "to is no party of the direct room"}
	}
	return core.CheckRoomAddress(m.address, m.other)
}

// reject records a refusal and, where the protocol asks for it, owes a receipt.
func (d *decider) reject(o *offer, why *core.Rejection) core.Settlement {
	d.changes.Rejections = append(d.changes.Rejections, rejectionRow(o, why, d.now))
	if o.env == nil {
		return core.Settlement{Verdict: core.VerdictRejected, Rejection: why}
	}
	d.oweReceipt(o, why)
	return core.Settlement{Verdict: core.VerdictRejected, ID: o.env.ID, Rejection: why}
}

func coreWork(w *store.Work) core.Work {
	return core.Work{Channel: w.Channel, Container: w.Container, Initiator: w.Initiator, Target: w.Target, State: w.State}
}

func keyOf(env *core.Envelope) store.Key {
	return store.Key{WorkspaceID: env.WorkspaceID, ID: env.ID}
}

func workKeyOf(env *core.Envelope) store.WorkKey {
	return store.WorkKey{WorkspaceID: env.WorkspaceID, WorkID: env.WorkID}
}

func containerKeyOf(env *core.Envelope) store.ContainerKey {
	return store.ContainerKey{WorkspaceID: env.WorkspaceID, Channel: env.Channel, Container: env.Container()}
}
