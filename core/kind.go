package core

// Kind is one of the six kinds of envelope.
type Kind string

// The kinds. "direct" is not one: it is a surface.
const (
	KindGreet      Kind = "greet"
	KindWhois      Kind = "whois"
	KindSay        Kind = "say"
	KindCapability Kind = "capability"
	KindReceipt    Kind = "receipt"
	KindTrace      Kind = "trace"
)

// ReceiptStatus is the closed set of a receipt's status.
type ReceiptStatus string

// The statuses of a receipt.
const (
	ReceiptAccepted    ReceiptStatus = "accepted"
	ReceiptRejected    ReceiptStatus = "rejected"
	ReceiptDuplicate   ReceiptStatus = "duplicate"
	ReceiptExpired     ReceiptStatus = "expired"
	ReceiptUnsupported ReceiptStatus = "unsupported"
	ReceiptCanceled    ReceiptStatus = "canceled"
)

// WorkState is the closed set of the states of a work unit.
type WorkState string

// The states of a work unit; the last three are terminal.
const (
	WorkSubmitted  WorkState = "submitted"
	WorkWorking    WorkState = "working"
	WorkNeedsInput WorkState = "needs_input"
	WorkCompleted  WorkState = "completed"
	WorkFailed     WorkState = "failed"
	WorkCanceled   WorkState = "canceled"
)

// Terminal reports whether nothing can change the state any more.
func (s WorkState) Terminal() bool {
	return s == WorkCompleted || s == WorkFailed || s == WorkCanceled
}
