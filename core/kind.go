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

// Kinds lists every kind, in the order of section 1 of docs/protocol.md. The
// slice is the caller's own.
func Kinds() []Kind {
	return []Kind{KindGreet, KindWhois, KindSay, KindCapability, KindReceipt, KindTrace}
}

// Valid reports whether k is one of the six kinds.
func (k Kind) Valid() bool { return k.Conversation() || k == KindGreet || k == KindWhois }

// Conversation reports whether messages of the kind belong to a thread or a
// direct room.
func (k Kind) Conversation() bool {
	switch k {
	case KindSay, KindCapability, KindReceipt, KindTrace:
		return true
	}
	return false
}

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

// ReceiptStatuses lists every status of a receipt. The slice is the caller's
// own.
func ReceiptStatuses() []ReceiptStatus {
	return []ReceiptStatus{
		ReceiptAccepted, ReceiptRejected, ReceiptDuplicate,
		ReceiptExpired, ReceiptUnsupported, ReceiptCanceled,
	}
}

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

// WorkStates lists every state of a work unit. The slice is the caller's own.
func WorkStates() []WorkState {
	return []WorkState{
		WorkSubmitted, WorkWorking, WorkNeedsInput,
		WorkCompleted, WorkFailed, WorkCanceled,
	}
}

// Terminal reports whether nothing can change the state any more.
func (s WorkState) Terminal() bool {
	return s == WorkCompleted || s == WorkFailed || s == WorkCanceled
}
