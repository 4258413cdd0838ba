package http

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// refusals is a rejection log, the latest entry first.
type refusals []core.RejectionView

func (f refusals) Rejections(_ context.Context, after int64, limit int) ([]core.RejectionView, error) {
	var page []core.RejectionView
	for _, entry := range f {
		if (after == 0 || entry.Position < after) && len(page) < limit {
			page = append(page, entry)
		}
	}
	return page, nil
}

func TestRejectionsAreListedForWhoOperatesTheGateway(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log := refusals{
		{Position: 9, Carrier: "mqtt", Reason: core.ReasonExpired, ClaimedWorkspaceID: "ws-2", SHA256: "bb", Bytes: 1, Count: 1, FirstAt: at, LastAt: at},
		{Position: 4, Carrier: "nats", Reason: core.ReasonMalformed, Detail: "no id", ClaimedWorkspaceID: testWS, ClaimedFrom: "eve", SHA256: "aa", Bytes: 7, Count: 3, FirstAt: at, LastAt: at},
		{Position: 2, Carrier: "nats", Reason: core.ReasonMalformed, SHA256: "cc", Bytes: 7, Count: 1, FirstAt: at, LastAt: at},
	}
	s := start(t)
	s.carrier.backend.Rejections = log
	const fourth = `{"position":4,"carrier":"nats","reason_code":"malformed","detail":"no id","claimed_workspace_id":"ws-1","claimed_from":"eve",` +
		`"sha256":"aa","bytes":7,"count":3,"first_at":"2026-01-02T03:04:05Z","last_at":"2026-01-02T03:04:05Z"}`
	if r := s.get("/v0/rejections?after=9&limit=1"); string(r.body) != fmt.Sprintf(`{"rejections":[%s],"next":4}`, fourth)+"\n" {
		t.Errorf("answer %s", r.body)
	}
	if r := s.get("/v0/rejections"); strings.Count(string(r.body), "sha256") != 3 || !strings.Contains(string(r.body), `"next":null`) {
		t.Errorf("answer %s", r.body)
	}
	for _, query := range []string{"?after=x", "?limit=0", "?peer=bob"} {
		wantStatus(t, s.get("/v0/rejections"+query), 400)
	}

	tokens := start(t, func(c *Config) {
		c.Tokens = map[string]TokenConfig{
			"some":  {TokenFile: file(t, "some", "secret-some"), Admin: true, Scope: core.Scope{Workspaces: []string{testWS}}},
			"plain": {TokenFile: file(t, "plain", "secret-plain")},
		}
	})
	tokens.carrier.backend.Rejections = log
	if r := tokens.get("/v0/rejections", as("some")...); strings.Count(string(r.body), "sha256") != 1 || !strings.Contains(string(r.body), `"position":4`) {
		t.Errorf("an admin of one workspace is shown %s", r.body)
	}
	wantStatus(t, tokens.get("/v0/rejections", as("plain")...), 403)
	wantStatus(t, tokens.get("/v0/rejections"), 401)
}
