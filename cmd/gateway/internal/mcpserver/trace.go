package mcpserver

import (
	"context"
	"slices"

	"github.com/compozy-gateway/gateway/core"
)

type traceArguments struct {
	lifecycleArguments
	State        core.WorkState `json:"state" jsonschema:"state that the work is in now"`
	Message      string         `json:"message,omitempty" jsonschema:"what to tell people about it"`
	Result       map[string]any `json:"result,omitempty" jsonschema:"result of the work"`
	ArtifactRefs []any          `json:"artifact_refs,omitempty" jsonschema:"references to what the work produced"`
	sendingArguments
}

type traceBody struct {
	State        core.WorkState `json:"state"`
	Message      string         `json:"message,omitempty"`
	Result       map[string]any `json:"result,omitempty"`
	ArtifactRefs []any          `json:"artifact_refs,omitempty"`
}

func (s *Server) trace(ctx context.Context, in traceArguments) (sent, error) {
	body := traceBody{State: in.State, Message: in.Message, Result: in.Result, ArtifactRefs: in.ArtifactRefs}
	return s.send(ctx, core.KindTrace, in.To, in.WorkID, in.sendingArguments, body)
}

// reportable are the states that a trace may name: submitted is what opening a
// work makes it.
func reportable() []core.WorkState {
	return slices.DeleteFunc(core.WorkStates(), func(w core.WorkState) bool { return w == core.WorkSubmitted })
}
