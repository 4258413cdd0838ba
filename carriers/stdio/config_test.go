package stdio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

func TestConfigurationIsReadByItsKeys(t *testing.T) {
	k := koanf.New("\x00")
	text := `
max_line: 2000000
write_timeout: 3s
restart: {min: 2s, max: 1h, reset_after: 5m}
agents:
  reviewer:
    command: [reviewer, --quiet]
    env: {KEY: value, TAKEN: ""}
    dir: /
    peer_id: reviewer.sess-xyz
    workspace: ws-1
    channel: lab
    peer_card: {display_name: Reviewer, capabilities: [], ext: {a: 1}}
    ack: explicit
    launch: start
    participation:
      mode: live
      bounds: {max_wakes: 8, max_wake_wall_time: 5m, max_total_wall_time: 30m, max_input_tokens: 200000, max_output_tokens: 50000, max_wake_depth: 3, coalesce_window: 500ms}
`
	if err := k.Load(rawbytes.Provider([]byte(text)), yaml.Parser()); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	if err := k.Unmarshal("", &cfg); err != nil {
		t.Fatal(err)
	}
	if problems := cfg.Validate("carriers.agents"); len(problems) > 0 {
		t.Fatal(problems)
	}
	if cfg.MaxLine != 2_000_000 || cfg.WriteTimeout != 3*time.Second || cfg.Restart != (RestartConfig{2 * time.Second, time.Hour, 5 * time.Minute}) {
		t.Errorf("the carrier's own keys were read as %+v", cfg)
	}
	a := cfg.Agents["reviewer"]
	b := a.Participation.Bounds
	switch {
	case !slices.Equal(a.Command, []string{"reviewer", "--quiet"}), string(a.Env["KEY"]) != "value", len(a.Env) != 2, a.Dir != "/",
		a.PeerID != "reviewer.sess-xyz", a.Workspace != "ws-1", a.Channel != "lab", a.PeerCard["display_name"] != "Reviewer",
		a.Ack != AckExplicit, a.Launch != LaunchStart, a.Participation.Mode != ModeLive:
		t.Errorf("the agent was read as %+v", a)
	case *b.MaxWakes != 8, *b.MaxWakeWallTime != 5*time.Minute, *b.MaxTotalWallTime != 30*time.Minute, *b.MaxInputTokens != 200_000,
		*b.MaxOutputTokens != 50_000, *b.MaxWakeDepth != 3, *b.CoalesceWindow != 500*time.Millisecond:
		t.Errorf("the bounds were read as %+v", b)
	}
}

