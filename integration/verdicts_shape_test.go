package integration

import (
	"strconv"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixShapeCases is step 4 but for the address: what each kind demands of
// surface, container, work and recipient.
func matrixShapeCases() []matrixCase {
	surface := matrixRefused(core.StepShape, core.ReasonInvalidSurface)
	malformed := matrixRefused(core.StepShape, core.ReasonMalformed)
	var cases []matrixCase
	add := func(kind core.Kind, name string, want matrixOutcome, change func(w *matrixWorld, d *matrixDraft)) {
		cases = append(cases, matrixOne("shape: "+string(kind)+": "+name, want, func(w *matrixWorld) *matrixDraft {
			d := w.valid(kind)
			change(w, d)
			return d
		}))
	}
	set := func(field, value string) func(*matrixWorld, *matrixDraft) {
		return func(_ *matrixWorld, d *matrixDraft) { d.set(field, value) }
	}
	drop := func(fields ...string) func(*matrixWorld, *matrixDraft) {
		return func(_ *matrixWorld, d *matrixDraft) { d.drop(fields...) }
	}
	for _, kind := range core.Kinds() {
		if !kind.Conversation() {
			add(kind, "a surface", surface, set("surface", `"thread"`))
			add(kind, "an empty surface", surface, set("surface", `""`))
			add(kind, "a thread_id", surface, set("thread_id", `"thread_abc"`))
			add(kind, "a direct_id", surface, set("direct_id", `"direct_00000000000000000000000000000000"`))
			add(kind, "a work_id", malformed, set("work_id", `"w"`))
			continue
		}
		add(kind, "no surface", surface, drop("surface", "thread_id"))
		add(kind, "a thread_id without surface", surface, drop("surface"))
		add(kind, "surface null", surface, set("surface", "null"))
		for _, other := range []string{"", "Thread", "room", "direct "} {
			add(kind, "surface "+other, surface, set("surface", matrixQuote(other)))
		}
		add(kind, "a thread without its id", surface, drop("thread_id"))
		for _, id := range []string{"", "thread_", "thread_ab", "thread_-abc", "thread_Abc", "thread_a.bc", "Thread_abc", "thread_" + strings.Repeat("x", 97)} {
			add(kind, "thread_id "+id[:min(len(id), 12)], surface, set("thread_id", matrixQuote(id)))
		}
		add(kind, "a thread with a direct_id", surface, func(w *matrixWorld, d *matrixDraft) { d.text("direct_id", w.room()) })
		add(kind, "a thread with an empty direct_id", surface, set("direct_id", `""`))
		add(kind, "a room without its id", surface, func(_ *matrixWorld, d *matrixDraft) { d.text("surface", "direct").drop("thread_id") })
		add(kind, "a room with a thread_id", surface, func(w *matrixWorld, d *matrixDraft) { d.text("surface", "direct").text("direct_id", w.room()) })
		for _, id := range []string{"", "direct_", "direct_" + strings.Repeat("0", 31), "direct_" + strings.Repeat("0", 33), "direct_" + strings.Repeat("A", 32)} {
			add(kind, "direct_id "+strconv.Quote(id), surface, func(_ *matrixWorld, d *matrixDraft) {
				d.text("surface", "direct").text("direct_id", id).drop("thread_id")
			})
		}
		add(kind, "a room with oneself", malformed, func(w *matrixWorld, d *matrixDraft) { w.inRoom(d, w.a).text("to", w.a) })
		add(kind, "work without to", malformed, func(w *matrixWorld, d *matrixDraft) { d.text("work_id", w.work()).drop("to") })
		if kind != core.KindSay {
			add(kind, "no work_id", malformed, drop("work_id"))
			add(kind, "work_id null", malformed, set("work_id", "null"))
		}
	}
	add(core.KindGreet, "a recipient", malformed, func(w *matrixWorld, d *matrixDraft) { d.text("to", w.b) })
	add(core.KindWhois, "a recipient is fine", matrixVerdict("committed"), func(w *matrixWorld, d *matrixDraft) { d.text("to", w.b) })
	add(core.KindSay, "to oneself in a thread", matrixVerdict("committed"), func(w *matrixWorld, d *matrixDraft) { d.text("to", w.a) })
	add(core.KindSay, "the longest thread_id", matrixVerdict("committed"), set("thread_id", matrixQuote("thread_"+strings.Repeat("x", 96))))
	add(core.KindSay, "the shortest thread_id", matrixVerdict("committed"), set("thread_id", `"thread_0-_"`))
	add(core.KindSay, "the surface comes before the body", surface, func(_ *matrixWorld, d *matrixDraft) {
		d.drop("surface").set("body", "{}")
	})
	return cases
}

// matrixScopeCases is step 7: whether the sender may speak for whom it names.
func matrixScopeCases() []matrixCase {
	notTarget := matrixRefused(core.StepScope, core.ReasonNotTarget)
	return []matrixCase{
		matrixOne("scope: the gateway's own peer id", notTarget, func(w *matrixWorld) *matrixDraft {
			return w.open().text("from", matrixGateway)
		}),
		matrixOne("scope: a workspace that is not in scope", notTarget, func(w *matrixWorld) *matrixDraft {
			return w.open().text("workspace_id", "elsewhere")
		}),
		matrixOne("scope: the body comes before the scope", matrixRefused(core.StepBody, core.ReasonMalformed), func(w *matrixWorld) *matrixDraft {
			return w.open().text("workspace_id", "elsewhere").set("body", "{}")
		}),
		{name: "scope: another's pinned peer id", frames: func(w *matrixWorld) []matrixFrame {
			f := w.taken(w.sayFrom(w.b))
			f.sender = w.a
			f.on = map[matrixWay]matrixOutcome{matrixStdio: notTarget}
			return []matrixFrame{f}
		}},
		{name: "scope: another channel than the agent's", frames: func(w *matrixWorld) []matrixFrame {
			f := w.taken(w.say().text("channel", "other"))
			f.on = map[matrixWay]matrixOutcome{matrixStdio: notTarget}
			return []matrixFrame{f}
		}},
		{name: "scope: a known id does not excuse the sender", frames: func(w *matrixWorld) []matrixFrame {
			first := w.taken(w.sayFrom(w.b))
			again := first
			again.sender, again.want = w.a, matrixVerdict("duplicate")
			again.on = map[matrixWay]matrixOutcome{matrixStdio: notTarget}
			return []matrixFrame{first, again}
		}},
	}
}
