package mcpserver

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
)

type receiptArguments struct {
	lifecycleArguments
	ForID      string             `json:"for_id" jsonschema:"id of the message that the receipt is for"`
	Status     core.ReceiptStatus `json:"status" jsonschema:"what you make of it"`
	ReasonCode string             `json:"reason_code,omitempty" jsonschema:"why; required with rejected, duplicate, expired and unsupported, not allowed with accepted. Such as busy, not_target or unsupported_kind"`
	Detail     string             `json:"detail,omitempty" jsonschema:"why, for people"`
	sendingArguments
}

type receiptBody struct {
	ForID      string             `json:"for_id"`
	Status     core.ReceiptStatus `json:"status"`
	ReasonCode string             `json:"reason_code,omitempty"`
	Detail     string             `json:"detail,omitempty"`
}

func (s *Server) receipt(ctx context.Context, in receiptArguments) (sent, error) {
	body := receiptBody{ForID: in.ForID, Status: in.Status, ReasonCode: in.ReasonCode, Detail: in.Detail}
	return s.send(ctx, core.KindReceipt, in.To, in.WorkID, in.sendingArguments, body)
}
