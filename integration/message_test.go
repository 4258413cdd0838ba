//go:build brokers

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// message is an envelope that a test writes. What is empty is left out.
type message struct {
	id, kind, from, to, work string
	// surface and container are the main thread unless told otherwise.
	surface, container string
	// body is JSON.
	body string
	// ts is in Unix seconds; zero is now.
	ts int64
	// more is further members as JSON, without the comma before them.
	more string
}

// String is the envelope on one line.
func (m message) String() string {
	var b strings.Builder
	member := func(name, value string) {
		if value == "" {
			return
		}
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // a string always can be written
		}
		fmt.Fprintf(&b, "%q:%s,", name, text)
	}
	b.WriteString(`{"protocol":"compozy-network/v0",`)
	member("id", m.id)
	member("workspace_id", workspace)
	member("kind", m.kind)
	member("channel", channel)
	switch {
	case m.kind == "greet" || m.kind == "whois":
	case m.surface == "direct":
		member("surface", "direct")
		member("direct_id", m.container)
	default:
		member("surface", "thread")
		if m.container == "" {
			m.container = thread
		}
		member("thread_id", m.container)
	}
	member("from", m.from)
	member("to", m.to)
	member("work_id", m.work)
	if m.ts == 0 {
		m.ts = time.Now().Unix()
	}
	fmt.Fprintf(&b, `"ts":%d,"body":%s`, m.ts, m.body)
	if m.more != "" {
		b.WriteString("," + m.more)
	}
	b.WriteString("}")
	return b.String()
}

// unusual is an ext whose every byte must survive: spellings of numbers, the
// order of keys, and escapes that mean a plain character.
const unusual = `"ext":{"zz":1.10,"a":1e400,"big":9007199254740993,"neg":-0,"esc":"\u0041\/\u00e9\ud83d\ude00","raw":"é😀\u2028","empty":{},"n":null}`

func say(id, from, text string) message {
	body, err := json.Marshal(object{"text": text})
	if err != nil {
		panic(err) // a string always can be written
	}
	return message{id: id, kind: "say", from: from, body: string(body)}
}

// opener opens work.
func opener(id, from, to, work string) message {
	m := say(id, from, "please")
	m.to, m.work = to, work
	return m
}

func receipt(id, from, to, work, forID, status string) message {
	return message{id: id, kind: "receipt", from: from, to: to, work: work, body: fmt.Sprintf(`{"for_id":%q,"status":%q}`, forID, status)}
}

func trace(id, from, to, work, state string) message {
	return message{id: id, kind: "trace", from: from, to: to, work: work, body: fmt.Sprintf(`{"state":%q}`, state)}
}

// pretty spreads an envelope over several lines, as people write them.
func pretty(t *testing.T, m message) string {
	t.Helper()
	text := strings.ReplaceAll(m.String(), `,"`, ",\r\n\t\"")
	if text == m.String() || !json.Valid([]byte(text)) {
		t.Fatalf("not spread over lines: %s", text)
	}
	return text
}

// oneLine is an envelope as carriers made of lines write it.
func oneLine(payload string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(payload)
}
