package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	standardInbox = 20
	maxInbox      = 50
	// maxWait stays below the minute after which hosts give a call up.
	standardWait = 25
	maxWait      = 50
)

func (s *Server) addInboxTools(server *mcp.Server) {
	add(s, server, settles, mcp.Tool{
		Name: "read_inbox", Title: "Read the inbox",
		Description: fmt.Sprintf("Read what has been sent to you and is not acknowledged yet, oldest first, at once. The same messages come again until you acknowledge them: pass the ack_through of the last answer once you have dealt with it. Up to limit messages, %d unless told. %s", standardInbox, notice),
		InputSchema: schemaOf[inboxArguments](between("limit", 1, maxInbox), atLeast("ack_through", 0)),
	}, func(ctx context.Context, in inboxArguments) (inboxPage, error) { return s.readInbox(ctx, in, 0) })
	add(s, server, settles, mcp.Tool{
		Name: "wait_for_messages", Title: "Wait for messages",
		Description: fmt.Sprintf("Like read_inbox, but when nothing is there wait for a message, timeout_seconds at most (%d unless told). No messages in the answer means that none came; call it again to go on waiting. What is not acknowledged yet is given at once. %s", standardWait, notice),
		InputSchema: schemaOf[waitArguments](between("limit", 1, maxInbox), atLeast("ack_through", 0), between("timeout_seconds", 1, maxWait)),
	}, s.wait)
	add(s, server, settles, mcp.Tool{
		Name: "ack_inbox", Title: "Acknowledge messages",
		Description: "Acknowledge the messages of your inbox up to a position, so that they do not come again. It tells the gateway that you have them; it is no receipt, and no peer learns of it.",
		InputSchema: schemaOf[ackArguments](atLeast("through", 1)),
	}, s.acknowledge)
}

type inboxArguments struct {
	AckThrough int64 `json:"ack_through,omitempty" jsonschema:"first acknowledge the messages up to this position, which an earlier answer gave"`
	Limit      int   `json:"limit,omitempty" jsonschema:"most messages to give"`
}

type waitArguments struct {
	inboxArguments
	Timeout int `json:"timeout_seconds,omitempty" jsonschema:"longest time to wait"`
}

type inboxPage struct {
	Notice     string    `json:"notice"`
	Messages   []message `json:"messages"`
	AckThrough int64     `json:"ack_through,omitempty" jsonschema:"position that acknowledges these messages"`
	More       bool      `json:"more" jsonschema:"more may be waiting"`
}

func (s *Server) wait(ctx context.Context, in waitArguments) (inboxPage, error) {
	if in.Timeout == 0 {
		in.Timeout = standardWait
	}
	heard, cancel := s.calls.whileHeard(ctx)
	defer cancel()
	page, err := s.readInbox(heard, in.inboxArguments, time.Duration(in.Timeout)*time.Second)
	if err != nil && heard.Err() != nil && ctx.Err() == nil {
		return s.readInbox(ctx, in.inboxArguments, 0) // The host has closed its end and expects an answer.
	}
	return page, err
}

func (s *Server) readInbox(ctx context.Context, in inboxArguments, wait time.Duration) (inboxPage, error) {
	if err := s.checkShown(in.AckThrough); err != nil {
		return inboxPage{}, err
	}
	if in.Limit == 0 {
		in.Limit = standardInbox
	}
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	found, err := s.Client.Inbox(ctx, s.Seat, client.InboxQuery{After: in.AckThrough, Wait: wait, Limit: in.Limit})
	if err != nil {
		return inboxPage{}, err
	}
	out := inboxPage{Notice: notice, More: len(found.Entries) == in.Limit}
	var content page
	for _, entry := range found.Entries {
		m := show(entry.Envelope, shownBytes)
		m.Position, m.Seq = entry.Position, entry.Seq
		if !content.add(m) {
			out.More = true
			break
		}
		out.AckThrough = entry.Position
	}
	out.Messages = list(content.messages)
	s.noteShown(out.AckThrough)
	return out, nil
}

type ackArguments struct {
	Through int64 `json:"through" jsonschema:"position of the last message that you have dealt with"`
}

type acked struct {
	Through int64 `json:"acknowledged_through"`
}

func (s *Server) acknowledge(ctx context.Context, in ackArguments) (acked, error) {
	if err := s.checkShown(in.Through); err != nil {
		return acked{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return acked(in), s.Client.Acknowledge(ctx, s.Seat, in.Through)
}

// checkShown refuses to acknowledge what this server has not given to the host:
// a number that a model makes up must not lose messages.
func (s *Server) checkShown(position int64) error {
	if position > s.shown.Load() {
		return unfit("position %d was not given to you since this server started; read the inbox first", position)
	}
	return nil
}

func (s *Server) noteShown(position int64) {
	for {
		before := s.shown.Load()
		if position <= before || s.shown.CompareAndSwap(before, position) {
			return
		}
	}
}

// list is never null in JSON.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
