package integration

import (
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

// matrixAddressCases is what the carrier's own address says of a message: it is
// held against the envelope on the buses, and there is none elsewhere.
func matrixAddressCases() []matrixCase {
	malformed := matrixRefused(core.StepShape, core.ReasonMalformed)
	committed := matrixVerdict("committed")
	var cases []matrixCase
	add := func(name string, want matrixOutcome, draft func(w *matrixWorld) *matrixDraft, at func(w *matrixWorld, a *matrixAddress)) {
		cases = append(cases, matrixCase{name: "address: " + name, frames: func(w *matrixWorld) []matrixFrame {
			f := w.taken(draft(w))
			f.address = &matrixAddress{workspace: f.workspace, channel: f.channel}
			at(w, f.address)
			f.on = matrixBuses(want)
			return []matrixFrame{f}
		}})
	}
	class := func(class string) func(*matrixWorld, *matrixAddress) {
		return func(_ *matrixWorld, a *matrixAddress) { a.class = class }
	}
	peer := func(token func(w *matrixWorld) string) func(*matrixWorld, *matrixAddress) {
		return func(w *matrixWorld, a *matrixAddress) { a.class, a.token = "peer", token(w) }
	}
	tokenOfB := func(w *matrixWorld) string { return core.RouteToken(w.b) }
	for _, c := range []string{"ingress", "broadcast"} {
		add("another workspace, "+c, malformed, (*matrixWorld).say, func(_ *matrixWorld, a *matrixAddress) { a.workspace, a.class = "demo-2", c })
		add("another channel, "+c, malformed, (*matrixWorld).say, func(_ *matrixWorld, a *matrixAddress) { a.channel, a.class = "other", c })
		add("no channel's name, "+c, malformed, (*matrixWorld).say, func(_ *matrixWorld, a *matrixAddress) { a.channel, a.class = "General", c })
		add("public, "+c, committed, (*matrixWorld).say, class(c))
		add("a greet, "+c, committed, (*matrixWorld).greet, class(c))
	}
	for _, c := range []string{"shout", "broadcast/", "peer", "ingress/x"} {
		add("no class of ours, "+c, malformed, (*matrixWorld).say, class(c))
	}
	add("a peer of several levels", malformed, (*matrixWorld).open, peer(func(w *matrixWorld) string { return tokenOfB(w) + "/b/c" }))
	add("directed, ingress", committed, (*matrixWorld).open, class("ingress"))
	add("directed, broadcast", malformed, (*matrixWorld).open, class("broadcast"))
	add("directed, its peer", committed, (*matrixWorld).open, peer(tokenOfB))
	add("directed, another workspace's peer", malformed, (*matrixWorld).open, func(w *matrixWorld, a *matrixAddress) {
		a.workspace, a.class, a.token = "demo-2", "peer", tokenOfB(w)
	})
	add("directed, another peer", malformed, (*matrixWorld).open, peer(func(w *matrixWorld) string { return core.RouteToken(w.c) }))
	add("directed, the sender", malformed, (*matrixWorld).open, peer(func(w *matrixWorld) string { return core.RouteToken(w.a) }))
	add("directed, the token in capitals", malformed, (*matrixWorld).open, peer(func(w *matrixWorld) string {
		return strings.ToUpper(core.RouteToken(w.b))
	}))
	add("directed, the peer's id for a token", malformed, (*matrixWorld).open, peer(func(w *matrixWorld) string { return w.b }))
	add("public, a peer", malformed, (*matrixWorld).say, peer(tokenOfB))
	room := func(w *matrixWorld) *matrixDraft { return w.inRoom(w.say(), w.b).text("to", w.b) }
	add("a room, ingress", committed, room, class("ingress"))
	add("a room, broadcast", malformed, room, class("broadcast"))
	add("a room, the other party", committed, room, peer(tokenOfB))
	add("a room, another peer", malformed, room, peer(func(w *matrixWorld) string { return core.RouteToken(w.c) }))

	// Without a recipient the address is looked at once the room is known.
	for name, want := range map[string]matrixOutcome{
		"ingress": committed, "broadcast": malformed, "the other party": committed,
		"another peer": matrixRefused(core.StepState, core.ReasonMalformed), "the sender": matrixRefused(core.StepState, core.ReasonMalformed),
	} {
		cases = append(cases, matrixCase{name: "address: a room without a recipient, " + name, frames: func(w *matrixWorld) []matrixFrame {
			f := w.taken(w.inRoom(w.say(), w.b))
			f.on = matrixBuses(want)
			f.address = map[string]*matrixAddress{
				"ingress":         {class: "ingress"},
				"broadcast":       {class: "broadcast"},
				"the other party": {class: "peer", token: core.RouteToken(w.b)},
				"another peer":    {class: "peer", token: core.RouteToken(w.c)},
				"the sender":      {class: "peer", token: core.RouteToken(w.a)},
			}[name]
			f.address.workspace, f.address.channel = f.workspace, f.channel
			return []matrixFrame{w.taken(room(w)), f}
		}})
	}
	return cases
}
