package core_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func contentOf(t testing.TB, raw []byte) [32]byte {
	t.Helper()
	e, rej := core.Parse(raw)
	if rej != nil {
		t.Fatalf("refused %s: %v", raw, rej)
	}
	return e.Content
}

func TestContentIsTheHashOfTheCompactMembers(t *testing.T) {
	raw := "{ \"ts\" : 1800000000,\n\"id\" :\t\"a\\u0020 b\" , \"x\":[ 1 , { \"k\" : \" v \" } ],\"\\u0065xpires_at\":1800000001," +
		"\"protocol\":\"compozy-network/v0\",\"workspace_id\":\"w\",\"kind\":\"say\",\"channel\":\"c\",\"from\":\"p\"," +
		"\"pro\\u006ff\": { \"a\" : 1 },\"body\":{}, \"expires\":2 , \"Proof\":3 }"
	want := `{"id":"a\u0020 b","x":[1,{"k":" v "}],` +
		`"protocol":"compozy-network/v0","workspace_id":"w","kind":"say","channel":"c","from":"p","body":{},"expires":2}`
	raw = string(bytes.Replace([]byte(raw), []byte(`, "Proof":3`), nil, 1))
	if contentOf(t, []byte(raw)) != sha256.Sum256([]byte(want)) {
		t.Error("another hash")
	}
}

func TestContentOfTheLastAndTheFirstMemberLeftOut(t *testing.T) {
	const rest = `"protocol":"compozy-network/v0","id":"a","workspace_id":"w","kind":"say","channel":"c","from":"p","body":{}`
	want := sha256.Sum256([]byte("{" + rest + "}"))
	for _, raw := range []string{
		`{"ts":1,` + rest + `}`,
		`{` + rest + `,"ts":1}`,
		`{"proof":{},"ts":1,"expires_at":3,` + rest + `}`,
		`{` + rest + `,"proof":{},"ts":1,"expires_at":3}`,
		`{"proof":null,` + rest + `, "ts":1 }`,
	} {
		if contentOf(t, []byte(raw)) != want {
			t.Errorf("another hash of %s", raw)
		}
	}
}

func TestWhatChangesTheContent(t *testing.T) {
	base := func() *draft { return valid(core.KindSay).set("expires_at", "1800000100").set("proof", `{"a":1}`) }
	want := contentOf(t, base().raw())
	for name, c := range map[string]struct {
		draft *draft
		same  bool
	}{
		"later ts":         {base().set("ts", "1800000001"), true},
		"later expires_at": {base().set("expires_at", "1800000200"), true},
		"no expires_at":    {base().drop("expires_at"), true},
		"null expires_at":  {base().set("expires_at", "null"), true},
		"another proof":    {base().set("proof", `{"b":[]}`), true},
		"no proof":         {base().drop("proof"), true},
		"another text":     {base().set("body", `{"text":"other"}`), false},
		"another escape":   {base().set("body", `{"text":"Please review\u002e","intent":"review","artifacts":[]}`), false},
		"another order":    {base().drop("id").set("id", `"m-1"`), false},
		"null member more": {base().set("ext", "null"), false},
		"unknown member":   {base().set("x", "1"), false},
		"inner ts":         {base().set("body", `{"text":"Please review.","intent":"review","artifacts":[],"ts":1}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contentOf(t, c.draft.raw()) == want; got != c.same {
				t.Errorf("same content: %t", got)
			}
			var spread bytes.Buffer
			if err := json.Indent(&spread, c.draft.raw(), "\r\n", "\t "); err != nil {
				t.Fatal(err)
			}
			if got := contentOf(t, spread.Bytes()) == want; got != c.same {
				t.Errorf("same content with white space: %t", got)
			}
		})
	}
}
