package gateway

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// ward is a carrier that hosts agents which are functions.
type ward struct {
	agents []core.HostedAgent
	// turn is what an agent does in a wake; say offers an envelope of its own.
	turn func(ctx context.Context, w core.WakeRequest, say func([]byte) core.Settlement) (core.WakeOutcome, error)
	// refuse, where it is there, says why an agent can be handed nothing; nil goes on.
	refuse func(w core.WakeRequest) error

	mu    sync.Mutex
	in    core.Intake
	sent  []core.Outbound
	wakes []core.WakeRequest
}

func (w *ward) Run(ctx context.Context, in core.Intake) error {
	for _, a := range w.agents {
		if a.Mode == core.ModeLive {
			if err := in.Attach(ctx, core.Attachment{WorkspaceID: a.WorkspaceID, Channel: a.Channel, Peer: a.Peer, Push: a.Resident}); err != nil {
				continue
			}
		}
	}
	w.mu.Lock()
	w.in = in
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Hosted implements core.Hoster.
func (w *ward) Hosted() []core.Attachment {
	var list []core.Attachment
	for _, a := range w.agents {
		list = append(list, core.Attachment{WorkspaceID: a.WorkspaceID, Channel: a.Channel, Peer: a.Peer})
	}
	return list
}

func (w *ward) Send(_ context.Context, out core.Outbound, done func(core.Ack, error)) {
	w.mu.Lock()
	w.sent = append(w.sent, out)
	w.mu.Unlock()
	done(core.Ack{Kind: core.AckStdioWrite, At: time.Now()}, nil)
}

// AgentState implements core.AgentReporter.
func (w *ward) AgentState(agent string) (state, why string) {
	return "idle", "the last turn of " + agent
}

func (w *ward) Links() []core.Link         { return nil }
func (w *ward) Limits() core.Limits        { return core.Limits{InFlight: 1, AckKind: core.AckStdioWrite} }
func (w *ward) Agents() []core.HostedAgent { return w.agents }

func (w *ward) Status() core.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.in == nil {
		return core.Status{State: core.StateStarting}
	}
	return core.Status{State: core.StateReady}
}

func (w *ward) Wake(ctx context.Context, req core.WakeRequest) (core.WakeOutcome, error) {
	w.mu.Lock()
	w.wakes = append(w.wakes, req)
	in := w.in
	w.mu.Unlock()
	if w.refuse != nil {
		if err := w.refuse(req); err != nil {
			return core.WakeOutcome{}, err
		}
	}
	for i := range req.Messages {
		req.Wrote(i, core.Ack{Kind: core.AckStdioWrite, At: time.Now()})
	}
	return w.turn(ctx, req, func(payload []byte) core.Settlement {
		settled := make(chan core.Settlement, 1)
		if err := in.Offer(ctx, core.Inbound{Payload: payload, Wake: req.ID}, func(s core.Settlement) { settled <- s }); err != nil {
			return core.Settlement{}
		}
		return <-settled
	})
}

// given lists the wakes so far.
func (w *ward) given() []core.WakeRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]core.WakeRequest(nil), w.wakes...)
}

// pushed counts what came outside of wakes.
func (w *ward) pushed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

func liveAgent(name string, bounds core.BoundsRequest) core.HostedAgent {
	return core.HostedAgent{
		Name: name, Mode: core.ModeLive, Resident: true, WorkspaceID: "ws", Channel: "ops", Peer: name, Bounds: bounds,
	}
}

func quick() core.BoundsRequest {
	window := 100 * time.Millisecond
	return core.BoundsRequest{CoalesceWindow: &window}
}

// hostAgents starts the house with the ward as a carrier.
func (h *house) hostAgents(w *ward, change ...func(*Gateway)) {
	h.t.Helper()
	h.start(append(change, func(g *Gateway) {
		if err := g.AddCarrier("agents", "ward", w); err != nil {
			h.t.Fatal(err)
		}
	})...)
	h.eventually("the agents are attached", func() bool { return w.Status().State == core.StateReady })
}

func (h *house) agent(name string) core.AgentView {
	h.t.Helper()
	all, err := h.View("a").Agents(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range all {
		if a.Name == name {
			return a
		}
	}
	h.t.Fatalf("no agent %s among %+v", name, all)
	return core.AgentView{}
}

// skips tells why the recipients of a message got no wake, in order.
func (h *house) skips(id string) map[string][]core.Skip {
	got := map[string][]core.Skip{}
	for _, s := range h.inspect(id).Skips {
		got[s.Recipient] = append(got[s.Recipient], s.Reason)
	}
	return got
}

func (h *house) allOver(agent string, n int) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("%d wakes of %s are over", n, agent), func() bool {
		wakes := h.agent(agent).Wakes
		for _, w := range wakes {
			if !w.State.Final() {
				return false
			}
		}
		return len(wakes) >= n
	})
}

func succeed(context.Context, core.WakeRequest, func([]byte) core.Settlement) (core.WakeOutcome, error) {
	return core.WakeOutcome{State: core.WakeSucceeded}, nil
}

// newWardHouse is a house with agents that do what turn says.
func newWardHouse(t *testing.T, w *ward, change ...func(*Config)) *house {
	t.Helper()
	if w.turn == nil {
		w.turn = succeed
	}
	h := newHouse(t, change...)
	h.hostAgents(w)
	return h
}
