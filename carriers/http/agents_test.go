package http

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// hostedAgents are two agents: echo can be renewed, shut can not.
type hostedAgents struct{}

func (hostedAgents) Agents(context.Context) ([]core.AgentView, error) {
	live := core.LiveParticipation(testWS, testCh, core.Bounds{MaxWakes: 8})
	wake := core.WakeView{ID: "wake_1", Recipient: "peer:echo", State: core.WakeSucceeded, Root: "m1", Usage: core.UsageUnavailable}
	return []core.AgentView{
		{Name: "echo", Carrier: "agents", Peer: "echo", ResolvedNetworkParticipation: &live, Wakes: []core.WakeView{wake}},
		{Name: "shut", Carrier: "agents", Peer: "shut", ResolvedNetworkParticipation: &live, Wakes: []core.WakeView{}},
	}, nil
}

func (hostedAgents) RenewAgent(_ context.Context, name string) error {
	if strings.HasSuffix(name, "shut") {
		return fmt.Errorf("agent %s has nothing to renew: %w", name, core.ErrForbidden)
	}
	return nil
}

func TestAgentsAreListedAndRenewed(t *testing.T) {
	s := start(t)
	r := s.get("/v0/agents")
	wantStatus(t, r, 200)
	for _, want := range []string{`{"agents":[{"name":"echo"`, `"resolved_network_participation":{"version":"network-participation/v1","mode":"live"`, `"max_wakes":8`, `"usage":"usage_unavailable"`} {
		if !strings.Contains(string(r.body), want) {
			t.Errorf("no %s in\n%s", want, r.body)
		}
	}
	for name, want := range map[string]int{"echo": 204, "agents.echo": 204, "shut": 403, "nobody": 404} {
		wantStatus(t, s.do(s.request("POST", "/v0/agents/"+name+"/renew", "")), want)
	}
	if r := s.do(s.request("POST", "/v0/agents/shut/renew", "")); !strings.Contains(string(r.body), `"detail":"agent shut has nothing to renew"`) {
		t.Errorf("the refusal says %s", r.body)
	}
}

func TestAgentsAreForAdmins(t *testing.T) {
	s := tokenSite(t)
	for who, want := range map[string]int{"ada": 403, "team": 403, "admin": 200} {
		wantStatus(t, s.get("/v0/agents", as(who)...), want)
	}
	for who, want := range map[string]int{"ada": 403, "admin": 204} {
		wantStatus(t, s.do(s.request("POST", "/v0/agents/echo/renew", "", as(who)...)), want)
	}
}

func TestOnlyAnOperatorSeesWhereAWakeCameFrom(t *testing.T) {
	wakes := []core.WakeView{{ID: "wake_1", Root: "m1"}, {ID: "wake_2", Root: "a-room's", Detail: "the agent: words"}}
	operator, other := &caller{operator: true}, &caller{}
	if got := operator.wakes(wakes, "m1"); got[1].Root != "a-room's" || got[1].Detail == "" {
		t.Errorf("an operator sees %+v", got)
	}
	if got := other.wakes(wakes, "m1"); got[0].Root != "m1" || got[1].Root != "" || got[1].Detail != "" {
		t.Errorf("somebody else sees %+v", got)
	}
}
