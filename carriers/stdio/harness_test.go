package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	patience  = 40 * time.Second
	pollEvery = 2 * time.Millisecond

	testWorkspace = "ws-1"
	testChannel   = "lab"
	testLimit     = 1 << 20
)

// testIntake records what is offered and settles it as the test says: at once
// as committed, unless told otherwise.
type testIntake struct {
	mu       sync.Mutex
	offers   []core.Inbound
	attached map[core.Attachment]bool
	detached map[core.Attachment]bool
	late     map[core.DeliveryID]core.Ack
	refuse   error
	// verdict settles an offer; hold keeps the settlements back.
	verdict func(core.Inbound, int) core.Settlement
	hold    bool
	held    []func()
	full    chan struct{}
}

func newTestIntake() *testIntake {
	return &testIntake{
		attached: map[core.Attachment]bool{}, detached: map[core.Attachment]bool{}, late: map[core.DeliveryID]core.Ack{},
		verdict: func(in core.Inbound, n int) core.Settlement {
			return core.Settlement{Verdict: core.VerdictCommitted, ID: idOf(in.Payload), Seq: int64(n)}
		},
	}
}

func (in *testIntake) Offer(ctx context.Context, frame core.Inbound, settle func(core.Settlement)) error {
	in.mu.Lock()
	full, refuse := in.full, in.refuse
	in.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	if full != nil {
		select {
		case <-full:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	in.mu.Lock()
	in.offers = append(in.offers, frame)
	s := in.verdict(frame, len(in.offers))
	if in.hold {
		in.held = append(in.held, func() { settle(s) })
		in.mu.Unlock()
		return nil
	}
	in.mu.Unlock()
	settle(s)
	return nil
}

func (in *testIntake) Attach(_ context.Context, at core.Attachment) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refuse != nil {
		return in.refuse
	}
	in.attached[at] = true
	return nil
}

func (in *testIntake) Detach(_ context.Context, at core.Attachment) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refuse != nil {
		return in.refuse
	}
	in.detached[at] = true
	return nil
}

func (in *testIntake) Acked(_ context.Context, id core.DeliveryID, ack core.Ack) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.late[id] = ack
	return nil
}

func (in *testIntake) set(f func(*testIntake)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	f(in)
}

func (in *testIntake) frames() []core.Inbound {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.offers)
}

// ids lists the ids of what was offered; a frame without one is "".
func (in *testIntake) ids() []string {
	var list []string
	for _, f := range in.frames() {
		list = append(list, idOf(f.Payload))
	}
	return list
}

func idOf(payload []byte) string {
	var e struct{ ID string }
	_ = json.Unmarshal(payload, &e)
	return e.ID
}

// bench is a carrier that runs.
type bench struct {
	*Carrier
	t    *testing.T
	in   *testIntake
	logs *logBuffer
	stop func()
}

// run starts a carrier with the agents and ends it with the test.
func run(t *testing.T, agents map[string]AgentConfig, change ...func(*Config)) *bench {
	t.Helper()
	cfg := testConfig(agents)
	for _, f := range change {
		f(&cfg)
	}
	b := &bench{t: t, in: newTestIntake(), logs: &logBuffer{}}
	b.Carrier = build(t, cfg, b.logs)
	b.start()
	return b
}

func testConfig(agents map[string]AgentConfig) Config {
	cfg := DefaultConfig()
	cfg.Agents = agents
	cfg.Restart = RestartConfig{Min: 5 * time.Millisecond, Max: 40 * time.Millisecond, ResetAfter: time.Minute}
	return cfg
}

func build(t *testing.T, cfg Config, logs *logBuffer) *Carrier {
	t.Helper()
	if problems := cfg.Validate("carriers.agents"); len(problems) > 0 {
		t.Fatalf("the configuration of the test: %v", problems)
	}
	c, err := New(cfg, core.Host{
		Name: "agents", InstanceID: "test", MaxEnvelopeBytes: testLimit, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bench) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, b.in) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				b.t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			b.t.Errorf("Run did not return")
		}
	})
	b.t.Cleanup(b.stop)
}

// agent is the status of the agent.
func (b *bench) agent(name string) AgentStatus {
	return b.Status().Detail["agents"].(map[string]AgentStatus)[name]
}

func (b *bench) ready() {
	b.t.Helper()
	until(b.t, "the carrier is ready", func() bool { return b.Status().State == core.StateReady })
}

// outcome is what was reported of a send.
type outcome struct {
	ack core.Ack
	err error
}

// send sends an envelope to the peer.
func (b *bench) send(ctx context.Context, peer, id string, change ...func(*core.Outbound)) <-chan outcome {
	b.t.Helper()
	to := core.Recipient{Carrier: "agents", WorkspaceID: testWorkspace, Channel: testChannel, Peer: peer}
	out := core.Outbound{
		Delivery: core.DeliveryID{Seq: int64(len(id)) + 1, Recipient: 1}, Recipient: to, To: peer, Attempt: 1,
		Envelope: &core.Envelope{ID: id, Raw: []byte(say(id))},
	}
	for _, f := range change {
		f(&out)
	}
	result := make(chan outcome, 2) // Room for a second report, which would be a fault.
	b.Send(ctx, out, func(ack core.Ack, err error) { result <- outcome{ack, err} })
	return result
}

// wait waits for an outcome.
func wait(t *testing.T, result <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-result:
		return o
	case <-time.After(patience):
		t.Fatal("a send was not reported")
		return outcome{}
	}
}

func testAgent(t *testing.T, peer, role string) AgentConfig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return AgentConfig{
		Command: []string{exe}, Env: map[string]EnvValue{testRole: EnvValue(role)},
		PeerID: peer, Workspace: testWorkspace, Channel: testChannel,
		Participation: ParticipationConfig{Mode: ModeLive},
	}
}

// shell is an agent that is a shell script.
func shell(peer, script string) AgentConfig {
	return AgentConfig{
		Command: []string{"sh", "-c", script}, Env: map[string]EnvValue{},
		PeerID: peer, Workspace: testWorkspace, Channel: testChannel,
		Participation: ParticipationConfig{Mode: ModeLive},
	}
}

func one(name string, cfg AgentConfig) map[string]AgentConfig {
	return map[string]AgentConfig{name: cfg}
}

// say is an envelope on one line.
func say(id string) string {
	return fmt.Sprintf(`{"protocol":"%s","id":"%s","kind":"say","body":{"text":"hello"}}`, core.Protocol, id)
}

// until waits for something that must come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(pollEvery)
	}
}

// never watches for something that must not come.
func never(t *testing.T, what string, bad func() bool) {
	t.Helper()
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); time.Sleep(pollEvery) {
		if bad() {
			t.Fatal(what)
		}
	}
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
