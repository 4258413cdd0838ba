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
	wake := core.WakeView{ID: "wake_1", Recipient: "peer:echo", State: core.WakeSucceeded, Root: "m1", Usage: core.UsageUnavailable, WorkspaceID: testWS, RootChannel: testCh}
	room := wake
	room.Root, room.Detail, room.Rooms = "from-a-room", "said in a room", [][2]string{{"ada", "echo"}}
	return []core.AgentView{
		{Name: "echo", Carrier: "agents", Peer: "echo", ResolvedNetworkParticipation: &live, Wakes: []core.WakeView{wake, room}},
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

func TestWhereAWakeCameFromIsForWhoMayReadIt(t *testing.T) {
	thread := core.WakeView{ID: "wake_1", Root: "m1", Detail: "words", WorkspaceID: testWS, RootChannel: testCh}
	room := thread
	room.Rooms = [][2]string{{"ada", "bot"}}
	unknown := thread
	unknown.RootChannel = ""
	elsewhere := thread
	elsewhere.RootChannel = "secret"
	admin := &caller{operator: true, admin: true, scope: core.Scope{Channels: []string{testCh}}}
	operator, other := &caller{operator: true}, &caller{}
	for name, c := range map[string]struct {
		who   *caller
		peer  string
		wake  core.WakeView
		reads bool
	}{
		"an admin, of a thread":             {admin, "", thread, true},
		"an admin, of a room":               {admin, "", room, true},
		"an admin, of what is not known":    {admin, "", unknown, true},
		"an admin, of another channel":      {admin, "", elsewhere, false},
		"an operator, of a thread":          {operator, "", thread, true},
		"an operator, of a room":            {operator, "", room, false},
		"an operator as a party, of a room": {operator, "ada", room, true},
		"an operator as another, of a room": {operator, "eve", room, false},
		"an operator, of what is not known": {operator, "ada", unknown, false},
		"another token, of a thread":        {other, "ada", thread, false},
	} {
		got := c.who.wakes(c.peer, []core.WakeView{c.wake}, "")[0]
		if (got.Root != "") != c.reads || (got.Detail != "") != c.reads {
			t.Errorf("%s: root %q, detail %q", name, got.Root, got.Detail)
		}
		if got := c.who.wakes(c.peer, []core.WakeView{c.wake}, "m1")[0]; got.Root != "m1" {
			t.Errorf("%s: of the message itself the root is %q", name, got.Root)
		}
	}
}

func TestTheListOfAgentsKeepsDirectRooms(t *testing.T) {
	open, s := start(t), tokenSite(t)
	for name, c := range map[string]struct {
		answer reply
		told   bool
	}{
		"an admin":                     {s.get("/v0/agents", as("admin")...), true},
		"this machine, without tokens": {open.get("/v0/agents"), false},
	} {
		wantStatus(t, c.answer, 200)
		body := string(c.answer.body)
		if strings.Contains(body, "from-a-room") != c.told || strings.Contains(body, "said in a room") != c.told || !strings.Contains(body, `"root":"m1"`) {
			t.Errorf("%s gets %s", name, body)
		}
	}
}
