package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errorMeta is the member of a failed result's _meta that tells programs what
// its text tells models.
const errorMeta = "compozy-network/error"

// failure is why a call failed.
type failure struct {
	// Reason is the protocol's reason code; empty where the protocol has none for
	// it, such as a gateway that does not answer.
	Reason core.Reason `json:"reason_code,omitempty"`
	Detail string      `json:"detail"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// MessageID is the id of the message that was to be sent. Sending it again
	// under this id is safe.
	MessageID string `json:"message_id,omitempty"`
	// RetryAfter is how many seconds the gateway asked to wait.
	RetryAfter int `json:"retry_after_seconds,omitempty"`
}

func (f *failure) Error() string {
	var b strings.Builder
	if f.Reason != "" {
		fmt.Fprintf(&b, "reason_code %s: ", f.Reason)
	}
	b.WriteString(f.Detail)
	if f.Retryable {
		b.WriteString("; try again")
		if f.RetryAfter > 0 {
			fmt.Fprintf(&b, " in %d s", f.RetryAfter)
		}
	}
	if f.MessageID != "" && f.Retryable {
		fmt.Fprintf(&b, " with message_id %q and the same arguments, which is safe: a message that was committed is not taken twice", f.MessageID)
	}
	return b.String()
}

func refuse(reason core.Reason, format string, args ...any) *failure {
	return &failure{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// unfit refuses arguments that no gateway was asked about: no reason code of the
// protocol stands behind that.
func unfit(format string, args ...any) *failure {
	return &failure{Detail: fmt.Sprintf(format, args...)}
}

// named says what was asked for where the gateway does not know it.
func named(err error, format string, args ...any) error {
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusNotFound {
		return refuse(core.ReasonNotFound, format, args...)
	}
	return err
}

// explain turns an error of the client into a failure. It asks what the error is
// and never reads its text.
func explain(err error) *failure {
	var f *failure
	var problem *client.Problem
	var unreachable *client.UnreachableError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &problem):
		return &failure{
			Reason: reasonOf(problem), Detail: err.Error(), Retryable: client.Passing(err),
			RetryAfter: int(problem.RetryAfter.Seconds()),
		}
	case errors.Is(err, context.Canceled):
		return &failure{Detail: "the call was canceled; whether it had an effect is not known", Retryable: true}
	case errors.As(err, &unreachable):
		return &failure{Detail: err.Error() + "; whether the call had an effect is not known", Retryable: true}
	default:
		return &failure{Detail: err.Error()}
	}
}

// reasonOf is the protocol's word for a problem; the interface itself leaves it
// out where it refuses a request and not an envelope.
func reasonOf(p *client.Problem) core.Reason {
	switch {
	case p.ReasonCode != "":
		return core.Reason(p.ReasonCode)
	case p.Status == http.StatusNotFound:
		return core.ReasonNotFound
	case p.Status == http.StatusTooManyRequests:
		return core.ReasonBusy
	}
	return ""
}

// describeErrors puts the failure of a tool into the result's _meta. A failure
// that no tool has explained is that of arguments which no tool was called with.
func (s *Server) describeErrors(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		var coded *jsonrpc.Error
		if err != nil && !errors.As(err, &coded) {
			return result, wireError(explain(err))
		}
		call, ok := result.(*mcp.CallToolResult)
		if err != nil || !ok || call == nil || call.GetError() == nil {
			return result, err
		}
		var f *failure
		if !errors.As(call.GetError(), &f) {
			f = unfit("%s", call.GetError().Error())
			call.Content = []mcp.Content{&mcp.TextContent{Text: f.Error()}}
		}
		if call.Meta == nil {
			call.Meta = mcp.Meta{}
		}
		call.Meta[errorMeta] = f
		if request, ok := req.(*mcp.CallToolRequest); ok {
			s.Logger.Info("call failed", "tool", request.Params.Name, "reason_code", f.Reason, "retryable", f.Retryable)
		}
		return result, nil
	}
}
