package mcpserver

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTools registers every tool.
func (s *Server) addTools(server *mcp.Server) {
	s.addSendingTools(server)
	s.addInboxTools(server)
	s.addLookupTools(server)
}

// effect says what a tool does to the world, for hosts that ask their user.
type effect int

const (
	// reads changes nothing.
	reads effect = iota
	// sends adds a message that others will see.
	sends
	// settles moves the peer's own place in its inbox.
	settles
)

func (e effect) annotations(title string) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{
		Title:           title,
		ReadOnlyHint:    e == reads,
		DestructiveHint: jsonschema.Ptr(false),
		IdempotentHint:  e != sends,
		OpenWorldHint:   jsonschema.Ptr(e != settles),
	}
}

// add registers one tool. Its handler is only called with arguments that fit the
// schema, and with the peer attached.
func add[In, Out any](s *Server, server *mcp.Server, e effect, tool mcp.Tool, call func(context.Context, In) (Out, error)) {
	tool.Annotations = e.annotations(tool.Title)
	mcp.AddTool(server, &tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := func() (out Out, err error) {
			if err := s.attach(ctx); err != nil {
				return out, err
			}
			return call(ctx, in)
		}()
		if err != nil {
			return nil, out, explain(err)
		}
		return nil, out, nil
	})
}
