package integration

import (
	"fmt"

	"github.com/compozy-gateway/gateway/core"
)

// matrixWorkCases is what step 9 says of work: every message in every state, who
// may speak, and what arrives before the opener.
func matrixWorkCases() []matrixCase {
	return append(append(matrixTransitionCases(), matrixActorCases()...), matrixEarlyCases()...)
}

// matrixMove is a message about a work that is open.
type matrixMove struct {
	name  string
	draft func(w *matrixWorld) *matrixDraft
	// next gives the state after it, from one that is not terminal.
	next func(core.WorkState) core.WorkState
	// cancels says that it is idempotent on a canceled work.
	cancels bool
	// never says that no state allows it.
	never bool
}

func matrixMoves() []matrixMove {
	same := func(s core.WorkState) core.WorkState { return s }
	to := func(state core.WorkState) func(core.WorkState) core.WorkState {
		return func(core.WorkState) core.WorkState { return state }
	}
	// wakes: to speak on a work that needs input sets it working.
	wakes := func(s core.WorkState) core.WorkState {
		if s == core.WorkNeedsInput {
			return core.WorkWorking
		}
		return s
	}
	accepts := func(s core.WorkState) core.WorkState {
		if s == core.WorkSubmitted {
			return core.WorkWorking
		}
		return s
	}
	receipt := func(status core.ReceiptStatus) func(w *matrixWorld) *matrixDraft {
		return func(w *matrixWorld) *matrixDraft { return w.receipt(w.b, w.a, status) }
	}
	trace := func(state core.WorkState) func(w *matrixWorld) *matrixDraft {
		return func(w *matrixWorld) *matrixDraft { return w.trace(w.b, w.a, state) }
	}
	return []matrixMove{
		{name: "say", draft: (*matrixWorld).open, next: wakes},
		{name: "say of the target", next: wakes, draft: func(w *matrixWorld) *matrixDraft { return w.about(w.sayFrom(w.b), w.a) }},
		{name: "capability", draft: (*matrixWorld).capability, next: wakes},
		{name: "receipt accepted", draft: receipt(core.ReceiptAccepted), next: accepts},
		{name: "receipt accepted of the initiator", next: same, draft: func(w *matrixWorld) *matrixDraft {
			return w.receipt(w.a, w.b, core.ReceiptAccepted)
		}},
		{name: "receipt rejected", draft: receipt(core.ReceiptRejected), next: to(core.WorkFailed)},
		{name: "receipt duplicate", draft: receipt(core.ReceiptDuplicate), next: same},
		{name: "receipt expired", draft: receipt(core.ReceiptExpired), next: same},
		{name: "receipt unsupported", draft: receipt(core.ReceiptUnsupported), next: same},
		{name: "receipt canceled", draft: receipt(core.ReceiptCanceled), next: to(core.WorkCanceled), cancels: true},
		{name: "trace submitted", draft: trace(core.WorkSubmitted), next: same, never: true},
		{name: "trace working", draft: trace(core.WorkWorking), next: to(core.WorkWorking)},
		{name: "trace needs_input", draft: trace(core.WorkNeedsInput), next: to(core.WorkNeedsInput)},
		{name: "trace completed", draft: trace(core.WorkCompleted), next: to(core.WorkCompleted)},
		{name: "trace failed", draft: trace(core.WorkFailed), next: to(core.WorkFailed)},
		{name: "trace canceled", draft: trace(core.WorkCanceled), next: to(core.WorkCanceled), cancels: true},
	}
}

// matrixTransitionCases is every message in every state.
func matrixTransitionCases() []matrixCase {
	var cases []matrixCase
	for _, state := range core.WorkStates() {
		for _, move := range matrixMoves() {
			want, after := matrixVerdict("committed"), move.next(state)
			switch {
			case state.Terminal() && (state != core.WorkCanceled || !move.cancels):
				want, after = matrixRefused(core.StepState, core.ReasonWorkClosed), state
			case state.Terminal():
				after = state
			case move.never:
				want = matrixRefused(core.StepState, core.ReasonMalformed)
			}
			cases = append(cases, matrixCase{name: "work: " + move.name + " on " + string(state), state: after, frames: func(w *matrixWorld) []matrixFrame {
				frames := []matrixFrame{w.taken(w.open())}
				if state != core.WorkSubmitted {
					frames = append(frames, w.taken(w.trace(w.b, w.a, state)))
				}
				return append(frames, w.frame(move.draft(w), want))
			}})
		}
	}
	return cases
}

