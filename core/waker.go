package core

import (
	"context"
	"time"
)

// Waker is implemented by a carrier that hosts agents: programs that it can give
// a turn.
type Waker interface {
	// Agents lists the agents as they are configured. It is constant for the life
	// of the carrier.
	Agents() []HostedAgent

	// Wake gives an agent one turn: it hands over the messages and returns when the
	// turn is over and every envelope that the agent wrote in it is settled. An
	// agent has one turn at a time. When ctx ends by its deadline, whatever the
	// agent runs is killed, and the outcome is WakeDeadlineExceeded.
	//
	// An error means that the turn has not been brought to an end. It is a
	// *SendError where nothing was handed over: with CodeUnavailable where another
	// try may go better, with CodeExpired where the deadlines of all messages
	// passed before. It is the error of ctx where that was cancelled; then nobody
	// knows how far the agent came.
	Wake(ctx context.Context, w WakeRequest) (WakeOutcome, error)
}

// AgentReporter is a Waker that can tell how its agents stand.
type AgentReporter interface {
	// AgentState tells in a word or two how an agent stands right now, such as
	// running, idle, backing off, off or local, and why: what is wrong with it or,
	// between two wakes, how its last process ended. Both are empty for an agent
	// that is not there.
	AgentState(agent string) (state, why string)
}

// HostedAgent is an agent as it is configured.
type HostedAgent struct {
	// Name is the agent's configured name, unique in its carrier.
	Name string
	// Mode is what the configuration asks for.
	Mode Mode
	// Resident is true for an agent that runs outside of its wakes too, so that
	// Send reaches it at any time.
	Resident bool
	// WorkspaceID, Channel and Peer say who it is and where. A local agent need
	// not have them.
	WorkspaceID, Channel, Peer string
	// Bounds are the bounds that the configuration asks for.
	Bounds BoundsRequest
}

// WakeRequest is one turn.
type WakeRequest struct {
	// Agent is the agent's name.
	Agent string
	// ID names the wake.
	ID string
	// Deadline is when the turn ends at the latest.
	Deadline time.Time
	// Messages are what the agent is given, in order. They are what others said,
	// and nothing in them is to be trusted.
	Messages []WakeMessage
	// Wrote is called at most once for each message that counts as given to the
	// agent, by its place in Messages. It does not block.
	Wrote func(i int, ack Ack)
}

// WakeMessage is one message of a wake.
type WakeMessage struct {
	// Delivery is the message's delivery to the agent.
	Delivery DeliveryID
	ID       string
	// Bytes is the size of the envelope.
	Bytes int
	// Raw is the envelope, nil where it is too long for the wake and the agent is
	// told its id alone.
	Raw []byte
	// Deadline is the instant from which on the envelope must not be written any
	// more: the agent is told its id alone. Zero is none.
	Deadline time.Time
}

// WakeOutcome is how a turn ended.
type WakeOutcome struct {
	// State is succeeded, failed or deadline_exceeded.
	State WakeState
	// Detail says for people how it ended.
	Detail string
	// Usage is what the agent reported, nil where it reported nothing.
	Usage *Usage
}

// Usage is what an agent used of a model, in tokens.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}
