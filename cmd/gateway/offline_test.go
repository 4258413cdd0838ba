package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestValidateGivesOneResultForEachEnvelope(t *testing.T) {
	valid := strings.Replace(envelope("old", "alice", "x"), fmt.Sprint(time.Now().Unix())[:10], "1700000000", 1)
	file := writeFile(t, "lines.ndjson", valid+"\n\n"+
		`{"protocol":"compozy-network/v0"}`+"\n"+
		strings.Replace(valid, `"thread_main"`, `"nope"`, 1)+"\n"+
		strings.Replace(valid, `"text":"x"`, `"text":" "`, 1)+"\n"+
		"{bad")
	got := command(t, "", "validate", file)
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	want := []string{
		file + ":1: valid say id=old", file + ":3: malformed: ", file + ":4: invalid_surface: ", file + ":5: malformed: ", file + ":6: malformed: ",
	}
	if got.status != exitFailed || len(lines) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], want[i])
		}
	}
}

func TestValidateJudgesFreshnessOnlyWhenAsked(t *testing.T) {
	old := `{"protocol":"compozy-network/v0","id":"m","workspace_id":"w","kind":"say","channel":"c","surface":"thread",` +
		`"thread_id":"thread_main","from":"a","ts":1700000000,"body":{"text":"x"}}`
	cases := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"not asked", nil, exitGood, `"valid":true`},
		{"now", []string{"--at", "now"}, exitFailed, `"reason_code":"expired"`},
		{"when it was sent", []string{"--at", "1700000001"}, exitGood, `"valid":true`},
		{"by a date", []string{"--at", "2023-11-14T22:13:21Z"}, exitGood, `"valid":true`},
		{"nonsense", []string{"--at", "12:00"}, exitUsage, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := command(t, old, append([]string{"validate", "-", "-o", "json"}, c.args...)...)
			if got.status != c.status || !strings.Contains(got.stdout, c.says) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestValidateTakesAnEnvelopeOverSeveralLines(t *testing.T) {
	pretty := strings.ReplaceAll(envelope("m", "alice", "x"), ",", ",\n  ")
	if got := command(t, pretty, "validate", "-"); got.status != exitGood || got.stdout != "-:1: valid say id=m\n" {
		t.Errorf("got %+v", got)
	}
	if got := command(t, "", "validate", "-"); got.status != exitGood || got.stdout != "" {
		t.Errorf("an empty file: %+v", got)
	}
}

func TestDigestReadsDocumentsAndEnvelopes(t *testing.T) {
	const document = `{"id":"review","summary":"Review <code>","outcome":"A review","digest":"sha256:wrong","requirements":["b","a "]}`
	plain := command(t, document, "digest", "-")
	if plain.status != exitGood || !strings.HasPrefix(plain.stdout, "sha256:") || len(plain.stdout) != len("sha256:")+64+1 {
		t.Fatalf("got %+v", plain)
	}
	inside := command(t, `{"protocol":"compozy-network/v0","body":{"capability":`+document+`}}`, "digest", "-")
	if inside.stdout != plain.stdout {
		t.Errorf("the envelope's is %s, the document's %s", inside.stdout, plain.stdout)
	}
	asJSON := command(t, document, "digest", "-o", "json", "-")
	want := fmt.Sprintf(`{"digest":%q,"declared":"sha256:wrong","matches":false}`+"\n", strings.TrimSpace(plain.stdout))
	if asJSON.stdout != want {
		t.Errorf("got %s, want %s", asJSON.stdout, want)
	}
	for _, bad := range []string{"", "{", "[]", `{"id":"x"}`, `{"protocol":"compozy-network/v0","body":{}}`} {
		if got := command(t, bad, "digest", "-"); got.status != exitFailed || got.stdout != "" || got.stderr == "" {
			t.Errorf("digest of %q: %+v", bad, got)
		}
	}
}
