package mcpserver

import (
	"context"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/compose"
	"github.com/compozy-gateway/gateway/core"
)

type sayArguments struct {
	Text      string `json:"text" jsonschema:"what to say"`
	To        string `json:"to,omitempty" jsonschema:"peer that the message is for; without one everybody in the thread is spoken to"`
	WorkID    string `json:"work_id,omitempty" jsonschema:"unit of work that the message opens or belongs to; needs to"`
	Intent    string `json:"intent,omitempty" jsonschema:"what the message is meant as, in a word"`
	Artifacts []any  `json:"artifacts,omitempty" jsonschema:"artifacts that go with the text"`
	sendingArguments
}

func (s *Server) say(ctx context.Context, in sayArguments) (sent, error) {
	body := compose.SayBody{Text: in.Text, Intent: in.Intent, Artifacts: in.Artifacts}
	return s.send(ctx, core.KindSay, in.To, in.WorkID, in.sendingArguments, body)
}
