package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/compozy-gateway/gateway/core"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	threadTemplate = "compozy:///{workspace}/{channel}/threads/{thread_id}"
	threadMIMEType = "application/json"
)

// addResources makes the threads of the channel resources, by a template for
// the first part of a thread and one for the parts behind it.
func (s *Server) addResources(server *mcp.Server) {
	template := mcp.ResourceTemplate{
		Name: "thread", Title: "History of a thread", URITemplate: threadTemplate, MIMEType: threadMIMEType,
		Description: "The oldest messages of a public thread; next says where its history goes on. " + notice,
	}
	server.AddResourceTemplate(&template, s.readThreadResource)
	behind := template
	behind.Name, behind.Title, behind.URITemplate = "thread_after", "History of a thread behind a position", threadTemplate+"{?after}"
	behind.Description = "The messages of a public thread behind a seq. " + notice
	server.AddResourceTemplate(&behind, s.readThreadResource)
}

// threadURI names a thread of the channel. Everything that a URI reserves is
// escaped, as the template demands.
func (s *Server) threadURI(threadID string) string {
	return "compozy:///" + url.QueryEscape(s.Seat.Workspace) + "/" + url.QueryEscape(s.Seat.Channel) + "/threads/" + url.QueryEscape(threadID)
}

// parseThreadURI reads what threadURI and the templates make. It reports false
// for anything else, and for what lies outside of the channel.
func (s *Server) parseThreadURI(uri string) (threadArguments, bool) {
	u, err := url.Parse(uri)
	if err != nil {
		return threadArguments{}, false
	}
	escaped := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	parts := make([]string, len(escaped))
	for i, part := range escaped {
		if parts[i], err = url.PathUnescape(part); err != nil {
			return threadArguments{}, false
		}
	}
	if u.Scheme != "compozy" || u.Host != "" || len(parts) != 4 || parts[2] != "threads" ||
		parts[0] != s.Seat.Workspace || parts[1] != s.Seat.Channel || !core.ValidThreadID(parts[3]) {
		return threadArguments{}, false
	}
	after, ok := parsePosition(u)
	return threadArguments{ThreadID: parts[3], After: after}, ok
}

// parsePosition reads what may stand behind the path: after, once, or nothing.
// Anything else would promise what is not done.
func parsePosition(u *url.URL) (after int64, ok bool) {
	query, err := url.ParseQuery(u.RawQuery)
	given := query["after"]
	delete(query, "after")
	if err != nil || len(query) > 0 || len(given) > 1 || u.Fragment != "" {
		return 0, false
	}
	if len(given) == 1 && given[0] != "" {
		after, err = strconv.ParseInt(given[0], 10, 64)
	}
	return after, err == nil && after >= 0
}

func (s *Server) readThreadResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	in, ok := s.parseThreadURI(req.Params.URI)
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	found, err := s.readThread(ctx, in)
	if err != nil {
		f := explain(err)
		if f.Reason == core.ReasonNotFound {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return nil, wireError(f)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("write thread %s: %w", in.ThreadID, err)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: req.Params.URI, MIMEType: threadMIMEType, Text: string(text),
	}}}, nil
}

// listThreadsAsResources answers resources/list with the threads that there are
// at the moment, for a list that is fixed when the server starts would be wrong
// with the next message.
func (s *Server) listThreadsAsResources(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		resources, ok := result.(*mcp.ListResourcesResult)
		if err != nil || !ok {
			return result, err
		}
		threads, err := s.listThreads(ctx, listArguments{Limit: maxList})
		if err != nil {
			return nil, wireError(explain(err))
		}
		for _, t := range threads.Threads {
			resources.Resources = append(resources.Resources, &mcp.Resource{
				URI: t.URI, Name: t.ThreadID, MIMEType: threadMIMEType,
				Description: fmt.Sprintf("%d messages by %d peers, the last at %s. %s", t.Messages, t.Participants, t.LastAt.Format("2006-01-02 15:04:05Z"), notice),
			})
		}
		return resources, nil
	}
}

// wireError is a failure where there is no tool result to carry it.
func wireError(f *failure) error {
	data, err := json.Marshal(f)
	if err != nil {
		return errors.Join(f, err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Error(), Data: data}
}
