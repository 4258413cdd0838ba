package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/compose"
	"github.com/compozy-gateway/gateway/core"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (s *Server) addSendingTools(server *mcp.Server) {
	add(s, server, sends, mcp.Tool{
		Name: "send_say", Title: "Say something",
		Description: "Send a text message, in a public thread or in a direct room. With work_id and to it opens a unit of work for the addressee. " + sendingHelp,
		InputSchema: sendingSchema[sayArguments](),
	}, s.say)
	add(s, server, sends, mcp.Tool{
		Name: "send_capability", Title: "Hand over a capability",
		Description: "Send a capability document under a work_id to one peer. Its digest is computed for you. " + sendingHelp,
		InputSchema: sendingSchema[capabilityArguments](),
	}, s.capability)
	add(s, server, sends, mcp.Tool{
		Name: "send_receipt", Title: "Answer with a receipt",
		Description: "Tell the sender of a message that belongs to a work_id what you make of it: accepted takes responsibility for it, the other statuses refuse. Committing or reading a message is never a receipt. " + sendingHelp,
		InputSchema: sendingSchema[receiptArguments](oneOf("status", core.ReceiptStatuses())),
	}, s.receipt)
	add(s, server, sends, mcp.Tool{
		Name: "send_trace", Title: "Report progress",
		Description: "Report the state of a unit of work to its other party. completed, failed and canceled end it for good. " + sendingHelp,
		InputSchema: sendingSchema[traceArguments](oneOf("state", reportable())),
	}, s.trace)
}

const sendingHelp = "The sender, workspace and channel are fixed. The answer says that the gateway has committed the message, not that anybody has read it. A refusal names the protocol's reason_code."

// longestLifetime is a year in seconds. Gateways allow less.
const longestLifetime = 366 * 24 * 60 * 60

func sendingSchema[T any](rules ...rule) *jsonschema.Schema {
	return schemaOf[T](append(rules, between("expires_in_seconds", 1, longestLifetime))...)
}

// sendingArguments are what every tool that sends takes.
type sendingArguments struct {
	ThreadID    string   `json:"thread_id,omitempty" jsonschema:"public thread to send in, such as thread_main; a new name begins a new thread. Give exactly one of thread_id, direct_id and direct"`
	DirectID    string   `json:"direct_id,omitempty" jsonschema:"direct room to send in, as an earlier message of it says"`
	Direct      bool     `json:"direct,omitempty" jsonschema:"send in the direct room between you and the peer that to names"`
	Mentions    []string `json:"mentions,omitempty" jsonschema:"peers to mention"`
	ReplyTo     string   `json:"reply_to,omitempty" jsonschema:"id of the message that this one answers"`
	CausationID string   `json:"causation_id,omitempty" jsonschema:"id of the message that caused this one"`
	TraceID     string   `json:"trace_id,omitempty" jsonschema:"correlation id, copied from the message that this one belongs to"`
	ExpiresIn   int      `json:"expires_in_seconds,omitempty" jsonschema:"seconds after which the message is no longer delivered"`
	MessageID   string   `json:"message_id,omitempty" jsonschema:"id of the message. Leave it out, except to repeat a call whose outcome is not known: with the id and arguments of that call the message is not taken twice"`
}

// lifecycleArguments are what a message that belongs to a work must have.
type lifecycleArguments struct {
	To     string `json:"to" jsonschema:"peer that the message is for"`
	WorkID string `json:"work_id" jsonschema:"unit of work that the message belongs to"`
}

// sent is what became of a message.
type sent struct {
	MessageID string `json:"message_id" jsonschema:"id of the message"`
	Committed bool   `json:"committed" jsonschema:"the gateway has the message durably; this is no receipt"`
	Seq       *int64 `json:"seq,omitempty" jsonschema:"position in the history; absent while the message is parked"`
	Duplicate bool   `json:"duplicate,omitempty" jsonschema:"it was committed by an earlier call; nothing new was sent"`
	Parked    bool   `json:"parked,omitempty" jsonschema:"it waits for the message that opens its work, and counts once that comes"`
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"thread that it was sent in"`
	DirectID  string `json:"direct_id,omitempty" jsonschema:"direct room that it was sent in"`
}

// send writes an envelope around a body and gives it to the gateway.
func (s *Server) send(ctx context.Context, kind core.Kind, to, workID string, in sendingArguments, body any) (sent, error) {
	e := compose.Envelope{
		ID: in.MessageID, WorkspaceID: s.Seat.Workspace, Kind: kind, Channel: s.Seat.Channel, From: s.Seat.Peer,
		Mentions: in.Mentions, WorkID: workID, ReplyTo: in.ReplyTo, TraceID: in.TraceID, CausationID: in.CausationID,
		Body: body,
	}
	e.Address(to)
	if err := s.place(&e, to, in); err != nil {
		return sent{}, err
	}
	e.Stamp(s.Now(), time.Duration(in.ExpiresIn)*time.Second)
	raw, err := e.JSON()
	if err != nil {
		return sent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	result, err := s.Client.Post(ctx, raw)
	if err == nil && !result.Committed() {
		err = refusal(result)
	}
	if err != nil {
		f := explain(err)
		f.MessageID = e.ID
		return sent{}, f
	}
	return sent{
		MessageID: e.ID, Committed: true, Seq: result.Seq, Duplicate: result.Duplicate, Parked: result.Parked,
		ThreadID: e.ThreadID, DirectID: e.DirectID,
	}, nil
}

// place puts the envelope where the arguments say. Only a place that nobody
// could name is refused here; the gateway judges the rest.
func (s *Server) place(e *compose.Envelope, to string, in sendingArguments) error {
	places := 0
	for _, given := range []bool{in.ThreadID != "", in.DirectID != "", in.Direct} {
		if given {
			places++
		}
	}
	switch {
	case places != 1:
		return unfit("give exactly one of thread_id, direct_id and direct")
	case in.Direct && to == "":
		return unfit("direct needs to: a direct room has two peers")
	case in.Direct:
		e.InDirectRoom(core.DirectRoomID(s.Seat.Workspace, s.Seat.Channel, s.Seat.Peer, to))
	case in.DirectID != "":
		e.InDirectRoom(in.DirectID)
	default:
		e.InThread(in.ThreadID)
	}
	return nil
}

func refusal(r client.Result) *failure {
	detail := r.Detail
	if detail == "" {
		detail = r.Title
	}
	f := refuse(core.Reason(r.ReasonCode), "%s", detail)
	if f.Reason == "" { // A body over the size limit is refused before it is read.
		f.Reason, f.Detail = core.ReasonMalformed, fmt.Sprintf("the gateway answered %d: %s", r.Status, detail)
	}
	f.Retryable = f.Reason == core.ReasonBusy
	return f
}
