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
	// Messages counts what admitted or joined the wake, HandedOver what it was
	// given at its start: of those as many as had room, and what came along.
	Messages   int `json:"messages"`
	HandedOver int `json:"handed_over"`
	// ThisMessage says, where one message is inspected, what that is to the wake.
	ThisMessage WakePart   `json:"this_message,omitempty"`
	Attempts    int        `json:"attempts"`
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Detail      string     `json:"detail,omitempty"`
	// Usage says whether the charge is a reservation, a report, or a reservation
	// that stands.
	Usage UsageState `json:"usage"`
	// Charged is what it costs its participation: its last run, and the whole
	// reservation of each run that the gateway's end interrupted. A wake that was
	// handed nothing costs nothing.
	Charged BudgetView `json:"charged"`
	// Reported is what the agent said that it used, null where it said nothing.
	Reported *Usage `json:"reported"`

	// The rest is for those who judge who may see Root and Detail: the channel of
	// the root's message, empty where that is not known (any more), and the peers of
	// each direct room that the wake had to do with.
	WorkspaceID string      `json:"-"`
	RootChannel string      `json:"-"`
	Rooms       [][2]string `json:"-"`
}

// WakePart is what a message is to a wake.
type WakePart string

// The parts that a message has in a wake.
const (
	// WakePartHandedOver: the wake is for it and was given it.
	WakePartHandedOver WakePart = "handed_over"
	// WakePartNotHandedOver: the wake is for it and was not given it, because it
	// has not begun or had no room. It stays unread and comes along with the next.
	WakePartNotHandedOver WakePart = "not_handed_over"
	// WakePartCameAlong: the wake is for others and was given it beside them.
	WakePartCameAlong WakePart = "came_along"
)

// SkipView is why a recipient got no wake of its own for a message.
type SkipView struct {
	Recipient string `json:"recipient"`
	Reason    Skip   `json:"reason"`
}
