package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// The table of verdicts: cases, each some frames and the outcome of every one of
// them. A case knows nothing of carriers but what the protocol itself tells
// apart.

// The names in most envelopes of the table.
const (
	matrixWorkspace = "demo"
	matrixChannel   = "general"
	matrixGateway   = "gateway.local"
)

// matrixCase is some frames that are sent in order.
type matrixCase struct {
	name string
	// frames makes what is sent. It is called anew for each carrier, so that the
	// times in the envelopes are those of the sending.
	frames func(w *matrixWorld) []matrixFrame
	// together: the frames are sent without waiting for the outcome of one before
	// the next.
	together bool
	// state is the state of the world's work in the end; empty is not looked at.
	state core.WorkState
}

// matrixFrame is one frame, and what must become of it.
type matrixFrame struct {
	payload string
	// sender is whose stdio agent writes it.
	sender, workspace, channel string
	// to is whose address it goes to natively; empty is the broadcast address.
	to string
	// address is used on the buses whatever the way; nil leaves it to the way.
	address *matrixAddress
	want    matrixOutcome
	// on holds the outcome on the ways where it is another.
	on map[matrixWay]matrixOutcome
}

func (f matrixFrame) outcome(on matrixWay) matrixOutcome {
	if other, ok := f.on[on]; ok {
		return other
	}
	return f.want
}

// matrixAddress is an address on a bus.
type matrixAddress struct {
	workspace, channel string
	// class is broadcast, ingress or peer; token belongs to the last.
	class, token string
}

// matrixWay is one way to send frames to a gateway.
type matrixWay string

const (
	matrixHTTP       matrixWay = "http"
	matrixNDJSON     matrixWay = "ndjson"
	matrixNATS       matrixWay = "nats ingress"
	matrixNATSNative matrixWay = "nats native"
	matrixMQTT       matrixWay = "mqtt ingress"
	matrixMQTTNative matrixWay = "mqtt native"
	matrixStdio      matrixWay = "stdio"
)

func matrixWays() []matrixWay {
	return []matrixWay{matrixHTTP, matrixNDJSON, matrixNATS, matrixNATSNative, matrixMQTT, matrixMQTTNative, matrixStdio}
}

// matrixBuses gives the outcome for every way that has addresses.
func matrixBuses(o matrixOutcome) map[matrixWay]matrixOutcome {
	return map[matrixWay]matrixOutcome{matrixNATS: o, matrixNATSNative: o, matrixMQTT: o, matrixMQTTNative: o}
}

// matrixOutcome is what becomes of a frame.
type matrixOutcome struct {
	// verdict is committed, duplicate, parked, rejected, or unheard for what is no
	// frame at all on its carrier.
	verdict string
	reason  core.Reason
	// step is where it is refused, by section 3 of docs/protocol.md: it decides
	// whether a receipt is owed.
	step core.Step
	// tooLarge refusals have an HTTP status of their own.
	tooLarge bool
}

func (o matrixOutcome) String() string {
	if o.reason != "" {
		return o.verdict + " " + string(o.reason)
	}
	return o.verdict
}

func matrixVerdict(verdict string) matrixOutcome { return matrixOutcome{verdict: verdict} }

func matrixRefused(step core.Step, reason core.Reason) matrixOutcome {
	return matrixOutcome{verdict: "rejected", reason: reason, step: step}
}

// matrixOne is a case of one frame.
func matrixOne(name string, want matrixOutcome, draft func(w *matrixWorld) *matrixDraft) matrixCase {
	return matrixCase{name: name, frames: func(w *matrixWorld) []matrixFrame {
		return []matrixFrame{w.frame(draft(w), want)}
	}}
}

// matrixCases is the whole table.
func matrixCases() []matrixCase {
	var all []matrixCase
	for _, part := range [][]matrixCase{
		matrixByteCases(), matrixFieldCases(), matrixFreshnessCases(), matrixShapeCases(), matrixBodyCases(),
		matrixScopeCases(), matrixDedupCases(), matrixWorkCases(), matrixRoomCases(), matrixAddressCases(),
	} {
		all = append(all, part...)
	}
	slices.SortFunc(all, func(a, b matrixCase) int { return strings.Compare(a.name, b.name) })
	return all
}

func TestTheTableOfVerdictsCoversTheClosedSets(t *testing.T) {
	names, reasons, kinds := map[string]bool{}, map[core.Reason]bool{}, map[string]bool{}
	for number, c := range matrixCases() {
		if names[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		names[c.name] = true
		for _, f := range c.frames(newMatrixWorld(number)) {
			reasons[f.want.reason] = true
			for _, other := range f.on {
				reasons[other.reason] = true
			}
			var head struct{ Kind string }
			if json.Unmarshal([]byte(f.payload), &head) == nil && f.want.verdict == "committed" {
				kinds[head.Kind] = true
			}
		}
	}
	// Reasons that no settled frame can have: a profile is checked only where the
	// trust profile is on, a parked message that waited in vain has been settled
	// long before, and internal is a fault of our own.
	unreachable := map[core.Reason]bool{
		core.ReasonUnsupportedProfile: true, core.ReasonNotFound: true, core.ReasonInternal: true,
	}
	for _, reason := range core.ReasonCodes() {
		if reasons[reason] == unreachable[reason] {
			t.Errorf("the table reaches the reason %s: %t", reason, reasons[reason])
		}
	}
	for _, kind := range core.Kinds() {
		if !kinds[string(kind)] {
			t.Errorf("the table commits no %s", kind)
		}
	}
}
