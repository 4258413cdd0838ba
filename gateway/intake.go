package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// intake is what one carrier offers its frames to. It parses and validates on
// the carrier's own goroutine, then queues in order.
type intake struct {
	gateway *Gateway
	carrier *carrier
}

var _ core.Intake = (*intake)(nil)

func (in *intake) Offer(ctx context.Context, frame core.Inbound, settle func(core.Settlement)) error {
	o := in.examine(frame)
	o.settle = settle
	return in.gateway.committer.offer(ctx, o)
}

// examine applies steps 1 to 7, which need no state.
func (in *intake) examine(frame core.Inbound) *offer {
	g := in.gateway
	// White space around the object is no part of the envelope (section 1), and
	// not every carrier cuts it off.
	frame.Payload = bytes.Trim(frame.Payload, " \t\r\n")
	o := &offer{origin: in.carrier.origin, in: frame, size: max(frame.Size, int64(len(frame.Payload)))}
	o.receiptAllowed = func() bool { return false }
	if limit := int64(g.config.Protocol.MaxEnvelopeBytes); o.size > limit {
		o.refusal = &core.Rejection{
			Step: core.StepParse, Reason: core.ReasonMalformed, TooLarge: true,
			// Its size may be that of what was read only.
			Detail: fmt.Sprintf("the envelope has more than %d bytes, which is the limit", limit),
		}
		hash := sha256.Sum256(o.in.Payload)
		o.hash, o.in.Payload = &hash, nil
		return o
	}
	if o.env, o.refusal = core.Parse(frame.Payload); o.refusal != nil {
		return o
	}
	scope := in.checkScope(o)
	o.fromAllowed = scope == nil
	if scope == nil {
		sender := store.PeerKey{WorkspaceID: o.env.WorkspaceID, Peer: o.env.From}
		o.receiptAllowed = once(func() bool { return g.receiptLimiter.allow(sender, g.now()) })
	}
	o.refusal = o.env.Validate(g.now(), g.policy.freshness, frame.Address)
	if frame.BadAddress != "" && (o.refusal == nil || o.refusal.Step > core.StepShape) {
		o.refusal = &core.Rejection{Step: core.StepShape, Reason: core.ReasonMalformed, Detail: frame.BadAddress}
	}
	if o.refusal == nil {
		o.refusal = scope
	}
	return o
}

// checkScope is step 7: may this carrier, and this sender, speak for this
// workspace, channel and from?
func (in *intake) checkScope(o *offer) *core.Rejection {
	env := o.env
	refuse := func(detail string) *core.Rejection {
		return &core.Rejection{Step: core.StepScope, Reason: core.ReasonNotTarget, Detail: detail}
	}
	if !allowedByAny(in.carrier.scopes, env.WorkspaceID, env.Channel, env.From) {
		return refuse("the scope of carrier " + in.carrier.name + " does not take in this workspace, channel and from")
	}
	principal := ""
	if p := o.in.Principal; p != nil {
		principal = p.Name
		if !p.Scope.Allows(env.WorkspaceID, env.Channel, env.From) {
			return refuse("the sender may not speak for this workspace, channel and from")
		}
	}
	if !in.gateway.pins.allow(env.WorkspaceID, env.From, in.carrier.name, principal) {
		return refuse("from " + in.gateway.reserved(env.WorkspaceID, env.From))
	}
	return nil
}

func (in *intake) Attach(ctx context.Context, at core.Attachment) error {
	return in.gateway.attach(ctx, in.carrier, at)
}

func (in *intake) Detach(ctx context.Context, at core.Attachment) error {
	return in.gateway.detach(ctx, in.carrier, at)
}

func (in *intake) Acked(ctx context.Context, id core.DeliveryID, ack core.Ack) error {
	return in.gateway.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		known, err := t.tx.HasDelivery(ctx, id)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, fmt.Errorf("delivery %s: %w", id, core.ErrNotFound)
		}
		return nil, t.acknowledge(ctx, []core.DeliveryID{id}, ack)
	})
}

// rejectionRow is what is kept of a refused frame: never its content.
func rejectionRow(o *offer, why *core.Rejection, now time.Time) store.Rejection {
	hash := o.hash
	if hash == nil {
		sum := sha256.Sum256(o.in.Payload)
		hash = &sum
	}
	row := store.Rejection{
		Hash: *hash, Size: o.size, Carrier: o.origin.name,
		Reason: why.Reason, Detail: clip(why.Detail, detailMaxLength), At: now,
	}
	if o.env != nil {
		row.ClaimedWorkspaceID = clip(o.env.WorkspaceID, claimMaxLength)
		row.ClaimedID = clip(o.env.ID, claimMaxLength)
		row.ClaimedFrom = clip(o.env.From, claimMaxLength)
	}
	return row
}

// claimMaxLength bounds, in bytes, what is kept of each claimed id.
const claimMaxLength = 256

// clip cuts to at most n bytes, at a character's boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD")
}
