package http

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// tokenSite has three callers: an admin, one that is bound to its workspace,
// channel and peer, and one with patterns.
func tokenSite(t *testing.T, changes ...func(*Config)) *site {
	return start(t, append([]func(*Config){func(c *Config) {
		c.Tokens = map[string]TokenConfig{
			"admin": {TokenFile: file(t, "admin", "secret-admin\n"), Admin: true},
			"ada": {
				TokenFile: file(t, "ada", "secret-ada"),
				Scope:     core.Scope{Workspaces: []string{testWS}, Channels: []string{testCh}, Peers: []string{"ada"}},
			},
			"team": {TokenFile: file(t, "team", "secret-team"), Scope: core.Scope{Peers: []string{"team-*", "a*"}}},
			"none": {TokenFile: file(t, "none", "secret-none"), Scope: core.Scope{Peers: []string{}}},
		}
	}}, changes...)...)
}

func as(name string) []string { return []string{"Authorization", "Bearer secret-" + name} }

// What agents said may repeat anything that they were given, and the facts name
// all of them.
func TestCarriersShowFactsAndWhatAgentsSaidToOperators(t *testing.T) {
	fleet := []core.CarrierView{{
		Name: "agents", Type: "stdio", State: core.StateReady,
		Detail: map[string]any{"agents": map[string]any{"leaky": map[string]any{"starts": 3, "stderr": "hunter2"}}},
	}}
	s := tokenSite(t)
	s.mem.carriers = fleet
	open := start(t)
	open.mem.carriers = fleet
	for name, c := range map[string]struct {
		answer reply
		shown  bool
	}{
		"an admin":                     {s.get("/v0/carriers", as("admin")...), true},
		"another token":                {s.get("/v0/carriers", as("team")...), false},
		"this machine, without tokens": {open.get("/v0/carriers"), true},
	} {
		wantStatus(t, c.answer, 200)
		body := string(c.answer.body)
		if strings.Contains(body, "leaky") != c.shown || strings.Contains(body, "hunter2") != c.shown {
			t.Errorf("%s gets %s", name, body)
		}
	}
}

func TestWhyACarrierIsNotReadyIsToldToWhoeverAsks(t *testing.T) {
	fleet := []core.CarrierView{{
		Name: "agents", Type: "stdio", State: core.StateNotReady, Trouble: core.TroubleAgents,
		Why:    "agent leaky: backing off after: exit status 3",
		Detail: map[string]any{"agents": map[string]any{"leaky": map[string]any{"stderr": "API_KEY=hunter2"}}},
	}}
	s := tokenSite(t)
	s.mem.carriers = fleet
	open := start(t)
	open.mem.carriers = fleet
	for name, c := range map[string]struct {
		answer reply
		status int
		speech bool
	}{
		"readiness, without a token":              {s.get("/readyz"), 503, false},
		"readiness, an admin":                     {s.get("/readyz", as("admin")...), 503, false},
		"readiness, this machine, without tokens": {open.get("/readyz"), 503, false},
		"the carriers, an admin":                  {s.get("/v0/carriers", as("admin")...), 200, true},
		"the carriers, another token":             {s.get("/v0/carriers", as("team")...), 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			wantStatus(t, c.answer, c.status)
			body := string(c.answer.body)
			if !strings.Contains(body, `"state":"not ready","trouble":"agents","why":"agent leaky: backing off after: exit status 3"`) ||
				strings.Contains(body, "hunter2") != c.speech {
				t.Errorf("the answer is %s", body)
			}
		})
	}
}

// What an attempt met may name machines and repeat what a webhook answered.
func TestWhatAnAttemptMetIsToldToOperators(t *testing.T) {
	found := core.Inspection{
		Channel: testCh, Envelope: []byte("{}"),
		Deliveries: []core.Delivery{{ID: "1-1", Recipient: "webhook:crm", State: core.DeliveryPending, LastError: "timeout: dial tcp 10.0.0.7:4222"}},
	}
	s := tokenSite(t)
	s.mem.inspections["m1"] = &found
	open := start(t)
	open.mem.inspections["m1"] = &found
	const path = "/v0/workspaces/ws-1/messages/m1"
	for name, c := range map[string]struct {
		answer reply
		told   bool
	}{
		"an admin":                     {s.get(path, as("admin")...), true},
		"another token":                {s.get(path, as("ada")...), false},
		"this machine, without tokens": {open.get(path), true},
	} {
		wantStatus(t, c.answer, 200)
		if body := string(c.answer.body); strings.Contains(body, "10.0.0.7") != c.told || !strings.Contains(body, `"webhook:crm"`) {
			t.Errorf("%s gets %s", name, body)
		}
	}
}

