package core_test

import (
	"bytes"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestOneLine(t *testing.T) {
	for given, want := range map[string]string{
		``:                         ``,
		`{"a":"\n\r"}`:             `{"a":"\n\r"}`,
		"{\r\n\t\"a\":\n1\r}":      "{  \t\"a\": 1 }",
		"{\"a\":\"\u2028\u2029\"}": "{\"a\":\"\u2028\u2029\"}",
	} {
		raw := []byte(given)
		if got := string(core.OneLine(raw)); got != want {
			t.Errorf("%q gave %q", given, got)
		}
		if string(raw) != given {
			t.Errorf("%q itself was changed", given)
		}
	}
	raw := []byte(`{"a":1}`)
	if got := core.OneLine(raw); &got[0] != &raw[0] {
		t.Error("copied without need")
	}
}

func TestOneLineKeepsTheMeaning(t *testing.T) {
	raw := bytes.ReplaceAll(valid(core.KindSay).raw(), []byte(","), []byte("\r\n,\n"))
	if contentOf(t, raw) != contentOf(t, core.OneLine(raw)) {
		t.Error("another content")
	}
}
