package mcpserver

import (
	"context"
	"strconv"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
)

const (
	standardHistory = 50
	maxHistory      = 100
)

type threadArguments struct {
	ThreadID string `json:"thread_id" jsonschema:"thread to read"`
	After    int64  `json:"after,omitempty" jsonschema:"start behind this seq; list_threads tells the last_seq of each thread"`
	Limit    int    `json:"limit,omitempty" jsonschema:"most messages to give, 50 unless told"`
}

type threadPage struct {
	Notice   string    `json:"notice"`
	ThreadID string    `json:"thread_id"`
	Messages []message `json:"messages"`
	Next     *int64    `json:"next,omitempty" jsonschema:"pass as after to go on; absent at the end"`
}

// readThread gives a part of a thread's history. A thread that nobody has
// written in is not found.
func (s *Server) readThread(ctx context.Context, in threadArguments) (threadPage, error) {
	if in.Limit == 0 {
		in.Limit = standardHistory
	}
	query := s.asPeer()
	query.Set("thread_id", in.ThreadID)
	query.Set("after", strconv.FormatInt(in.After, 10))
	query.Set("limit", strconv.Itoa(in.Limit))
	var found struct {
		Messages []core.Message `json:"messages"`
		Next     *int64         `json:"next"`
	}
	path := client.Path("workspaces", s.Seat.Workspace, "channels", s.Seat.Channel, "messages")
	if err := s.get(ctx, path, query, &found); err != nil {
		return threadPage{}, err
	}
	if in.After == 0 && len(found.Messages) == 0 && found.Next == nil {
		return threadPage{}, refuse(core.ReasonNotFound, "nothing is kept of a thread %q in this channel", in.ThreadID)
	}
	out := threadPage{Notice: notice, ThreadID: in.ThreadID, Next: found.Next}
	var content page
	last := in.After
	for _, stored := range found.Messages {
		m := show(stored.Envelope, shownBytes)
		m.Seq = stored.Seq
		if !content.add(m) {
			out.Next = &last
			break
		}
		last = stored.Seq
	}
	out.Messages = list(content.messages)
	return out, nil
}
