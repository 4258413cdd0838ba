package store

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/compozy-gateway/gateway/core"
)

// fields are the few members of a stored envelope that have no column, because
// only readers ask for them. Payloads were validated before they were stored,
// so these have their types.
type fields struct {
	ID        string         `json:"id"`
	Channel   string         `json:"channel"`
	From      string         `json:"from"`
	ExpiresAt *int64         `json:"expires_at"`
	Body      jsontext.Value `json:"body"`
}

func readFields(payload []byte) fields {
	var f fields
	// What cannot be read stays zero.
	_ = json.Unmarshal(payload, &f)
	return f
}

// readID reads the id alone.
func readID(payload []byte) string {
	var f struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(payload, &f)
	return f.ID
}

// receiptBody is what an inspection shows of a receipt.
type receiptBody struct {
	Status     core.ReceiptStatus `json:"status"`
	ReasonCode string             `json:"reason_code"`
	Detail     string             `json:"detail"`
}

func readReceipt(payload []byte) (fields, receiptBody) {
	f := readFields(payload)
	var b receiptBody
	_ = json.Unmarshal(f.Body, &b)
	return f, b
}
