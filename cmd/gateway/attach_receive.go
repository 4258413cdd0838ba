package main

import (
	"context"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
)

// pollWait is how long one long poll of the inbox may take.
const pollWait = 30 * time.Second

// receive writes what comes into the inbox to stdout and acknowledges it. It
// ends without an error when ctx does.
func (a *attachment) receive(ctx context.Context) error {
	for {
		var page client.Page
		err := a.retry(ctx, "inbox", func() (err error) {
			page, err = a.client.Inbox(ctx, a.seat, client.InboxQuery{After: a.written, Wait: pollWait})
			return err
		})
		if err == nil {
			err = a.deliver(ctx, page)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// deliver writes entries and acknowledges them as soon as they stand on stdout,
// for the next poll, which would say the same, may be half a minute away from
// being asked again when the connection breaks. The inbox of a gateway that began
// anew counts from the start again, and then so do we.
func (a *attachment) deliver(ctx context.Context, page client.Page) error {
	if page.Next < a.written {
		a.written, a.acked = page.Next, 0
	}
	for _, e := range page.Entries {
		if err := a.out.write(core.OneLine(e.Envelope)); err != nil {
			return err
		}
		a.written = e.Position
	}
	if a.written == a.acked {
		return nil
	}
	err := a.retry(ctx, "acknowledge", func() error {
		return a.client.Acknowledge(ctx, a.seat, a.written)
	})
	if err == nil {
		a.acked = a.written
	}
	return err
}
