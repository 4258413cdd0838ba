package core

import "time"

// AgentView is one hosted agent as readers see it.
type AgentView struct {
	Name     string `json:"name"`
	Carrier  string `json:"carrier"`
	Peer     string `json:"peer,omitempty"`
	Resident bool   `json:"resident"`
	// State is how the agent stands right now: starting, running, idle (between two
	// wakes), backing off, stopping, stopped, local or off. Why says what is wrong
	// with it or, where it is idle, how its last process ended.
	State string `json:"state,omitempty"`
	Why   string `json:"why,omitempty"`
	// ResolvedNetworkParticipation is null while network.enabled: false keeps the
	// agent from getting its first one.
	ResolvedNetworkParticipation *Participation `json:"resolved_network_participation"`
	ResolvedAt                   *time.Time     `json:"resolved_at,omitempty"`
	// Note says what the configuration asks for that the participation does not
	// have; renewing it would.
	Note string `json:"note,omitempty"`
	// Used is what counts against the bounds: settlements and open reservations.
	Used *BudgetView `json:"used,omitempty"`
	// Unread counts the messages that wait for a wake.
	Unread int64 `json:"unread"`
	// Wakes are the latest, the newest first.
	Wakes []WakeView `json:"wakes"`
}

// BudgetView is what counts against the bounds of a participation.
type BudgetView struct {
	Wakes        int    `json:"wakes"`
	WallTime     string `json:"wall_time"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
}

// WakeView is one wake.
type WakeView struct {
	ID        string    `json:"id"`
	Recipient string    `json:"recipient"`
	State     WakeState `json:"state"`
	Root      string    `json:"root"`
	Depth     int       `json:"depth"`
	// Messages counts what admitted or joined the wake.
	Messages  int        `json:"messages"`
	Attempts  int        `json:"attempts"`
	CreatedAt time.Time  `json:"created_at"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	// Usage says whether the charge is a reservation, a report, or a reservation
	// that stands.
	Usage   UsageState `json:"usage"`
	Charged BudgetView `json:"charged"`
	// Reported is what the agent said that it used, null where it said nothing.
	Reported *Usage `json:"reported"`
}

// SkipView is why a recipient got no wake of its own for a message.
type SkipView struct {
	Recipient string `json:"recipient"`
	Reason    Skip   `json:"reason"`
}