// matrixActorCases are the container and the parties of work, in the order in
// which they are checked.
func matrixActorCases() []matrixCase {
	mismatch := matrixRefused(core.StepState, core.ReasonWorkContainerMismatch)
	notTarget := matrixRefused(core.StepState, core.ReasonNotTarget)
	var cases []matrixCase
	// after is a message that follows the opener.
	after := func(name string, want matrixOutcome, draft func(w *matrixWorld) *matrixDraft) {
		cases = append(cases, matrixCase{name: "work: " + name, state: core.WorkSubmitted, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{w.taken(w.open()), w.frame(draft(w), want)}
		}})
	}
	for _, kind := range []core.Kind{core.KindSay, core.KindCapability, core.KindReceipt, core.KindTrace} {
		after(string(kind)+" in another thread", mismatch, func(w *matrixWorld) *matrixDraft {
			return w.about(w.valid(kind), w.b).text("thread_id", "thread_another")
		})
		after(string(kind)+" in a room", mismatch, func(w *matrixWorld) *matrixDraft {
			return w.inRoom(w.about(w.valid(kind), w.b), w.b)
		})
		after(string(kind)+" of a third party", notTarget, func(w *matrixWorld) *matrixDraft {
			return w.about(w.valid(kind), w.b).text("from", w.c)
		})
		after(string(kind)+" to a third party", notTarget, func(w *matrixWorld) *matrixDraft {
			return w.about(w.valid(kind), w.c)
		})
		after(string(kind)+" of a third party in another thread", mismatch, func(w *matrixWorld) *matrixDraft {
			return w.about(w.valid(kind), w.b).text("from", w.c).text("thread_id", "thread_another")
		})
	}
	cases = append(cases, matrixCase{name: "work: in another channel", frames: func(w *matrixWorld) []matrixFrame {
		other := w.frame(w.open().text("channel", "other"), mismatch)
		other.on = map[matrixWay]matrixOutcome{matrixStdio: matrixRefused(core.StepScope, core.ReasonNotTarget)}
		return []matrixFrame{w.taken(w.open()), other}
	}})
	cases = append(cases, matrixCase{name: "work: of a third party on one that is closed", frames: func(w *matrixWorld) []matrixFrame {
		closed := w.trace(w.b, w.a, core.WorkCompleted)
		return []matrixFrame{w.taken(w.open()), w.taken(closed), w.frame(w.about(w.sayFrom(w.c), w.b), notTarget)}
	}})
	return append(cases, matrixCase{name: "work: opened by a capability", state: core.WorkSubmitted, frames: func(w *matrixWorld) []matrixFrame {
		return []matrixFrame{w.taken(w.capability())}
	}}, matrixCase{name: "work: known by its trimmed id", state: core.WorkCompleted, frames: func(w *matrixWorld) []matrixFrame {
		done := w.trace(w.b, w.a, core.WorkCompleted).text("work_id", " "+w.work()+"\t")
		return []matrixFrame{w.taken(w.open()), w.taken(done)}
	}})
}

// matrixEarlyCases are messages that arrive before the opener of their work.
func matrixEarlyCases() []matrixCase {
	parked := matrixVerdict("parked")
	var cases []matrixCase
	for _, move := range matrixMoves() {
		d := move.draft(newMatrixWorld(0))
		kind := core.Kind(d.named("kind", func(string) bool { return true }, ""))
		if kind != core.KindReceipt && kind != core.KindTrace {
			continue
		}
		want, after := parked, move.next(core.WorkSubmitted)
		if move.never {
			want = matrixRefused(core.StepState, core.ReasonMalformed)
		}
		cases = append(cases,
			matrixCase{name: "early: " + move.name, frames: func(w *matrixWorld) []matrixFrame {
				return []matrixFrame{w.frame(move.draft(w), want)}
			}},
			matrixCase{name: "early: " + move.name + ", and then the opener", state: after, frames: func(w *matrixWorld) []matrixFrame {
				return []matrixFrame{w.frame(move.draft(w), want), w.taken(w.open())}
			}},
		)
		if move.name == "receipt accepted" {
			continue // of the initiator it is another move
		}
		cases = append(cases, matrixCase{name: "early: " + move.name + " with the opener in one group", state: after, together: true, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{w.frame(move.draft(w).text("from", w.a).text("to", w.b), want), w.taken(w.open())}
		}})
	}
	return append(cases,
		matrixCase{name: "early: the first terminal message wins", state: core.WorkFailed, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{
				w.frame(w.trace(w.b, w.a, core.WorkFailed), parked), w.frame(w.trace(w.b, w.a, core.WorkCompleted), parked), w.taken(w.open()),
			}
		}},
		matrixCase{name: "early: from a third party, and then the opener", state: core.WorkSubmitted, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{w.frame(w.trace(w.c, w.a, core.WorkFailed), parked), w.taken(w.open())}
		}},
		matrixCase{name: "early: more than one sender may park", together: true, frames: func(w *matrixWorld) []matrixFrame {
			const mostParked = 100
			var frames []matrixFrame
			for i := range mostParked + 1 {
				want := parked
				if i == mostParked {
					want = matrixRefused(core.StepState, core.ReasonBusy)
				}
				d := w.trace("hoarder", w.a, core.WorkWorking).text("work_id", fmt.Sprintf("%s-%d", w.work(), i))
				frames = append(frames, w.frame(d, want))
			}
			return frames
		}},
	)
}
