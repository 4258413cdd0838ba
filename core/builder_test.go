package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// now is the instant at which the envelopes of these tests are fresh.
var now = time.Unix(1_800_000_000, 0)

func policy() core.FreshnessPolicy {
	return core.FreshnessPolicy{MaxReplayAge: 5 * time.Minute, MaxLifetime: 720 * time.Hour}
}

// draft is an envelope in the making: members in order, values as JSON text.
type draft struct {
	names  []string
	values map[string]string
}

func (d *draft) set(name, value string) *draft {
	if _, ok := d.values[name]; !ok {
		d.names = append(d.names, name)
	}
	d.values[name] = value
	return d
}

func (d *draft) drop(name string) *draft {
	for i, n := range d.names {
		if n == name {
			d.names = append(d.names[:i:i], d.names[i+1:]...)
		}
	}
	delete(d.values, name)
	return d
}

func (d *draft) raw() []byte {
	var b strings.Builder
	for i, n := range d.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + n + `":` + d.values[n])
	}
	return []byte("{" + b.String() + "}")
}

const (
	card = `{"peer_id":"planner.sess-1","display_name":"Planner","profiles_supported":["compozy-network/v0"],` +
		`"capabilities":["compare-readings"],"artifacts_supported":["capability"],"trust_modes_supported":["none"]}`
	capabilityDoc = `{"id":"compare-readings","summary":"Compare <now> & then.",` +
		`"outcome":"A table of differences > 5%.","constraints":["Read only"],` +
		`"digest":"sha256:26aef3ffebfeb93dfed27b7b54b1d00d6bc771fdbdab7171125834b3cc7654bf"}`
)

// valid drafts a correct envelope of each kind; the conversation kinds stand in
// a thread and belong to a unit of work.
func valid(kind core.Kind) *draft {
	d := (&draft{values: map[string]string{}}).
		set("protocol", `"compozy-network/v0"`).
		set("id", `"m-1"`).
		set("workspace_id", `"ws/alpha"`).
		set("kind", `"`+string(kind)+`"`).
		set("channel", `"builders"`).
		set("from", `"planner.sess-1"`).
		set("ts", "1800000000")
	if kind.Conversation() {
		d.set("surface", `"thread"`).
			set("thread_id", `"thread_plan-1"`).
			set("to", `"reviewer.sess-xyz"`).
			set("work_id", `"work-1"`)
	}
	bodies := map[core.Kind]string{
		core.KindGreet:      `{"peer_card":` + card + `,"summary":"hello"}`,
		core.KindWhois:      `{"type":"request","query":"reviewer"}`,
		core.KindSay:        `{"text":"Please review.","intent":"review","artifacts":[]}`,
		core.KindCapability: `{"capability":` + capabilityDoc + `}`,
		core.KindReceipt:    `{"for_id":"m-0","status":"accepted"}`,
		core.KindTrace:      `{"state":"working","message":"half way","result":{},"artifact_refs":[]}`,
		"direct":            `{"text":"An old kind."}`,
	}
	return d.set("body", bodies[kind])
}

// check runs steps 1 to 5 as the intake does.
func check(raw []byte) (*core.Envelope, *core.Rejection) {
	e, rej := core.Parse(raw)
	if rej != nil {
		return e, rej
	}
	return e, e.Validate(now, policy(), nil)
}

func mustCheck(t testing.TB, raw []byte) *core.Envelope {
	t.Helper()
	e, rej := check(raw)
	if rej != nil {
		t.Fatalf("refused %s: %v", raw, rej)
	}
	return e
}

// refusal is what a table case expects; the zero value expects acceptance.
type refusal struct {
	reason core.Reason
	step   core.Step
}

func (want refusal) verify(t *testing.T, rej *core.Rejection) {
	t.Helper()
	switch {
	case want.reason == "" && rej != nil:
		t.Errorf("refused in step %d: %v", rej.Step, rej)
	case want.reason == "":
	case rej == nil:
		t.Errorf("accepted, want %s in step %d", want.reason, want.step)
	case rej.Reason != want.reason || rej.Step != want.step:
		t.Errorf("got step %d %v, want step %d %s", rej.Step, rej, want.step, want.reason)
	}
}

var (
	ok         = refusal{}
	syntax     = refusal{core.ReasonMalformed, core.StepParse}
	badField   = refusal{core.ReasonMalformed, core.StepFields}
	badShape   = refusal{core.ReasonMalformed, core.StepShape}
	badSurface = refusal{core.ReasonInvalidSurface, core.StepShape}
	badBody    = refusal{core.ReasonMalformed, core.StepBody}
)
