package core

// Work is a unit of work as its opener bound it, and the state that it has
// reached. Its identity is the pair of workspace_id and work_id, which whoever
// keeps it keeps as the key.
type Work struct {
	Channel   string
	Container Container
	// Initiator is the opener's from, Target its to.
	Initiator string
	Target    string
	State     WorkState
}

// OpenWork is the unit of work that a say or capability with an unknown
// work_id opens.
func OpenWork(e *Envelope) Work {
	return Work{
		Channel:   e.Channel,
		Container: e.Container(),
		Initiator: e.From,
		Target:    e.To,
		State:     WorkSubmitted,
	}
}

// Apply gives the state after a further message of the work, in the order of
// section 5 of docs/protocol.md: container (work_container_mismatch), actor
// (not_target), state (work_closed, or malformed for a trace that would submit
// again). The work itself is not changed; with a refusal the state is the one
// it has. The message must have passed CheckBody.
func (w Work) Apply(e *Envelope) (WorkState, *Rejection) {
	if e.Channel != w.Channel || e.Container() != w.Container {
		return w.State, w.refuse(ReasonWorkContainerMismatch, "the work belongs to another channel or container")
	}
	toTarget := e.From == w.Initiator && e.To == w.Target
	toInitiator := e.From == w.Target && e.To == w.Initiator
	if !toTarget && !toInitiator {
		return w.State, w.refuse(ReasonNotTarget, "only the work's initiator and target speak of it, one to the other")
	}
	if w.State.Terminal() {
		if w.State == WorkCanceled && cancels(e) {
			return w.State, nil
		}
		return w.State, w.refuse(ReasonWorkClosed, "the work is "+string(w.State))
	}
	switch e.Kind {
	case KindReceipt:
		return w.afterReceipt(e.Receipt.Status, e.From == w.Target), nil
	case KindTrace:
		if e.Trace.State == WorkSubmitted {
			return w.State, w.refuse(ReasonMalformed, "a trace never moves a work back to submitted")
		}
		return e.Trace.State, nil
	}
	if w.State == WorkNeedsInput {
		return WorkWorking, nil
	}
	return w.State, nil
}

// afterReceipt gives the state after a receipt for a work that is not closed.
func (w Work) afterReceipt(status ReceiptStatus, fromTarget bool) WorkState {
	switch status {
	case ReceiptAccepted:
		// Only the target can take responsibility.
		if fromTarget && w.State == WorkSubmitted {
			return WorkWorking
		}
	case ReceiptRejected:
		return WorkFailed
	case ReceiptCanceled:
		return WorkCanceled
	}
	return w.State
}

// cancels reports whether the message cancels its work.
func cancels(e *Envelope) bool {
	return e.Kind == KindReceipt && e.Receipt.Status == ReceiptCanceled ||
		e.Kind == KindTrace && e.Trace.State == WorkCanceled
}

func (w Work) refuse(reason Reason, detail string) *Rejection {
	return &Rejection{Step: StepState, Reason: reason, Detail: detail}
}
