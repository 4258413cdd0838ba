package integration

import (
	"github.com/compozy-gateway/gateway/core"
)

// matrixRoomCases is what step 9 says of direct rooms.
func matrixRoomCases() []matrixCase {
	committed := matrixVerdict("committed")
	notTarget := matrixRefused(core.StepState, core.ReasonNotTarget)
	var cases []matrixCase
	// after is a message that follows the first one of a to b in the room.
	after := func(name string, want matrixOutcome, draft func(w *matrixWorld) *matrixDraft) {
		cases = append(cases, matrixCase{name: "room: " + name, frames: func(w *matrixWorld) []matrixFrame {
			first := w.inRoom(w.say(), w.b).text("to", w.b)
			return []matrixFrame{w.taken(first), w.frame(draft(w), want)}
		}})
	}
	after("the same again", committed, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.say(), w.b).text("to", w.b) })
	after("the answer", committed, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.sayFrom(w.b), w.a).text("to", w.a) })
	after("without a recipient", committed, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.say(), w.b) })
	after("the answer without a recipient", committed, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.sayFrom(w.b), w.a) })
	after("a mention adds nobody", committed, func(w *matrixWorld) *matrixDraft {
		return w.inRoom(w.say(), w.b).set("mentions", `["`+w.c+`"]`)
	})
	after("a mention makes nobody a party", notTarget, func(w *matrixWorld) *matrixDraft {
		return w.inRoom(w.sayFrom(w.c), w.a).text("to", w.a).set("mentions", `["`+w.c+`"]`)
	})
	after("from a third party", notTarget, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.sayFrom(w.c), w.a).text("to", w.a) })
	after("from a third party without a recipient", notTarget, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.sayFrom(w.c), w.a) })
	after("to a third party", notTarget, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.say(), w.c).text("to", w.c) })
	after("a third party opens work", notTarget, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.about(w.sayFrom(w.c), w.b), w.b) })
	after("a party opens work", committed, func(w *matrixWorld) *matrixDraft { return w.inRoom(w.open(), w.b) })
	after("other peers in a room of that id in another workspace", committed, func(w *matrixWorld) *matrixDraft {
		return w.inRoom(w.say(), w.c).text("to", w.c).text("from", "far").text("workspace_id", "demo-2")
	})
	// Who is no party is refused before the work is looked for.
	for _, kind := range []core.Kind{core.KindCapability, core.KindReceipt, core.KindTrace} {
		after(string(kind)+" of a third party", notTarget, func(w *matrixWorld) *matrixDraft {
			return w.inRoom(w.about(w.valid(kind), w.b), w.b).text("from", w.c)
		})
	}
	return append(cases,
		matrixOne("room: unknown, without a recipient", matrixRefused(core.StepState, core.ReasonConversationNotFound), func(w *matrixWorld) *matrixDraft {
			return w.inRoom(w.say(), w.b)
		}),
		matrixCase{name: "room: work in it, to its end", state: core.WorkCompleted, frames: func(w *matrixWorld) []matrixFrame {
			return []matrixFrame{
				w.taken(w.inRoom(w.open(), w.b)), w.taken(w.inRoom(w.receipt(w.b, w.a, core.ReceiptAccepted), w.a)),
				w.taken(w.inRoom(w.trace(w.b, w.a, core.WorkCompleted), w.a)),
				w.frame(w.inRoom(w.trace(w.b, w.a, core.WorkFailed), w.a), matrixRefused(core.StepState, core.ReasonWorkClosed)),
			}
		}},
		matrixCase{name: "room: two rooms of one pair", frames: func(w *matrixWorld) []matrixFrame {
			other := w.inRoom(w.say(), w.b).text("to", w.b)
			return []matrixFrame{
				w.taken(w.inRoom(w.say(), w.b).text("to", w.b)),
				w.taken(other.text("direct_id", core.DirectRoomID(matrixWorkspace, matrixChannel, w.a, w.name))),
			}
		}},
	)
}
