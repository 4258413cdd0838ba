package http

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
)

// Send implements core.Carrier: it calls a webhook. Calls of one endpoint follow
// one another; endpoints do not wait for each other.
func (c *Carrier) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	hook, err := c.endpoint(out.Recipient)
	if err != nil {
		done(core.Ack{}, err)
		return
	}
	ctx, leave, ok := c.sends.begin(ctx)
	if !ok {
		done(core.Ack{}, hook.fail(core.CodeUnavailable, "is not called: the carrier has stopped", nil))
		return
	}
	select {
	case hook.slot <- struct{}{}:
	case <-ctx.Done():
		leave()
		done(core.Ack{}, hook.fail(core.CodeTimeout, "is busy with an earlier message", ctx.Err()))
		return
	}
	go func() {
		defer leave()
		ack, err := hook.deliver(ctx, out)
		<-hook.slot
		if err == nil {
			c.sent()
		}
		done(ack, err)
	}()
}

// endpoint is the webhook that serves the recipient.
func (c *Carrier) endpoint(to core.Recipient) (*endpoint, error) {
	if to.Peer == "" {
		if hook := c.hooks[to.Link]; hook != nil {
			return hook, nil
		}
		return nil, &core.SendError{Code: core.CodeBadAddress, Detail: "there is no webhook " + to.Link}
	}
	if hook := c.pushed[seat{to.WorkspaceID, to.Channel, to.Peer}]; hook != nil {
		return hook, nil
	}
	// The peer was a webhook's once. Its messages wait for its inbox to be opened.
	return nil, &core.SendError{
		Code:       core.CodeUnavailable,
		Detail:     "no webhook serves peer " + to.Peer + " any more",
		RetryAfter: maxBreak,
	}
}
