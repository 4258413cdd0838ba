package stdio

import (
	"log/slog"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Config is the configuration of a stdio carrier.
type Config struct {
	// Agents are the programs, by name.
	Agents map[string]AgentConfig `koanf:"agents"`
	// MaxLine is the longest line in bytes that is taken from an agent; 0 means
	// the gateway's largest envelope and 64 KiB for white space around it.
	MaxLine int `koanf:"max_line"`
	// WriteTimeout is how long a delivery may wait for an agent that does not
	// read its input.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	// Restart bounds the pauses between the starts of an agent that ends.
	Restart RestartConfig `koanf:"restart"`
}

// RestartConfig bounds the pauses between two starts of one agent. A pause
// doubles with each failure, and is shortened at random by up to a half.
type RestartConfig struct {
	// Min is the first pause.
	Min time.Duration `koanf:"min"`
	// Max is the longest pause.
	Max time.Duration `koanf:"max"`
	// ResetAfter is how long an agent must have run for its failures to be
	// forgotten.
	ResetAfter time.Duration `koanf:"reset_after"`
}

// AgentConfig is one agent.
type AgentConfig struct {
	// Command is the program and its arguments. It is looked up on the gateway's
	// own PATH and run without a shell.
	Command []string `koanf:"command"`
	// Env is added to the few variables that an agent gets. An empty value takes
	// over the gateway's own variable of that name, so that a secret need not
	// stand in the file.
	Env map[string]EnvValue `koanf:"env"`
	// Dir is the working directory; empty means the gateway's.
	Dir string `koanf:"dir"`
	// PeerID, Workspace and Channel are who the agent is and where. It can speak
	// for nobody else, and nobody else can speak for it.
	PeerID    string `koanf:"peer_id"`
	Workspace string `koanf:"workspace"`
	Channel   string `koanf:"channel"`
	// PeerCard is what the agent claims of itself (section 2 of
	// docs/protocol.md).
	PeerCard map[string]any `koanf:"peer_card"`
	// Ack says what counts as the acknowledgement of a delivery.
	Ack AckMode `koanf:"ack"`
	// Launch says when the agent runs.
	Launch LaunchMode `koanf:"launch"`
	// Participation says whether the agent takes part in the network.
	Participation ParticipationConfig `koanf:"participation"`
}

// AckMode says what counts as an agent's acknowledgement of a delivery.
type AckMode string

// The two ways. An empty mode is AckWrite.
const (
	// AckWrite: the line is written. It may still be unread in the pipe.
	AckWrite AckMode = "write"
	// AckExplicit: the agent's own {"carrier":{"ack":"<id>"}}.
	AckExplicit AckMode = "explicit"
)

// LaunchMode says when an agent runs.
type LaunchMode string

// The two ways. An empty mode is LaunchStart.
const (
	// LaunchStart: as long as the gateway runs.
	LaunchStart LaunchMode = "start"
	// LaunchWake: once for each wake, and never in between.
	LaunchWake LaunchMode = "wake"
)

// Mode says whether an agent takes part in the network.
type Mode = core.Mode

// The two modes. An empty mode is ModeLocal.
const (
	// ModeLocal: no peer, no messages, no process.
	ModeLocal = core.ModeLocal
	// ModeLive: attached, and woken when it is spoken to.
	ModeLive = core.ModeLive
)

// ParticipationConfig is an agent's participation.
type ParticipationConfig struct {
	Mode   Mode   `koanf:"mode"`
	Bounds Bounds `koanf:"bounds"`
}

// Bounds bound the wakes of a live agent (section 8 of docs/protocol.md). A bound
// that is nil takes its default; zero is never "unlimited".
type Bounds = core.BoundsRequest

// EnvValue is the value of an agent's environment variable. It may be a secret:
// printed, logged or marshalled it shows no more than whether it is set.
type EnvValue string

const hidden = "[hidden]"

// String hides the value.
func (v EnvValue) String() string {
	if v == "" {
		return ""
	}
	return hidden
}

// GoString hides the value.
func (v EnvValue) GoString() string { return v.String() }

// MarshalText hides the value.
func (v EnvValue) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue hides the value.
func (v EnvValue) LogValue() slog.Value { return slog.StringValue(v.String()) }

// DefaultConfig has no agents.
func DefaultConfig() Config {
	return Config{
		Agents:       map[string]AgentConfig{},
		WriteTimeout: 10 * time.Second,
		Restart: RestartConfig{
			Min:        time.Second,
			Max:        time.Minute,
			ResetAfter: 30 * time.Second,
		},
	}
}
