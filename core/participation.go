package core

// Mode says whether a hosted agent takes part in the network (section 8 of
// docs/protocol.md).
type Mode string

// The two modes. An empty mode means ModeLocal.
const (
	// ModeLocal: no peer, no messages, no turns.
	ModeLocal Mode = "local"
	// ModeLive: one peer of one channel, eligible for wakes.
	ModeLive Mode = "live"
)

// ParticipationVersion is the version of every participation snapshot. It is a
// stored atom and never changes its spelling.
const ParticipationVersion = "network-participation/v1"

// ChannelStrategyNamed is the one channel strategy: the configuration names the
// channel.
const ChannelStrategyNamed = "named"

// ParticipationSource says where a participation comes from.
type ParticipationSource string

// The sources of a participation.
const (
	// SourceExplicitRequest: the configuration asks for live.
	SourceExplicitRequest ParticipationSource = "explicit_request"
	// SourceBuiltInLocal: nothing asks for anything.
	SourceBuiltInLocal ParticipationSource = "built_in_local"
)

// Participation is the resolved participation of one agent, fixed before the
// agent runs and never changed. A local one has no workspace, channel or bounds.
type Participation struct {
	Version         string              `json:"version"`
	Mode            Mode                `json:"mode"`
	WorkspaceID     string              `json:"workspace_id,omitempty"`
	ChannelStrategy string              `json:"channel_strategy,omitempty"`
	ChannelID       string              `json:"channel_id,omitempty"`
	Source          ParticipationSource `json:"source"`
	Bounds          *Bounds             `json:"bounds,omitempty"`
}

// LocalParticipation is that of an agent that takes no part.
func LocalParticipation() Participation {
	return Participation{Version: ParticipationVersion, Mode: ModeLocal, Source: SourceBuiltInLocal}
}

// LiveParticipation is that of an agent that takes part in one channel within
// the bounds.
func LiveParticipation(workspace, channel string, b Bounds) Participation {
	return Participation{
		Version: ParticipationVersion, Mode: ModeLive, WorkspaceID: workspace,
		ChannelStrategy: ChannelStrategyNamed, ChannelID: channel, Source: SourceExplicitRequest, Bounds: &b,
	}
}

// Live reports whether the agent takes part.
func (p Participation) Live() bool { return p.Mode == ModeLive && p.Bounds != nil }
