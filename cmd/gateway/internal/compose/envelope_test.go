package compose

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestWhatIsComposedIsValid(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cases := []struct {
		name string
		make func(e *Envelope)
		want string
	}{
		{
			"say in a thread",
			func(e *Envelope) {
				e.InThread("thread_main")
				e.Stamp(now, 0)
			},
			`{"protocol":"compozy-network/v0","id":"m1","workspace_id":"a/b","kind":"say","channel":"general","surface":"thread","thread_id":"thread_main","from":"alice","to":null,"ts":1800000000,"body":{"text":"<a> & b"},"proof":null}`,
		},
		{
			"say in a direct room, addressed and bounded",
			func(e *Envelope) {
				e.InDirectRoom("direct_0123456789abcdef0123456789abcdef")
				e.Address("bob")
				e.Stamp(now, time.Minute)
			},
			`{"protocol":"compozy-network/v0","id":"m1","workspace_id":"a/b","kind":"say","channel":"general","surface":"direct","direct_id":"direct_0123456789abcdef0123456789abcdef","from":"alice","to":"bob","ts":1800000000,"expires_at":1800000060,"body":{"text":"<a> & b"},"proof":null}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := Envelope{ID: "m1", WorkspaceID: "a/b", Kind: core.KindSay, Channel: "general", From: "alice", Body: SayBody{Text: "<a> & b"}}
			c.make(&e)
			raw, err := e.JSON()
			if err != nil || string(raw) != c.want {
				t.Fatalf("got %s, %v; want %s", raw, err, c.want)
			}
			parsed, rejection := core.Parse(raw)
			if rejection == nil {
				rejection = parsed.CheckShape()
			}
			if rejection == nil {
				rejection = parsed.CheckBody()
			}
			if rejection != nil {
				t.Error(rejection)
			}
		})
	}
}

func TestIDsAreNewUUIDs(t *testing.T) {
	var a, b Envelope
	a.Stamp(time.Unix(1, 0), 0)
	b.Stamp(time.Unix(1, 0), 0)
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !form.MatchString(a.ID) || a.ID == b.ID {
		t.Errorf("got %s and %s", a.ID, b.ID)
	}
}

func TestABodyThatCannotBeWrittenIsAnError(t *testing.T) {
	e := Envelope{Body: json.RawMessage("{")}
	if _, err := e.JSON(); err == nil {
		t.Error("it was written")
	}
}
