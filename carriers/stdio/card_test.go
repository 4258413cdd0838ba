package stdio

import (
	"log/slog"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestLiveAgentsWithACardHaveOne(t *testing.T) {
	agent := func(peer string, mode Mode, card map[string]any) AgentConfig {
		return AgentConfig{
			Command: []string{"true"}, PeerID: peer, Workspace: "ws", Channel: "ops",
			PeerCard: card, Participation: ParticipationConfig{Mode: mode},
		}
	}
	cfg := DefaultConfig()
	cfg.Agents = map[string]AgentConfig{
		"plain":  agent("plain", ModeLive, nil),
		"local":  agent("local", ModeLocal, map[string]any{"display_name": "Local"}),
		"short":  agent("short", ModeLive, map[string]any{"display_name": "Short"}),
		"spoken": agent("spoken", ModeLive, map[string]any{"capabilities": []any{map[string]any{"id": "a", "summary": "b", "outcome": "c"}}, "artifacts_supported": []any{}}),
	}
	if problems := cfg.Validate("agents"); len(problems) > 0 {
		t.Fatal(problems)
	}
	c, err := New(cfg, core.Host{Name: "agents", MaxEnvelopeBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	cards := map[string]core.HostedPeer{}
	for _, card := range c.Cards() {
		cards[card.Peer] = card
	}
	if len(cards) != 2 {
		t.Fatalf("cards of %v, want short and spoken", cards)
	}
	short, spoken := cards["short"], cards["spoken"]
	if short.DisplayName != "Short" || len(short.Catalogue) != 0 || short.ArtifactsSupported[0] != "capability" || short.ProfilesSupported[0] != core.Protocol {
		t.Fatalf("card %+v", short)
	}
	if len(spoken.Catalogue) != 1 || spoken.Catalogue[0].ID != "a" || len(spoken.ArtifactsSupported) != 0 || spoken.Principal != "spoken" {
		t.Fatalf("card %+v", spoken)
	}
}