func TestDefaultConfigurationIsValid(t *testing.T) {
	if problems := DefaultConfig().Validate("carriers.agents"); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestEveryProblemIsReportedWithItsKey(t *testing.T) {
	ptr := func(n int) *int { return &n }
	span := func(d time.Duration) *time.Duration { return &d }
	live := func(change func(*AgentConfig)) func(*Config) {
		return func(c *Config) {
			a := shell("ada", "cat")
			change(&a)
			c.Agents = one("ada", a)
		}
	}
	bounds := func(b Bounds) func(*Config) { return live(func(a *AgentConfig) { a.Participation.Bounds = b }) }
	const agent, bound = "agents.ada.", "agents.ada.participation.bounds."
	for name, c := range map[string]struct {
		change func(*Config)
		keys   []string
	}{
		"nothing":                  {live(func(*AgentConfig) {}), nil},
		"numbers":                  {func(c *Config) { *c = Config{MaxLine: -1, Restart: RestartConfig{Max: -1}} }, []string{"max_line", "write_timeout", "restart.min", "restart.max", "restart.reset_after"}},
		"a live agent of nothing":  {live(func(a *AgentConfig) { *a = AgentConfig{Participation: ParticipationConfig{Mode: ModeLive}} }), []string{agent + "peer_id", agent + "workspace", agent + "channel", agent + "command"}},
		"a local agent of nothing": {live(func(a *AgentConfig) { *a = AgentConfig{} }), nil},
		"grammars":                 {live(func(a *AgentConfig) { a.PeerID, a.Workspace, a.Channel = "Ada!", "w s", "LAB" }), []string{agent + "peer_id", agent + "workspace", agent + "channel"}},
		"words":                    {live(func(a *AgentConfig) { a.Ack, a.Launch, a.Participation.Mode = "maybe", "later", "half" }), []string{agent + "participation.mode", agent + "ack", agent + "launch"}},
		"launch: wake":             {live(func(a *AgentConfig) { a.Launch = LaunchWake }), nil},
		"bounds of a local agent":  {live(func(a *AgentConfig) { a.Participation = ParticipationConfig{Bounds: Bounds{MaxWakes: ptr(1)}} }), []string{agent + "participation.bounds"}},
		"an empty program":         {live(func(a *AgentConfig) { a.Command = []string{""} }), []string{agent + "command"}},
		"NUL in an argument":       {live(func(a *AgentConfig) { a.Command = []string{"cat", "a\x00"} }), []string{agent + "command"}},
		"no such directory":        {live(func(a *AgentConfig) { a.Dir = "/no/such/directory" }), []string{agent + "dir"}},
		"a file as directory":      {live(func(a *AgentConfig) { a.Dir = "/dev/null" }), []string{agent + "dir"}},
		"variables": {live(func(a *AgentConfig) {
			a.Env = map[string]EnvValue{"": "v", "A=B": "v", "COMPOZY_PEER_ID": "v", "COMPOZY_WAKE_ID": "v", "N": "s3cret\x00"}
		}), []string{agent + "env", agent + "env", agent + "env.COMPOZY_PEER_ID", agent + "env.COMPOZY_WAKE_ID", agent + "env.N"}},
		"a name": {func(c *Config) { c.Agents = one("Ada Lovelace", shell("ada", "cat")) }, []string{"agents.Ada Lovelace"}},
		"one peer twice": {func(c *Config) {
			c.Agents = map[string]AgentConfig{"ada": shell("ada", "cat"), "bob": shell("ada", "cat")}
		}, []string{"agents.bob.peer_id"}},
		"one peer in two workspaces": {func(c *Config) {
			other := shell("ada", "cat")
			other.Workspace = "ws-2"
			c.Agents = map[string]AgentConfig{"ada": shell("ada", "cat"), "bob": other}
		}, nil},
		"a peer card": {live(func(a *AgentConfig) {
			a.PeerCard = map[string]any{"peer_id": "bob", "display_name": 1, "capabilities": []any{1}, "profiles_supported": "x", "ext": "x", "role": "x"}
		}), []string{agent + "peer_card.capabilities", agent + "peer_card.display_name", agent + "peer_card.ext", agent + "peer_card.peer_id", agent + "peer_card.profiles_supported", agent + "peer_card.role"}},
		"a good peer card": {live(func(a *AgentConfig) {
			a.PeerCard = map[string]any{"peer_id": "ada", "display_name": "Ada", "capabilities": []any{map[string]any{"id": "a", "summary": "b", "outcome": "c"}}, "profiles_supported": []string{"y"}, "ext": map[string]any{}}
		}), nil},
		"bounds of nothing":      {bounds(Bounds{MaxWakes: ptr(0), MaxWakeWallTime: span(-1), MaxTotalWallTime: span(0), MaxInputTokens: ptr(-1), MaxOutputTokens: ptr(0), MaxWakeDepth: ptr(0), CoalesceWindow: span(0)}), []string{bound + "max_wakes", bound + "max_input_tokens", bound + "max_output_tokens", bound + "max_wake_depth", bound + "max_wake_wall_time", bound + "max_total_wall_time", bound + "coalesce_window"}},
		"bounds at the ceilings": {bounds(Bounds{MaxWakes: ptr(64), MaxWakeWallTime: span(15 * time.Minute), MaxTotalWallTime: span(2 * time.Hour), MaxInputTokens: ptr(1_000_000), MaxOutputTokens: ptr(200_000), MaxWakeDepth: ptr(5), CoalesceWindow: span(5 * time.Second)}), nil},
		"bounds above them":      {bounds(Bounds{MaxWakes: ptr(65), MaxWakeWallTime: span(16 * time.Minute), MaxTotalWallTime: span(3 * time.Hour), MaxInputTokens: ptr(1_000_001), MaxOutputTokens: ptr(200_001), MaxWakeDepth: ptr(6), CoalesceWindow: span(6 * time.Second)}), []string{bound + "max_wakes", bound + "max_input_tokens", bound + "max_output_tokens", bound + "max_wake_depth", bound + "max_wake_wall_time", bound + "max_total_wall_time", bound + "coalesce_window"}},
		"a wake over the total":  {bounds(Bounds{MaxWakeWallTime: span(10 * time.Minute), MaxTotalWallTime: span(9 * time.Minute)}), []string{bound + "max_wake_wall_time"}},
		"a short window":         {bounds(Bounds{CoalesceWindow: span(time.Millisecond)}), []string{bound + "coalesce_window"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			c.change(&cfg)
			var got []string
			for _, problem := range cfg.Validate("carriers.agents") {
				key, _, _ := strings.Cut(problem.Error(), ": ")
				got = append(got, strings.TrimPrefix(key, "carriers.agents."))
				if strings.Contains(problem.Error(), "s3cret") {
					t.Errorf("a value stands in %v", problem)
				}
			}
			slices.Sort(got)
			slices.Sort(c.keys)
			if !slices.Equal(got, c.keys) {
				t.Errorf("the problems are of\n%q, want\n%q", got, c.keys)
			}
		})
	}
}

func TestLineLimitCannotBeLessThanTheLargestEnvelope(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxLine = 1000
	if _, err := New(cfg, core.Host{Name: "agents", MaxEnvelopeBytes: 1001}); err == nil || !strings.HasPrefix(err.Error(), "carriers.agents.max_line: ") {
		t.Errorf("refused as %v", err)
	}
}

func TestValuesOfVariablesAreHidden(t *testing.T) {
	cfg := AgentConfig{Env: map[string]EnvValue{"KEY": "s3cret", "EMPTY": ""}}
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text) + fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.Env["KEY"]) + cfg.Env["KEY"].LogValue().String()
	if strings.Contains(shown, "s3cret") || !strings.Contains(shown, hidden) {
		t.Errorf("shown as %s", shown)
	}
}
