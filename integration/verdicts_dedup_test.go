package integration

import (
	"strconv"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixDedupCases is step 8: an id that comes again.
func matrixDedupCases() []matrixCase {
	duplicate := matrixVerdict("duplicate")
	reused := matrixRefused(core.StepDedup, core.ReasonDuplicate)
	var cases []matrixCase
	// again is a message and what follows with the same id.
	again := func(name string, want matrixOutcome, change func(w *matrixWorld, d *matrixDraft)) {
		for kind, draft := range map[string]func(w *matrixWorld) *matrixDraft{
			"": (*matrixWorld).say, ", with work": (*matrixWorld).open,
		} {
			cases = append(cases, matrixCase{name: "again: " + name + kind, frames: func(w *matrixWorld) []matrixFrame {
				d := draft(w)
				first := w.taken(d)
				change(w, d)
				return []matrixFrame{first, w.frame(d, want)}
			}})
		}
	}
	set := func(field, value string) func(*matrixWorld, *matrixDraft) {
		return func(_ *matrixWorld, d *matrixDraft) { d.set(field, value) }
	}
	again("the same bytes", duplicate, func(*matrixWorld, *matrixDraft) {})
	again("with a later ts", duplicate, func(w *matrixWorld, d *matrixDraft) { d.set("ts", strconv.FormatInt(w.now+7, 10)) })
	again("with an expires_at", duplicate, func(w *matrixWorld, d *matrixDraft) { d.set("expires_at", strconv.FormatInt(w.now+77, 10)) })
	again("with a proof", duplicate, set("proof", `{"x":1}`))
	again("gone stale", duplicate, func(w *matrixWorld, d *matrixDraft) { d.set("ts", strconv.FormatInt(w.now-10_000, 10)) })
	again("gone stale, by expires_at", duplicate, func(w *matrixWorld, d *matrixDraft) { d.set("expires_at", strconv.FormatInt(w.now, 10)) })
	again("with another text", reused, set("body", `{"text":"goodbye"}`))
	again("with another spelling of the text", reused, set("body", `{"text":"hell\u006f"}`))
	again("with an ext", reused, set("ext", `{}`))
	again("with a member that is null", reused, set("ext", "null"))
	again("with the members in another order", reused, func(_ *matrixWorld, d *matrixDraft) {
		d.names[0], d.names[1] = d.names[1], d.names[0]
	})
	again("with another text and stale", reused, func(w *matrixWorld, d *matrixDraft) {
		d.set("body", `{"text":"x"}`).set("ts", strconv.FormatInt(w.now-10_000, 10))
	})
	again("with a wrong body", reused, set("body", `{}`))
	again("with a wrong surface", reused, set("surface", `"room"`))
	again("with what cannot be read", matrixRefused(core.StepParse, core.ReasonMalformed), set("Body", "null"))
	again("in another workspace", matrixVerdict("committed"), func(w *matrixWorld, d *matrixDraft) {
		d.text("workspace_id", "demo-2").text("from", "far")
	})

	return append(cases,
		matrixCase{name: "again: spread over white space", frames: func(w *matrixWorld) []matrixFrame {
			d := w.say()
			spread := w.frame(d, duplicate)
			spread.payload = " " + strings.ReplaceAll(spread.payload, `,"`, " ,\r\n\t\"") + "\n"
			return []matrixFrame{w.taken(d), spread}
		}},
		matrixCase{name: "again: what was refused before is not known", frames: func(w *matrixWorld) []matrixFrame {
			wrong := w.say()
			right := w.say().text("id", wrong.named("id", func(string) bool { return true }, ""))
			return []matrixFrame{
				w.frame(wrong.set("body", "{}"), matrixRefused(core.StepBody, core.ReasonMalformed)), w.taken(right), w.frame(right, duplicate),
			}
		}},
		matrixCase{name: "again: what is parked, also with other content", frames: func(w *matrixWorld) []matrixFrame {
			early := w.trace(w.b, w.a, core.WorkWorking)
			first, second := w.frame(early, matrixVerdict("parked")), w.frame(early, duplicate)
			return []matrixFrame{first, second, w.frame(early.set("body", `{"state":"failed"}`), reused)}
		}},
		matrixCase{name: "again: five times in one group", together: true, frames: func(w *matrixWorld) []matrixFrame {
			d := w.open()
			frames := []matrixFrame{w.taken(d)}
			for range 4 {
				frames = append(frames, w.frame(d, duplicate))
			}
			return frames
		}},
		matrixCase{name: "again: in one group, with other content between", together: true, frames: func(w *matrixWorld) []matrixFrame {
			d := w.say()
			frames := []matrixFrame{w.taken(d), w.frame(d, duplicate)}
			frames = append(frames, w.frame(d.set("body", `{"text":"x"}`), reused), w.frame(d, reused))
			return append(frames, w.frame(d.set("body", `{"text":"hello"}`), duplicate))
		}},
	)
}
