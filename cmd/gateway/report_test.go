package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestConfigurationCommandsReportToPrograms(t *testing.T) {
	if got := command(t, "", "config", "check", "-o", "json"); got.status != exitGood || got.stdout != `{"good":true,"problems":[]}`+"\n" {
		t.Errorf("got %+v", got)
	}
	bad := writeFile(t, "bad.yaml", "nmae: x\nstore: {max_pending: 0}\n")
	got := command(t, "", "config", "check", "-o", "json", "--config", bad)
	if got.status != exitUsage || !strings.HasPrefix(got.stdout, `{"good":false,"problems":["nmae: unknown key`) || !strings.Contains(got.stdout, `"store.max_pending: `) {
		t.Errorf("got %+v", got)
	}
	name := filepath.Join(t.TempDir(), "gateway.yaml")
	if got := command(t, "", "config", "init", "-o", "json", name); got.status != exitGood || got.stdout != `{"file":"`+name+`"}`+"\n" {
		t.Errorf("got %+v", got)
	}
}

func TestBackupNamesTheFileThatWasGiven(t *testing.T) {
	dir := t.TempDir()
	serveGateway(t, dir)
	nowhere := filepath.Join(dir, "nowhere", "copy.db")
	got := command(t, "", "backup", "--data-dir", dir, nowhere)
	if got.status != exitFailed || !strings.Contains(got.stderr, nowhere) || strings.Contains(got.stderr, "partial") {
		t.Errorf("got %+v", got)
	}
	file := filepath.Join(dir, "copy.db")
	if got := command(t, "", "backup", "-o", "json", "--data-dir", dir, file); got.status != exitGood || got.stdout != `{"file":"`+file+`"}`+"\n" {
		t.Errorf("got %+v", got)
	}
	if got := command(t, "", "backup", "--data-dir", dir, file); got.status != exitFailed || !strings.Contains(got.stderr, file) {
		t.Errorf("got %+v", got)
	}
}

func TestDigestSpeaksOfJSONAlone(t *testing.T) {
	for input, want := range map[string]string{
		"[1]":                        "not a JSON object",
		"null":                       "not a JSON object",
		`"x"`:                        "not a JSON object",
		"{":                          "not JSON",
		`{"digest":5}`:               "digest must not be a JSON number",
		`{"protocol":"p","body":[]}`: "body must not be a JSON array",
	} {
		got := command(t, input, "digest", "-")
		if got.status != exitFailed || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, "Go ") {
			t.Errorf("%s: %+v, want %q", input, got, want)
		}
	}
}

func TestTheGreetingCountsAgents(t *testing.T) {
	for _, tc := range []struct {
		all, live int
		want      string
	}{{0, 0, "no agents"}, {1, 1, "1 agent, live"}, {1, 0, "1 agent, not live"}, {3, 1, "3 agents, 1 of them live"}} {
		if got := describeAgents(tc.all, tc.live); got != tc.want {
			t.Errorf("%d, %d: %s", tc.all, tc.live, got)
		}
	}
}
