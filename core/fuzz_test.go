package core_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func addSeeds(f *testing.F) {
	for _, kind := range core.Kinds() {
		f.Add(valid(kind).raw())
		f.Add(valid(kind).set("expires_at", "1800000100").set("ext", `{"a":[1.10,{"b":null}]}`).raw())
	}
	for _, object := range namedObjects() {
		f.Add(object.inside(`,"ID":1,"x":"\ud83d\ude00\\\""`))
	}
	f.Add(room(valid(core.KindSay)).set("mentions", `["a","b","a"]`).raw())
	f.Add(valid(core.KindSay).set("interaction_id", "null").raw())
	f.Add(valid(core.KindSay).set(`\u0069nteraction_id`, "1").raw())
	for _, s := range []string{"", "{", "{}", "[]", `{"":{}}`, `{"a":"\\"}`, " {\"a\" : [ ] , \"b\":{ } } ", "{}{}", `{"id":"\ud800"}`} {
		f.Add([]byte(s))
	}
}

func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		e, rej := core.Parse(raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("the given bytes were changed")
		}
		if rej != nil {
			if rej.Step != core.StepParse && rej.Step != core.StepFields || len(rej.Detail) > 200 {
				t.Fatalf("refusal %d %v", rej.Step, rej)
			}
			core.BuildReceipt(gatewayPeer, e, rej, now)
			return
		}
		if !bytes.Equal(e.Raw, bytes.Trim(raw, " \t\r\n")) {
			t.Fatalf("raw %q", e.Raw)
		}
		sameReading(t, e)
		sameContent(t, e)
		afterParse(t, e)
	})
}

// sameReading holds that encoding/json, asked for the exact names, reads what
// the envelope says.
func sameReading(t *testing.T, e *core.Envelope) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(e.Raw, &members); err != nil {
		t.Fatalf("encoding/json does not read it: %v", err)
	}
	for name, got := range map[string]string{
		"protocol": e.Protocol, "id": e.ID, "workspace_id": e.WorkspaceID, "kind": string(e.Kind),
		"channel": e.Channel, "surface": string(e.Surface), "thread_id": e.ThreadID, "direct_id": e.DirectID,
		"from": e.From, "to": e.To, "reply_to": e.ReplyTo, "trace_id": e.TraceID, "causation_id": e.CausationID,
	} {
		var want string
		if v, given := members[name]; given && json.Unmarshal(v, &want) != nil || got != want {
			t.Fatalf("%s is %q, not %q", name, got, want)
		}
	}
	var work string
	if v, given := members["work_id"]; given && json.Unmarshal(v, &work) != nil || e.WorkID != strings.TrimSpace(work) {
		t.Fatalf("work_id is %q, not %q", e.WorkID, work)
	}
	var ts, expires int64
	if json.Unmarshal(members["ts"], &ts) != nil || e.TS != ts {
		t.Fatalf("ts is %d, not %d", e.TS, ts)
	}
	if v, given := members["expires_at"]; given && json.Unmarshal(v, &expires) != nil || e.ExpiresAt != expires {
		t.Fatalf("expires_at is %d, not %d", e.ExpiresAt, expires)
	}
	for name, got := range map[string][]byte{"body": e.Body, "ext": e.Ext, "proof": e.Proof} {
		if want := members[name]; !bytes.Equal(got, want) && string(want) != "null" {
			t.Fatalf("%s is %s, not %s", name, got, want)
		}
	}
}

func sameContent(t *testing.T, e *core.Envelope) {
	t.Helper()
	var spread, compact bytes.Buffer
	if json.Indent(&spread, e.Raw, " ", "\t") != nil || json.Compact(&compact, e.Raw) != nil {
		t.Fatal("encoding/json does not read it")
	}
	for _, other := range [][]byte{spread.Bytes(), compact.Bytes(), core.OneLine(e.Raw)} {
		again, rej := core.Parse(other)
		if rej != nil || again.Content != e.Content || again.ID != e.ID {
			t.Fatalf("with other white space: %v", rej)
		}
	}
}

// afterParse runs the further steps, which must not panic whatever came.
func afterParse(t *testing.T, e *core.Envelope) {
	t.Helper()
	_ = e.CheckFresh(now, policy())
	shape, body := e.CheckShape(), e.CheckBody()
	e.CatalogueQuery()
	if shape != nil || body != nil {
		return
	}
	if raw, built := core.BuildReceipt(gatewayPeer, e, because(core.ReasonBusy), now); built {
		mustCheck(t, raw)
	}
	if e.WorkID != "" {
		if _, rej := core.OpenWork(e).Apply(e); rej != nil && rej.Reason != core.ReasonMalformed {
			t.Fatalf("a message does not fit the work it opens: %v", rej)
		}
	}
}

func FuzzCapabilityDigest(f *testing.F) {
	f.Add([]byte(capabilityDoc))
	f.Add([]byte(`{"id":"a","summary":"<\u2028>","outcome":" o ","requirements":["b","a"],"examples":[" "]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		digest, err := core.CapabilityDigest(doc)
		if err != nil {
			return
		}
		body := []byte(`{"capability":` + string(doc) + `}`)
		_, rej := check(valid(core.KindCapability).set("body", string(body)).raw())
		if rej == nil && !bytes.Contains(doc, []byte(digest)) {
			t.Fatalf("%s was accepted without its digest", strconv.Quote(string(doc)))
		}
	})
}
