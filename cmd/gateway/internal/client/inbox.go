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

// Inbox waits for entries behind the position, at most as long as wait; none
// may come. Asking also acknowledges what was served up to the position.
func (c *Client) Inbox(ctx context.Context, s Seat, after int64, wait time.Duration) ([]Entry, error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "wait": {wait.String()}}
	var page struct {
		Entries []Entry `json:"entries"`
	}
	err := c.Get(ctx, s.path("inbox"), query, &page)
	return page.Entries, err
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
