package nats

import (
	"context"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
)

// Send publishes one message; see core.Carrier. What can be said without a
// server (the address, the size, the deadline) is said at once.
func (c *Carrier) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	subject, refusal := c.admit(out)
	if refusal != nil {
		done(core.Ack{}, refusal)
		return
	}
	o := c.outlet()
	if o == nil {
		done(core.Ack{}, unavailable(c.status.reason()))
		return
	}
	o.send(ctx, subject, out, done)
}

// admit gives the subject of a message, or says why it cannot be sent.
func (c *Carrier) admit(out core.Outbound) (string, *core.SendError) {
	subject, err := c.subjects.destination(out.Envelope.WorkspaceID, out.Envelope.Channel, out.To)
	if err != nil {
		return "", &core.SendError{Code: core.CodeBadAddress, Detail: err.Error()}
	}
	if size := len(out.Envelope.Raw); c.cfg.MaxPayload > 0 && size > c.cfg.MaxPayload {
		return "", &core.SendError{
			Code:   core.CodeTooLarge,
			Detail: fmt.Sprintf("too large for carrier: %d bytes, and max_payload is %d", size, c.cfg.MaxPayload),
		}
	}
	return subject, nil
}

// late reports whether the message must not be written any more.
func (c *Carrier) late(out core.Outbound) *core.SendError {
	if out.Deadline.IsZero() || c.host.Now().Before(out.Deadline) {
		return nil
	}
	return &core.SendError{Code: core.CodeExpired, Detail: "the deadline passed before the message was written"}
}
