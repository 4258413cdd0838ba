package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestWhatWasRefusedCanBeRead(t *testing.T) {
	s := serveGateway(t, t.TempDir())
	if got := command(t, `{"id":"bad","workspace_id":"demo","from":"eve"}`, "send", "--url", s.http); got.status != exitFailed {
		t.Fatalf("send: %+v", got)
	}
	text := command(t, "", "rejections", "--url", s.http)
	for _, want := range []string{"REASON", "malformed", "demo", "bad", "eve", "http"} {
		if text.status != exitGood || !strings.Contains(text.stdout, want) {
			t.Errorf("%q is missing: %+v", want, text)
		}
	}
	asJSON := command(t, "", "rejections", "--url", s.http, "-o", "json")
	if asJSON.status != exitGood || !strings.Contains(asJSON.stdout, `"claimed_id":"bad","claimed_from":"eve","sha256":"`) {
		t.Errorf("got %+v", asJSON)
	}
	if got := command(t, "", "rejections", "--limit", "0", "--url", s.http); got.status != exitUsage || !strings.Contains(got.stderr, "--limit") {
		t.Errorf("got %+v", got)
	}
}

func TestRejectionsAreReadOverPagesUpToTheLimit(t *testing.T) {
	var asked record
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		asked.add(r.URL.RawQuery)
		fmt.Fprint(w, `{"rejections":[{"position":9,"carrier":"mqtt","reason_code":"expired","sha256":"aa"},{"position":8,"carrier":"mqtt","reason_code":"expired","sha256":"bb"}],"next":8}`)
	})
	got := command(t, "", "rejections", "--limit", "4", "--url", url)
	if got.status != exitGood || strings.Count(got.stdout, "expired") != 4 {
		t.Errorf("got %+v", got)
	}
	if want := []string{"limit=4", "after=8&limit=2"}; !slices.Equal(asked.all(), want) {
		t.Errorf("asked %q, want %q", asked.all(), want)
	}
}