func TestATokenIsNeeded(t *testing.T) {
	s := tokenSite(t)
	for name, headers := range map[string][]string{
		"nothing":         nil,
		"another scheme":  {"Authorization", "Basic c2VjcmV0LWFkbWlu"},
		"empty":           {"Authorization", "Bearer "},
		"unknown":         {"Authorization", "Bearer secret-nobody"},
		"a longer token":  {"Authorization", "Bearer secret-admin1"},
		"a shorter token": {"Authorization", "Bearer secret-admi"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []reply{
				s.get("/v0/carriers", headers...),
				s.get(channelPath+"/stream", headers...),
				s.get("/v0/deadletters", headers...),
				s.post(say("e1"), headers...),
			} {
				wantStatus(t, r, 401)
				if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("challenge %q", r.header.Get("WWW-Authenticate"))
				}
				if strings.Contains(string(r.body), "secret") {
					t.Errorf("the answer repeats the token: %s", r.body)
				}
			}
		})
	}
	wantStatus(t, s.get("/v0/carriers", "Authorization", "bearer  secret-admin"), 200)
	for _, path := range []string{"/healthz", "/readyz"} {
		wantStatus(t, s.get(path, "Host", "gateway.example"), 200)
	}
	if strings.Contains(s.logs.String(), "secret-") {
		t.Error("a token stands in the log")
	}
}

func TestAPostSpeaksForItsToken(t *testing.T) {
	s := tokenSite(t)
	wantStatus(t, s.post(say("e1"), as("ada")...), 202)
	p := s.mem.offers()[0].Principal
	if p == nil || p.Name != "ada" || p.Scope.Peers[0] != "ada" {
		t.Errorf("principal %+v", p)
	}
	r := s.post(say("e2"), as("none")...)
	wantStatus(t, r, 403)
	if r.problem(t).ReasonCode != core.ReasonNotTarget {
		t.Errorf("problem %s", r.body)
	}
}

func TestReadsKeepToTheScopeOfTheToken(t *testing.T) {
	s := tokenSite(t)
	other := "/v0/workspaces/" + testWS + "/channels/other"
	for _, c := range []struct {
		who, method, path string
		want              int
	}{
		{"ada", "GET", channelPath + "/messages", 200},
		{"ada", "GET", channelPath + "/messages?peer=ada", 200},
		{"ada", "GET", channelPath + "/messages?peer=bob", 403},
		{"ada", "GET", other + "/messages", 403},
		{"ada", "GET", other + "/stream", 403},
		{"ada", "GET", "/v0/workspaces/ws-2/peers", 403},
		{"ada", "GET", "/v0/workspaces/ws-2/messages/m1", 403},
		{"ada", "GET", "/v0/workspaces/ws-1/messages/m1?peer=bob", 403},
		{"ada", "PUT", channelPath + "/peers/ada", 204},
		{"ada", "PUT", channelPath + "/peers/bob", 403},
		{"ada", "PUT", other + "/peers/ada", 403},
		{"ada", "GET", channelPath + "/peers/bob/inbox", 403},
		{"ada", "DELETE", channelPath + "/peers/bob", 403},
		{"ada", "GET", "/v0/deadletters", 403},
		{"ada", "POST", "/v0/deadletters/1-1/replay", 403},
		{"team", "PUT", other + "/peers/team-1", 204},
		{"team", "PUT", channelPath + "/peers/ada", 403},
		{"team", "GET", channelPath + "/messages?peer=ada", 403},
		{"team", "GET", channelPath + "/messages?peer=anna", 200},
		{"none", "GET", channelPath + "/messages", 403},
		{"admin", "PUT", other + "/peers/bob", 204},
		{"admin", "GET", "/v0/deadletters", 200},
	} {
		t.Run(c.who+" "+c.method+" "+c.path, func(t *testing.T) {
			wantStatus(t, s.do(s.request(c.method, c.path, "", as(c.who)...)), c.want)
		})
	}
	at := core.Attachment{WorkspaceID: testWS, Channel: testCh, Peer: "ada", Principal: "ada"}
	if !s.mem.isAttached(at) {
		t.Error("the peer is not attached in the name of its token")
	}
}

func TestPinsAreThePeersThatTokensNameThemselves(t *testing.T) {
	pins := tokenSite(t).carrier.Pins()
	if got := fmt.Sprintf("%+v", pins); got != "[{Workspaces:[ws-1] Peer:ada Principal:ada}]" {
		t.Errorf("pins %s", got)
	}
}

func TestATokenThatChangesCountsWithoutARestart(t *testing.T) {
	s := tokenSite(t)
	path := s.carrier.cfg.Tokens["ada"].TokenFile
	replace := func(content string) {
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	status := func(name string) int { return s.get(channelPath+"/messages", as(name)...).status }
	replace("secret-new")
	eventually(t, "the new token is known", func() bool { return status("new") == 200 })
	if got := status("ada"); got != 401 {
		t.Errorf("the old token is answered %d", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the removed token is unknown", func() bool { return status("new") == 401 })
	replace("secret-ada")
	eventually(t, "the token is known again", func() bool { return status("ada") == 200 })
}

func TestRemovingATokenEndsItsStreamsAndBatches(t *testing.T) {
	s := tokenSite(t)
	events := s.events(channelPath+"/stream", as("ada")...)
	inbox := s.events(channelPath+"/peers/ada/inbox", append(as("ada"), "Accept", typeSSE)...)
	others := s.events(channelPath+"/stream", as("admin")...)
	batch := s.talk(as("ada")...)
	batch.send(say("e1") + "\n")
	batch.next()
	events.wantEnvelopes("1")
	if err := os.Remove(s.carrier.cfg.Tokens["ada"].TokenFile); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	events.wantEnd()
	inbox.wantEnd()
	if got := batch.next(); got.Status != 401 || got.Line != 2 {
		t.Errorf("the batch goes on with %+v", got)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
	s.mem.put(50, `{"n":1}`)
	others.wantEnvelopes("1", "50")
}
