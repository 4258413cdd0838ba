package core

// Reason is a code of the protocol's closed list of refusal reasons.
type Reason string

// The reason codes that the gateway uses (section 2 of docs/protocol.md).
const (
	ReasonMalformed             Reason = "malformed"
	ReasonExpired               Reason = "expired"
	ReasonDuplicate             Reason = "duplicate"
	ReasonUnsupportedKind       Reason = "unsupported_kind"
	ReasonUnsupportedProfile    Reason = "unsupported_profile"
	ReasonVerificationFailed    Reason = "verification_failed"
	ReasonNotTarget             Reason = "not_target"
	ReasonNotFound              Reason = "not_found"
	ReasonBusy                  Reason = "busy"
	ReasonInternal              Reason = "internal"
	ReasonInvalidSurface        Reason = "invalid_surface"
	ReasonConversationNotFound  Reason = "conversation_not_found"
	ReasonWorkClosed            Reason = "work_closed"
	ReasonWorkContainerMismatch Reason = "work_container_mismatch"
	ReasonLegacyFieldRejected   Reason = "legacy_field_rejected"
)

// ReasonCodes lists every reason code that the gateway uses. The slice is the
// caller's own.
func ReasonCodes() []Reason {
	return []Reason{
		ReasonMalformed, ReasonExpired, ReasonDuplicate, ReasonUnsupportedKind,
		ReasonUnsupportedProfile, ReasonVerificationFailed, ReasonNotTarget,
		ReasonNotFound, ReasonBusy, ReasonInternal, ReasonInvalidSurface,
		ReasonConversationNotFound, ReasonWorkClosed, ReasonWorkContainerMismatch,
		ReasonLegacyFieldRejected,
	}
}

// Step is a step of the order of validation. The first step that fails names
// the one reason.
type Step uint8

// The steps, numbered as in the order of validation.
const (
	StepParse     Step = 1
	StepFields    Step = 2
	StepFreshness Step = 3
	StepShape     Step = 4
	StepBody      Step = 5
	StepTrust     Step = 6
	StepScope     Step = 7
	StepDedup     Step = 8
	StepState     Step = 9
	StepCommit    Step = 10
)

// Rejection is the one reason why an envelope was refused. It is an error.
type Rejection struct {
	Step   Step
	Reason Reason
	// Detail says what was wrong and where, for people; it names the field and
	// never repeats the content at length.
	Detail string
	// TooLarge is true when the frame was over the size limit.
	TooLarge bool
}

// malformed is the refusal of most faults.
func malformed(step Step, detail string) *Rejection {
	return &Rejection{Step: step, Reason: ReasonMalformed, Detail: detail}
}

// Error is the reason and the detail.
func (r *Rejection) Error() string { return string(r.Reason) + ": " + r.Detail }
