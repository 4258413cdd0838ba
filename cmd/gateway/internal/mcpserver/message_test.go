package mcpserver

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/compozy-gateway/gateway/core"
)

func TestMessagesAreShownWithTheirContentApart(t *testing.T) {
	const head = `{"protocol":"compozy-network/v0","id":"m1","workspace_id":"w","kind":"say","channel":"c","surface":"thread","thread_id":"thread_main","from":"a","ts":1800000000,`
	cases := []struct {
		name, raw, text, body string
	}{
		{"text alone", head + `"body":{"text":"hi \u0041"}}`, "hi A", ""},
		{"text and more", head + `"body":{"text":"hi","intent":"x", "n":1.10}}`, "", `{"text":"hi","intent":"x", "n":1.10}`},
		{"say without its text", head + `"body":{"txt":"hi"}}`, "", `{"txt":"hi"}`},
		{"no envelope", `[1,2]`, "", `[1,2]`},
		{"no JSON", `hello`, "", `hello`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if m := show([]byte(c.raw), shownBytes); m.Text != c.text || m.Body != c.body || m.Truncated {
				t.Errorf("got %+v", m)
			}
		})
	}
	m := show([]byte(head+`"to":"b","mentions":["x"],"work_id":"w1","reply_to":"r","trace_id":"t","causation_id":"k","expires_at":1800000060,"body":{"text":"hi"}}`), shownBytes)
	if m.ID != "m1" || m.Kind != core.KindSay || m.From != "a" || m.To != "b" || m.WorkID != "w1" || m.ReplyTo != "r" || m.TraceID != "t" ||
		m.CausationID != "k" || m.ThreadID != "thread_main" || m.SentAt != "2027-01-15T08:00:00Z" || m.ExpiresAt != "2027-01-15T08:01:00Z" {
		t.Errorf("got %+v", m)
	}
}

func TestContentIsCutBetweenCharacters(t *testing.T) {
	for limit := range 9 {
		got, shortened := cut("aé😀b", limit)
		if len(got) > limit || !utf8.ValidString(got) || !strings.HasPrefix("aé😀b", got) || shortened != (limit < 8) {
			t.Errorf("at %d: %q, %v", limit, got, shortened)
		}
	}
}

func TestAnAnswerAlwaysHoldsOneMessage(t *testing.T) {
	var p page
	if !p.add(message{Text: strings.Repeat("x", pageBytes+1)}) || p.add(message{Text: "y"}) {
		t.Errorf("behind a message that is too large for an answer it holds %d", len(p.messages))
	}
	p = page{}
	if !p.add(message{Text: strings.Repeat("x", pageBytes-1)}) || !p.add(message{Body: "y"}) || p.add(message{Body: "z"}) {
		t.Errorf("it holds %d messages of %d bytes", len(p.messages), p.used)
	}
}
