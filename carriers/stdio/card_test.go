package stdio

import (
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
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

func TestACardsCapabilitiesAreReadOrRefused(t *testing.T) {
	document := func(more map[string]any) map[string]any {
		d := map[string]any{"id": "a", "summary": "b", "outcome": "c"}
		maps.Copy(d, more)
		return d
	}
	const digest = "sha256:9b9dd0a3b4bf8e7fea7b6b9e2e1c5c1a"
	raw, err := json.Marshal(document(nil))
	if err != nil {
		t.Fatal(err)
	}
	right, err := core.CapabilityDigest(raw)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		list  []any
		fault string
	}{
		"without a digest":   {[]any{document(nil)}, ""},
		"with its digest":    {[]any{document(map[string]any{"digest": right})}, ""},
		"with another":       {[]any{document(map[string]any{"digest": digest})}, `entry 1: its digest is "` + digest + `", but "` + right + `"`},
		"with an empty one":  {[]any{document(map[string]any{"digest": ""})}, `entry 1: its digest is ""`},
		"with no digest":     {[]any{document(map[string]any{"digest": 7})}, "entry 1: "},
		"the same twice":     {[]any{document(nil), document(map[string]any{"id": " a "})}, `entry 2 repeats the id "a"`},
		"without an outcome": {[]any{document(map[string]any{"outcome": " "})}, "entry 1: "},
		"an id alone":        {[]any{"a"}, "entry 1 is no capability document"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := readCatalogue(c.list)
			switch {
			case c.fault == "" && (err != nil || len(list) != len(c.list)):
				t.Errorf("got %+v, %v", list, err)
			case c.fault != "" && (err == nil || !strings.HasPrefix(err.Error(), c.fault)):
				t.Errorf("got %v", err)
			}
		})
	}
}
