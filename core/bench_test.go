package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// asOthersRead is an envelope as a receiver would read it with encoding/json.
type asOthersRead struct {
	Protocol    string          `json:"protocol"`
	ID          string          `json:"id"`
	WorkspaceID string          `json:"workspace_id"`
	Kind        string          `json:"kind"`
	Channel     string          `json:"channel"`
	Surface     string          `json:"surface"`
	ThreadID    string          `json:"thread_id"`
	DirectID    string          `json:"direct_id"`
	From        string          `json:"from"`
	To          string          `json:"to"`
	Mentions    []string        `json:"mentions"`
	WorkID      string          `json:"work_id"`
	ReplyTo     string          `json:"reply_to"`
	TraceID     string          `json:"trace_id"`
	CausationID string          `json:"causation_id"`
	TS          int64           `json:"ts"`
	ExpiresAt   *int64          `json:"expires_at"`
	Body        json.RawMessage `json:"body"`
	Proof       json.RawMessage `json:"proof"`
	Ext         json.RawMessage `json:"ext"`
}

// sayOf drafts a say of about so many bytes with every correlation field.
func sayOf(size int) []byte {
	d := valid(core.KindSay).
		set("id", `"7f0c2f6e-58a5-4f0e-9a53-0f3f0e9c2a11"`).
		set("mentions", `["reviewer.sess-xyz","builder.sess-2"]`).
		set("reply_to", `"7f0c2f6e-58a5-4f0e-9a53-0f3f0e9c2a10"`).
		set("trace_id", `"trace-1"`).
		set("expires_at", "1800000100").
		set("ext", `{"acme.priority":3}`)
	room := size - len(d.set("body", `{"text":""}`).raw())
	const sentence = "Please review the change of the key rotation. "
	text := strings.Repeat(sentence, room/len(sentence)+1)[:room]
	return d.set("body", `{"text":"`+text+`"}`).raw()
}

// capabilityOf drafts a capability of about so many bytes.
func capabilityOf(t testing.TB, size int) []byte {
	t.Helper()
	doc := func(text, digest string) string {
		return `{"id":"rotate-device-keys","summary":"Rotate the keys of one device.","outcome":"` + text + `",` +
			`"version":"2.1.0","context_needed":["device id","site"],"execution_outline":["Drain","Rotate","Verify"],` +
			`"constraints":["Read only"],"requirements":["a-drain-queue","read-inventory"],"digest":"` + digest + `"}`
	}
	d := valid(core.KindCapability)
	empty := d.set("body", `{"capability":`+doc("", strings.Repeat("0", 71))+`}`).raw()
	text := strings.Repeat("x", size-len(empty))
	digest, err := core.CapabilityDigest([]byte(doc(text, "")))
	if err != nil {
		t.Fatal(err)
	}
	return d.set("body", `{"capability":`+doc(text, digest)+`}`).raw()
}

func samples(t testing.TB) []struct {
	name string
	raw  []byte
} {
	t.Helper()
	return []struct {
		name string
		raw  []byte
	}{
		{"say 600 B", sayOf(600)},
		{"capability 1.2 KiB", capabilityOf(t, 1200)},
		{"say 64 KiB", sayOf(64 << 10)},
		{"say 1 MiB", sayOf(1 << 20)},
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, s := range samples(b) {
		b.Run(s.name, func(b *testing.B) { benchmarkCheck(b, s.raw) })
	}
}

func benchmarkCheck(b *testing.B, raw []byte) {
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		parseShapeBody(b, raw)
	}
}

// BenchmarkUnmarshal is what BenchmarkCheck is measured against.
func BenchmarkUnmarshal(b *testing.B) {
	for _, s := range samples(b) {
		b.Run(s.name, func(b *testing.B) { benchmarkUnmarshal(b, s.raw) })
	}
}

func benchmarkUnmarshal(b *testing.B, raw []byte) {
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var o asOthersRead
		if err := json.Unmarshal(raw, &o); err != nil {
			b.Fatal(err)
		}
	}
}

func parseShapeBody(t testing.TB, raw []byte) {
	e, rej := core.Parse(raw)
	if rej == nil {
		rej = e.CheckShape()
	}
	if rej == nil {
		rej = e.CheckBody()
	}
	if rej != nil {
		t.Fatal(rej)
	}
}
