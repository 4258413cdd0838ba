package core

import (
	"strconv"
	"strings"
)

// maxReasonCodeBytes is the length of the longest reason_code that is passed
// on.
const maxReasonCodeBytes = 64

// CheckBody is step 5: the body that the kind demands (section 2 of
// docs/protocol.md), of an envelope that Parse gave. It fills Receipt, Trace,
// Whois, Card, Capability and Text.
// The reason is malformed, or verification_failed for a capability whose digest
// is not that of its document.
func (e *Envelope) CheckBody() *Rejection {
	switch e.Kind {
	case KindGreet:
		return e.readGreet()
	case KindWhois:
		return e.readWhois()
	case KindSay:
		return e.readSay()
	case KindCapability:
		return e.readCapability()
	case KindReceipt:
		return e.readReceipt()
	case KindTrace:
		return e.readTrace()
	}
	return badBody("kind is unknown")
}

func (e *Envelope) readSay() *Rejection {
	v := pick(e.Body, sayNames)
	text, intent, artifacts := v[0], v[1], v[2]
	switch {
	case text == nil || !isString(text):
		return badBody("body.text is missing or not a string")
	case !isStringOrNil(intent):
		return badBody("body.intent is not a string")
	case artifacts != nil && !isArray(artifacts):
		return badBody("body.artifacts is not an array")
	}
	e.Text = stringOf(text)
	if strings.TrimSpace(e.Text) == "" {
		return badBody("body.text is blank")
	}
	return nil
}

func (e *Envelope) readTrace() *Rejection {
	v := pick(e.Body, traceNames)
	state, message, result, artifacts := v[0], v[1], v[2], v[3]
	switch {
	case state == nil || !isString(state):
		return badBody("body.state is missing or not a string")
	case !isStringOrNil(message):
		return badBody("body.message is not a string")
	case result != nil && !isObject(result):
		return badBody("body.result is not an object")
	case artifacts != nil && !isArray(artifacts):
		return badBody("body.artifact_refs is not an array")
	}
	for _, known := range WorkStates() {
		if string(known) == stringOf(state) {
			e.Trace = &Trace{State: known}
			return nil
		}
	}
	return badBody("body.state is not a state of work")
}

func (e *Envelope) readReceipt() *Rejection {
	v := pick(e.Body, receiptNames)
	forID, status, reason, detail := v[0], v[1], v[2], v[3]
	switch {
	case forID == nil || !isString(forID) || isEmptyString(forID):
		return badBody("body.for_id is missing or not a string")
	case status == nil || !isString(status):
		return badBody("body.status is missing or not a string")
	case !isStringOrNil(reason):
		return badBody("body.reason_code is not a string")
	case !isStringOrNil(detail):
		return badBody("body.detail is not a string")
	}
	r := &Receipt{
		ForID:      stringOf(forID),
		Status:     ReceiptStatus(stringOf(status)),
		ReasonCode: stringOf(reason),
		Detail:     stringOf(detail),
	}
	if reason != nil && (r.ReasonCode == "" || len(r.ReasonCode) > maxReasonCodeBytes) {
		return badBody("body.reason_code is not 1 to " + strconv.Itoa(maxReasonCodeBytes) + " bytes")
	}
	switch r.Status {
	case ReceiptAccepted:
		if reason != nil {
			return badBody("body.reason_code stands in an accepted receipt")
		}
	case ReceiptRejected, ReceiptDuplicate, ReceiptExpired, ReceiptUnsupported:
		if reason == nil {
			return badBody("body.reason_code is missing")
		}
	case ReceiptCanceled:
	default:
		return badBody("body.status is not a status of receipts")
	}
	e.Receipt = r
	return nil
}

func isStringOrNil(v []byte) bool { return v == nil || isString(v) }

func badBody(detail string) *Rejection { return malformed(StepBody, detail) }
