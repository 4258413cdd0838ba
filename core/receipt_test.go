package core_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/compozy-gateway/gateway/core"
)

const gatewayPeer = "gateway.local"

func because(reason core.Reason) *core.Rejection {
	return &core.Rejection{Step: core.StepBody, Reason: reason, Detail: "body.text is blank"}
}

func TestReceiptForEveryReason(t *testing.T) {
	statuses := map[core.Reason]core.ReceiptStatus{
		core.ReasonExpired:            core.ReceiptExpired,
		core.ReasonDuplicate:          core.ReceiptDuplicate,
		core.ReasonUnsupportedKind:    core.ReceiptUnsupported,
		core.ReasonUnsupportedProfile: core.ReceiptUnsupported,
	}
	refused := mustCheck(t, valid(core.KindSay).set("trace_id", `"t-1"`).set("id", `"m \"1\" <é>"`).
		set("work_id", `" work-1 "`).set("expires_at", "1800000100").raw())
	seen := map[string]core.Reason{}
	for _, reason := range core.ReasonCodes() {
		t.Run(string(reason), func(t *testing.T) {
			raw, built := core.BuildReceipt(gatewayPeer, refused, because(reason), now)
			if !built {
				t.Fatal("not built")
			}
			e := mustCheck(t, raw)
			want := statuses[reason]
			if want == "" {
				want = core.ReceiptRejected
			}
			if *e.Receipt != (core.Receipt{
				ForID: refused.ID, Status: want, ReasonCode: string(reason), Detail: "body.text is blank",
			}) {
				t.Errorf("receipt %+v", e.Receipt)
			}
			if e.Kind != core.KindReceipt || e.From != gatewayPeer || e.To != refused.From ||
				e.ReplyTo != refused.ID || e.CausationID != refused.ID || e.TraceID != "t-1" ||
				e.WorkspaceID != refused.WorkspaceID || e.Channel != refused.Channel ||
				e.Container() != refused.Container() || e.WorkID != "work-1" ||
				e.HasExpiry || e.TS != now.Unix() || e.Mentions != nil {
				t.Errorf("envelope %s", raw)
			}
			if other, ok := seen[e.ID]; ok {
				t.Errorf("same id as for %s", other)
			}
			seen[e.ID] = reason
		})
	}
}

func TestARepeatedRefusalIsTheSameMessage(t *testing.T) {
	refused := mustCheck(t, valid(core.KindCapability).raw())
	build := func(e *core.Envelope, at time.Time) *core.Envelope {
		raw, built := core.BuildReceipt(gatewayPeer, e, because(core.ReasonBusy), at)
		if !built {
			t.Fatal("not built")
		}
		receipt, rej := core.Parse(raw)
		if rej != nil {
			t.Fatal(rej)
		}
		return receipt
	}
	first, second := build(refused, now), build(refused, now.Add(time.Hour))
	if first.ID != second.ID || first.Content != second.Content {
		t.Error("the same refusal gave another message")
	}
	if first.TraceID != "" || strings.Contains(string(first.Raw), "trace_id") {
		t.Error("a trace_id was invented")
	}
	for name, d := range map[string]*draft{
		"id":        valid(core.KindCapability).set("id", `"m-2"`),
		"workspace": valid(core.KindCapability).set("workspace_id", `"ws"`),
	} {
		if build(mustCheck(t, d.raw()), now).ID == first.ID {
			t.Errorf("another %s gave the same id", name)
		}
	}
}

func TestNoReceiptForWhatIsNotAnswered(t *testing.T) {
	for name, d := range map[string]*draft{
		"greet":           valid(core.KindGreet),
		"whois":           valid(core.KindWhois),
		"receipt":         valid(core.KindReceipt),
		"trace":           valid(core.KindTrace),
		"unknown kind":    valid("direct"),
		"no work":         valid(core.KindSay).drop("work_id"),
		"bad work":        valid(core.KindSay).set("work_id", `"a/b"`),
		"direct room":     room(valid(core.KindSay)),
		"no surface":      valid(core.KindSay).drop("surface"),
		"no thread":       valid(core.KindSay).drop("thread_id"),
		"bad thread":      valid(core.KindSay).set("thread_id", `"x"`),
		"no from":         valid(core.KindSay).drop("from"),
		"bad from":        valid(core.KindSay).set("from", `"A"`),
		"no id":           valid(core.KindSay).drop("id"),
		"bad id":          valid(core.KindSay).set("id", `"a\nb"`),
		"bad workspace":   valid(core.KindSay).set("workspace_id", `"a.b"`),
		"bad channel":     valid(core.KindSay).set("channel", `"A"`),
		"padded trace_id": valid(core.KindSay).set("trace_id", `" t"`),
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := core.Parse(d.raw())
			if e == nil {
				t.Fatal("nothing could be read")
			}
			if raw, built := core.BuildReceipt(gatewayPeer, e, because(core.ReasonMalformed), now); built {
				t.Errorf("built %s", raw)
			}
		})
	}
	good := mustCheck(t, valid(core.KindSay).raw())
	for name, build := range map[string]func() ([]byte, bool){
		"nothing":   func() ([]byte, bool) { return core.BuildReceipt(gatewayPeer, nil, because(core.ReasonMalformed), now) },
		"accepted":  func() ([]byte, bool) { return core.BuildReceipt(gatewayPeer, good, nil, now) },
		"by nobody": func() ([]byte, bool) { return core.BuildReceipt("", good, because(core.ReasonMalformed), now) },
		"by an impossible id": func() ([]byte, bool) {
			return core.BuildReceipt("Gateway", good, because(core.ReasonMalformed), now)
		},
	} {
		if raw, built := build(); built {
			t.Errorf("%s: built %s", name, raw)
		}
	}
}

func TestReceiptDetailIsShort(t *testing.T) {
	refused := mustCheck(t, valid(core.KindSay).raw())
	raw, _ := core.BuildReceipt(gatewayPeer, refused, &core.Rejection{
		Reason: core.ReasonInternal, Detail: strings.Repeat("aé", 1000),
	}, now)
	detail := mustCheck(t, raw).Receipt.Detail
	if len(detail) > 200 || len(detail) < 190 || !utf8.ValidString(detail) {
		t.Errorf("detail of %d bytes: %q", len(detail), detail)
	}
}
