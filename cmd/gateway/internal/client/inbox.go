package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Seat names a peer attached to one channel.
type Seat struct {
	Workspace, Channel, Peer string
}

func (s Seat) path(more ...string) string {
	return Path(append([]string{"workspaces", s.Workspace, "channels", s.Channel, "peers", s.Peer}, more...)...)
}

// Entry is one entry of an inbox.
type Entry struct {
	Position int64           `json:"position"`
	Seq      int64           `json:"seq"`
	Envelope json.RawMessage `json:"envelope"`
}

// Attach makes the peer a local recipient until Detach.
func (c *Client) Attach(ctx context.Context, s Seat) error {
	return c.Call(ctx, http.MethodPut, s.path())
}

// Detach ends the attachment.
func (c *Client) Detach(ctx context.Context, s Seat) error {
	return c.Call(ctx, http.MethodDelete, s.path())
}

// InboxQuery says what to read of an inbox.
type InboxQuery struct {
	// After is the position behind which to start. Asking also acknowledges what
	// was served up to it.
	After int64
	// Wait is how long to wait for an entry when there is none; the gateway's
	// bound is a minute.
	Wait time.Duration
	// Limit is the most entries to give; 0 leaves it to the gateway.
	Limit int
}

// Page is a piece of an inbox.
type Page struct {
	Entries []Entry `json:"entries"`
	// Next is where to go on. It is lower than what was asked for when the inbox
	// never came so far.
	Next int64 `json:"next"`
}

// Inbox waits for entries and gives them; none may come.
func (c *Client) Inbox(ctx context.Context, s Seat, q InboxQuery) (Page, error) {
	query := url.Values{"after": {strconv.FormatInt(q.After, 10)}, "wait": {q.Wait.String()}}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	var page Page
	err := c.Get(ctx, s.path("inbox"), query, &page)
	return page, err
}

// Acknowledge says that everything served up to the position has arrived.
func (c *Client) Acknowledge(ctx context.Context, s Seat, position int64) error {
	body, err := json.Marshal(map[string]int64{"position": position})
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return c.call(ctx, http.MethodPost, s.path("inbox", "ack"), nil, bytes.NewReader(body), header, nil)
}
