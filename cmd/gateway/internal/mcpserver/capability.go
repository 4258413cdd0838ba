package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
)

type capabilityArguments struct {
	lifecycleArguments
	Capability capabilityDocument `json:"capability" jsonschema:"the capability"`
	sendingArguments
}

// capabilityDocument is a capability as section 2 of docs/protocol.md has it.
type capabilityDocument struct {
	ID                string   `json:"id" jsonschema:"id of the capability"`
	Summary           string   `json:"summary" jsonschema:"what it is, in a sentence"`
	Outcome           string   `json:"outcome" jsonschema:"what using it achieves"`
	Version           string   `json:"version,omitempty" jsonschema:"version of the capability"`
	ContextNeeded     []string `json:"context_needed,omitempty" jsonschema:"what one must know to use it"`
	ArtifactsExpected []string `json:"artifacts_expected,omitempty" jsonschema:"what using it produces"`
	ExecutionOutline  []string `json:"execution_outline,omitempty" jsonschema:"the steps, in order"`
	Constraints       []string `json:"constraints,omitempty" jsonschema:"limits to respect"`
	Examples          []string `json:"examples,omitempty" jsonschema:"examples"`
	Requirements      []string `json:"requirements,omitempty" jsonschema:"what must be there; not blank, none twice"`
}

type capabilityBody struct {
	Capability signedCapability `json:"capability"`
}

type signedCapability struct {
	capabilityDocument
	Digest string `json:"digest"`
}

func (s *Server) capability(ctx context.Context, in capabilityArguments) (sent, error) {
	document, err := json.Marshal(in.Capability)
	if err != nil {
		return sent{}, fmt.Errorf("write the capability: %w", err)
	}
	digest, err := core.CapabilityDigest(document)
	var rejection *core.Rejection
	if errors.As(err, &rejection) {
		return sent{}, refuse(rejection.Reason, "%s", rejection.Detail)
	}
	if err != nil {
		return sent{}, err
	}
	body := capabilityBody{signedCapability{in.Capability, digest}}
	return s.send(ctx, core.KindCapability, in.To, in.WorkID, in.sendingArguments, body)
}
