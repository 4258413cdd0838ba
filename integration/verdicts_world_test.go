package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// matrixGroups is how many triples of peers share the cases. The gateway limits
// the receipts to one sender, so it must not be the same one all the time.
const matrixGroups = 12

// matrixWorld holds the names of one case, which no other case uses; only the
// peers are shared.
type matrixWorld struct {
	name    string
	a, b, c string
	now     int64
	ids     int
}

func newMatrixWorld(number int) *matrixWorld {
	group := strconv.Itoa(number % matrixGroups)
	return &matrixWorld{name: "case-" + strconv.Itoa(number), a: "a-" + group, b: "b-" + group, c: "c-" + group, now: time.Now().Unix()}
}

func (w *matrixWorld) thread() string { return "thread_" + w.name }
func (w *matrixWorld) work() string   { return "work-" + w.name }

func (w *matrixWorld) room() string {
	sum := sha256.Sum256([]byte(w.name))
	return "direct_" + hex.EncodeToString(sum[:16])
}

// matrixDraft is an envelope in the making: member by member, the values as JSON.
type matrixDraft struct {
	names  []string
	values map[string]string
	// other is the other party of a direct room, for an envelope that leaves its
	// recipient out.
	other string
}

func (d *matrixDraft) set(name, value string) *matrixDraft {
	if _, ok := d.values[name]; !ok {
		d.names = append(d.names, name)
	}
	d.values[name] = value
	return d
}

func (d *matrixDraft) text(name, value string) *matrixDraft { return d.set(name, matrixQuote(value)) }

func (d *matrixDraft) drop(names ...string) *matrixDraft {
	for _, name := range names {
		delete(d.values, name)
	}
	return d
}

// String is the envelope on one line.
func (d *matrixDraft) String() string {
	var members []string
	for _, name := range d.names {
		if value, ok := d.values[name]; ok {
			members = append(members, matrixQuote(name)+":"+value)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// named gives the text of a member, or fallback where it is no text that fits.
func (d *matrixDraft) named(member string, fits func(string) bool, fallback string) string {
	var s string
	if json.Unmarshal([]byte(d.values[member]), &s) != nil || !fits(s) {
		return fallback
	}
	return s
}

func matrixQuote(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always can be written
	}
	return string(quoted)
}

// frame sends the draft as it stands.
func (w *matrixWorld) frame(d *matrixDraft, want matrixOutcome) matrixFrame {
	sender := func(s string) bool { return core.ValidPeerID(s) && s != matrixGateway }
	return matrixFrame{
		payload:   d.String(),
		sender:    d.named("from", sender, w.a),
		workspace: d.named("workspace_id", core.ValidWorkspaceID, matrixWorkspace),
		channel:   d.named("channel", core.ValidChannel, matrixChannel),
		to:        d.named("to", core.ValidPeerID, d.other),
		want:      want,
	}
}

// taken sends a draft that must be committed.
func (w *matrixWorld) taken(d *matrixDraft) matrixFrame {
	return w.frame(d, matrixVerdict("committed"))
}

// bytes sends what need not be an envelope.
func (w *matrixWorld) bytes(payload string, want matrixOutcome) matrixFrame {
	return matrixFrame{payload: payload, sender: w.a, workspace: matrixWorkspace, channel: matrixChannel, want: want}
}

// draft begins a message of the kind with everything that each message has.
func (w *matrixWorld) draft(kind core.Kind, from string) *matrixDraft {
	w.ids++
	d := &matrixDraft{values: map[string]string{}}
	d.text("protocol", core.Protocol).text("id", fmt.Sprintf("%s-%d", w.name, w.ids)).text("workspace_id", matrixWorkspace)
	d.text("kind", string(kind)).text("channel", matrixChannel).text("from", from)
	return d.set("ts", strconv.FormatInt(w.now, 10))
}

func (w *matrixWorld) inThread(d *matrixDraft) *matrixDraft {
	return d.text("surface", "thread").text("thread_id", w.thread())
}

// inRoom moves a message from its thread to the room; other is the room's other
// party.
func (w *matrixWorld) inRoom(d *matrixDraft, other string) *matrixDraft {
	d.other = other
	return d.drop("thread_id").text("surface", "direct").text("direct_id", w.room())
}

func (w *matrixWorld) say() *matrixDraft { return w.sayFrom(w.a) }

func (w *matrixWorld) sayFrom(from string) *matrixDraft {
	return w.inThread(w.draft(core.KindSay, from)).set("body", `{"text":"hello"}`)
}

// open opens the work that a asks of b.
func (w *matrixWorld) open() *matrixDraft { return w.about(w.say(), w.b) }

// about adds the work and the recipient.
func (w *matrixWorld) about(d *matrixDraft, to string) *matrixDraft {
	return d.text("to", to).text("work_id", w.work())
}

func (w *matrixWorld) receipt(from, to string, status core.ReceiptStatus) *matrixDraft {
	reason := `,"reason_code":"busy"`
	if status == core.ReceiptAccepted {
		reason = ""
	}
	d := w.about(w.inThread(w.draft(core.KindReceipt, from)), to)
	return d.set("body", `{"for_id":"`+w.name+`-1","status":"`+string(status)+`"`+reason+`}`)
}

func (w *matrixWorld) trace(from, to string, state core.WorkState) *matrixDraft {
	return w.about(w.inThread(w.draft(core.KindTrace, from)), to).set("body", `{"state":"`+string(state)+`"}`)
}

// capability is a transfer from a to b with the digest that belongs to it.
func (w *matrixWorld) capability() *matrixDraft {
	return w.about(w.inThread(w.draft(core.KindCapability, w.a)), w.b).set("body", matrixCapability(""))
}

// matrixCapability is a capability's body; more stands in the document, with a
// comma at its end.
func matrixCapability(more string) string {
	document := `{` + more + `"id":"rotate","summary":"s","outcome":"o"`
	digest, err := core.CapabilityDigest([]byte(document + `}`))
	if err != nil {
		panic(err) // the table is wrong
	}
	return `{"capability":` + document + `,"digest":"` + digest + `"}}`
}

func matrixCard(peer string) string {
	return `{"peer_id":"` + peer + `","profiles_supported":[],"capabilities":[],"artifacts_supported":[],"trust_modes_supported":[]}`
}

func (w *matrixWorld) greet() *matrixDraft {
	return w.draft(core.KindGreet, w.a).set("body", `{"peer_card":`+matrixCard(w.a)+`}`)
}

func (w *matrixWorld) whois() *matrixDraft {
	return w.draft(core.KindWhois, w.a).set("body", `{"type":"request"}`)
}

func (w *matrixWorld) whoisResponse() *matrixDraft {
	d := w.draft(core.KindWhois, w.a).text("to", w.b).text("reply_to", "the-question")
	return d.set("body", `{"type":"response","peer_card":`+matrixCard(w.a)+`}`)
}

// valid is a draft of the kind that is accepted, once its work is open.
func (w *matrixWorld) valid(kind core.Kind) *matrixDraft {
	switch kind {
	case core.KindGreet:
		return w.greet()
	case core.KindWhois:
		return w.whois()
	case core.KindSay:
		return w.say()
	case core.KindCapability:
		return w.capability()
	case core.KindReceipt:
		return w.receipt(w.a, w.b, core.ReceiptCanceled)
	case core.KindTrace:
		return w.trace(w.a, w.b, core.WorkWorking)
	}
	panic("the table does not know the kind " + string(kind))
}
