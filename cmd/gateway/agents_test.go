package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// A broken agent must not look healthy.
func TestAgentsShowHowEachStands(t *testing.T) {
	bounds := core.Bounds{MaxWakes: 64, MaxInputTokens: 100, MaxOutputTokens: 200}
	live := core.LiveParticipation("demo", "general", bounds)
	local := core.LocalParticipation()
	var out strings.Builder
	err := printAgents(&out, &agentsPage{Agents: []core.AgentView{
		{
			Name: "leaky", Carrier: "hands", Peer: "leaky", State: "backing off", Why: "exit status 3\x1b[2J",
			ResolvedNetworkParticipation: &live, Used: &core.BudgetView{Wakes: 2, WallTime: "3s", InputTokens: 4, OutputTokens: 5}, Unread: 6,
		},
		{Name: "loc", Carrier: "hands", State: "local", ResolvedNetworkParticipation: &local},
		{Name: "shut", Carrier: "hands", State: "off", Why: "network.enabled is false"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("an escape reaches the terminal: %q", out.String())
	}
	for _, want := range []string{
		"AGENT CARRIER PEER STATE MODE WAKES WALL TIME INPUT TOKENS OUTPUT TOKENS UNREAD WHY NOTE",
		`leaky hands leaky backing off live 2 of 64 3s of 0s 4 of 100 5 of 200 6 "exit status 3\x1b[2J" -`,
		"loc hands - local local - - - - - - -",
		"shut hands - off - - - - - - network.enabled is false -",
	} {
		if !strings.Contains(squeezed(out.String()), want+"\n") {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
}

func TestInspectShowsTheParticipationsThatDecided(t *testing.T) {
	p := core.LiveParticipation("demo", "general", core.Bounds{MaxWakes: 64, MaxWakeDepth: 4})
	var out strings.Builder
	err := printInspection(&out, "m-1", &core.Inspection{Participations: map[string]core.Participation{"peer:bob": p, "peer:al": core.LocalParticipation()}})
	if err != nil {
		t.Fatal(err)
	}
	want := "Participations:\nRECIPIENT MODE CHANNEL BOUNDS\npeer:al local - -\npeer:bob live general 64 wakes, depth 4, 0s in all\n"
	if !strings.Contains(squeezed(out.String()), want) {
		t.Errorf("got\n%s", out.String())
	}
}

// squeezed is a table with one space between its cells.
func squeezed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

func TestARenewalThatIsRefusedSaysWhatToDo(t *testing.T) {
	const agents = `network: {enabled: false}
carriers:
  http: {type: http}
  nats: {type: nats}
  mqtt: {type: mqtt}
  agents:
    type: stdio
    agents:
      loc: {command: [cat], participation: {mode: local}}
      bot: {command: [cat], peer_id: bot, workspace: demo, channel: general, participation: {mode: live}}
`
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(agents), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveGatewayIn(t, freePorts(), t.TempDir(), "--config", file)
	for _, c := range []struct{ name, says string }{
		{"loc", "agent loc is local and has nothing to renew (set its participation.mode to live)"},
		{"bot", "agent bot cannot get a new participation: network.enabled is false"},
		{"none", "gateway agents list shows those"},
	} {
		got := command(t, "", "agents", "renew", c.name, "--url", s.http)
		if got.status == 0 || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit status %d, %s", c.name, got.status, got.stderr)
		}
	}
}
