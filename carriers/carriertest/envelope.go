package carriertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// The conversation that the suite's envelopes belong to, unless a recipient
// stands in one of its own.
const (
	testWorkspace = "ws-1"
	testChannel   = "lab"
	testSender    = "ada.far-side"
	keyMark       = "carriertest-"
	keyDigits     = 8
)

// keyIn finds the key of a frame in its payload; empty when there is none.
func keyIn(payload []byte) string {
	i := bytes.Index(payload, []byte(keyMark))
	if i < 0 || i+len(keyMark)+keyDigits > len(payload) {
		return ""
	}
	return string(payload[i : i+len(keyMark)+keyDigits])
}

// newKey gives the next key.
func (r *rig) newKey() string {
	r.frames++
	return fmt.Sprintf("%s%0*d", keyMark, keyDigits, r.frames)
}

// frame builds a frame of an ordinary say.
func (r *rig) frame(arrival core.Arrival) Frame {
	key := r.newKey()
	f := Frame{Key: key, Arrival: arrival, Payload: say(key, testWorkspace, testChannel, "", "hello")}
	f.Address = core.Address{WorkspaceID: testWorkspace, Channel: testChannel, Class: core.AddressBroadcast}
	if arrival == core.ArrivalIngress {
		f.Address.Class = core.AddressIngress
	}
	return f
}

// say writes the bytes of a say.
func say(key, workspace, channel, to, text string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"protocol":"%s","id":"%s","workspace_id":%q,"kind":"say","channel":"%s","surface":"thread",`+
		`"thread_id":"thread_conformance","from":"%s",`, core.Protocol, key, workspace, channel, testSender)
	if to != "" {
		fmt.Fprintf(&b, `"to":"%s",`, to)
	}
	fmt.Fprintf(&b, `"ts":%d,"body":{"text":"%s"}}`, time.Now().Unix(), text)
	return []byte(b.String())
}

// sized is a say of exactly n bytes.
func sized(key, workspace, channel string, n int) []byte {
	plain := len(say(key, workspace, channel, "", ""))
	return say(key, workspace, channel, "", strings.Repeat("x", max(0, n-plain)))
}

// odd is an envelope that a careless carrier would not pass on as it is.
type odd struct {
	name    string
	payload func(key string) []byte
}

// oddities are what is odd about the bytes of an envelope.
func oddities() []odd {
	with := func(rest string) func(string) []byte {
		return func(key string) []byte {
			return []byte(`{"protocol":"` + core.Protocol + `","id":"` + key + `",` + rest + `}`)
		}
	}
	return []odd{
		{"numbers", with(`"ext":{"a":1.10,"b":1e400,"c":9007199254740993,"d":-0,"e":1E+2}`)},
		{"escapes", with(`"body":{"text":"\u0041\/\b\f\u00e9\ud83d\ude00\u2028"}`)},
		{"key order", with(`"zeta":0,"alpha":{"z":1,"a":2},"kind":"say"`)},
		{"unicode", with(`"body":{"text":"žluťoučký 工作 😀 ` + "\u2028\u2029\ufeff" + `"}`)},
		{"markup", with(`"body":{"text":"<a href='x'>&amp;</a> %41 %%s ${HOME} \\r\\n"}`)},
		{"inner space", with("\t \"body\" :\t{ \"text\" :  \"x\" } , \"ext\":{ } ")},
		{"nulls", with(`"to":null,"proof":{"sig":null},"":""`)},
	}
}

// lineBreaks is an envelope with line breaks between its tokens.
func lineBreaks(key string) []byte {
	return []byte("{\"protocol\":\"" + core.Protocol + "\",\"id\":\"" + key + "\",\r\n\t\"body\":\n{\"text\":\"x\"}\r}")
}

// oneLine is how a line-framed carrier writes it.
func oneLine(raw []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if c == '\r' || c == '\n' {
			return ' '
		}
		return c
	}, raw)
}

// outbound builds the delivery of a say to the recipient.
func (r *rig) outbound(to core.Recipient) core.Outbound {
	key := r.newKey()
	workspace, channel := conversation(to)
	return r.deliver(to, &core.Envelope{
		Protocol: core.Protocol, ID: key, WorkspaceID: workspace, Kind: core.KindSay, Channel: channel,
		Surface: core.SurfaceThread, ThreadID: "thread_conformance", From: testSender, To: to.Peer,
		TS: time.Now().Unix(), Text: "hello", Raw: say(key, workspace, channel, to.Peer, "hello"),
	})
}

func (r *rig) deliver(to core.Recipient, e *core.Envelope) core.Outbound {
	r.sent++
	digest := sha256.Sum256(fmt.Appendf(nil, "delivery token of %d", r.sent))
	return core.Outbound{
		Delivery:  core.DeliveryID{Seq: r.sent, Recipient: 1},
		Token:     hex.EncodeToString(digest[:16]),
		Recipient: to,
		To:        e.To,
		Envelope:  e,
		Seq:       r.sent,
		Attempt:   1,
	}
}

// conversation is where the recipient can be spoken to.
func conversation(to core.Recipient) (workspace, channel string) {
	if to.Peer == "" {
		return testWorkspace, testChannel
	}
	return to.WorkspaceID, to.Channel
}

// routeToken is section 2's route token of a peer id, computed by the suite
// itself so that it does not believe the code under test.
func routeToken(peer string) string {
	digest := sha256.Sum256([]byte(peer))
	return hex.EncodeToString(digest[:16])
}
