package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

const testSecret = "s3cret-of-the-agents"

func TestConformanceOfWrittenLines(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture { return newFarSide(t, AckWrite).fixture() })
}

func TestConformanceOfExplicitAcks(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) carriertest.Fixture {
		far := newFarSide(t, AckExplicit)
		f := far.fixture()
		f.Withhold = func(r core.Recipient, on bool) {
			answer := !on
			far.tell(r, order{Acknowledge: &answer})
		}
		return f
	})
}

// farSide is two puppets.
type farSide struct {
	t       *testing.T
	carrier *Carrier
	logs    *logBuffer
	peers   []core.Recipient
	puppets map[core.Recipient]*puppet
}

func newFarSide(t *testing.T, ack AckMode) *farSide {
	t.Helper()
	far := &farSide{t: t, logs: &logBuffer{}, puppets: map[core.Recipient]*puppet{}}
	agents := map[string]AgentConfig{}
	for _, name := range []string{"ada", "bob"} {
		p := newPuppet(t)
		cfg := p.config(t, name)
		cfg.Env["SECRET"] = testSecret
		if ack == AckExplicit {
			cfg = explicit(cfg)
		}
		agents[name] = cfg
		to := core.Recipient{Carrier: "agents", WorkspaceID: testWorkspace, Channel: testChannel, Peer: name}
		far.peers = append(far.peers, to)
		far.puppets[to] = p
	}
	far.carrier = build(t, testConfig(agents), far.logs)
	return far
}

func (far *farSide) fixture() carriertest.Fixture {
	return carriertest.Fixture{
		Carrier:          far.carrier,
		Arrivals:         []core.Arrival{core.ArrivalIngress},
		Inject:           far.inject,
		Outcomes:         far.outcomes,
		SeesRefusals:     true,
		LineFramed:       true,
		MaxEnvelopeBytes: testLimit,
		Recipients:       far.peers,
		Received:         far.received,
		Stall:            far.stall,
		Cut:              far.cut,
		Restore:          far.restore,
		Joined:           far.joined,
		Secrets:          []string{testSecret},
		Logs:             far.logs.String,
		Close:            far.close,
		Patience:         patience,
	}
}

// tell gives the order to the puppet as soon as it is there.
func (far *farSide) tell(to core.Recipient, o order) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	_ = far.puppets[to].tell(ctx, o) // The carrier may have ended it by now.
}

func (far *farSide) inject(ctx context.Context, f carriertest.Frame) error {
	return far.puppets[far.peers[0]].tell(ctx, order{Write: append(bytes.Clone(f.Payload), '\n')})
}

// carrierFrame is a control line as an agent reads it.
type carrierFrame struct {
	Carrier *struct {
		Ack        string
		Nack       string
		ReasonCode string `json:"reason_code"`
	}
}

func controlOf(line string) (carrierFrame, bool) {
	var f carrierFrame
	err := json.Unmarshal([]byte(line), &f)
	return f, err == nil && f.Carrier != nil
}

func (far *farSide) outcomes() []carriertest.Outcome {
	var list []carriertest.Outcome
	for _, line := range far.puppets[far.peers[0]].heard() {
		f, ok := controlOf(line)
		switch {
		case !ok:
		case f.Carrier.Ack != "":
			list = append(list, carriertest.Outcome{Key: f.Carrier.Ack, Result: carriertest.Acked})
		case f.Carrier.ReasonCode == string(core.ReasonBusy):
			list = append(list, carriertest.Outcome{Key: f.Carrier.Nack, Result: carriertest.Later})
		default:
			list = append(list, carriertest.Outcome{Key: f.Carrier.Nack, Result: carriertest.Refused})
		}
	}
	return list
}

func (far *farSide) received() []carriertest.Received {
	var list []carriertest.Received
	for _, to := range far.peers {
		for _, line := range far.puppets[to].heard() {
			if _, ok := controlOf(line); !ok {
				list = append(list, carriertest.Received{Recipient: to, Payload: []byte(line)})
			}
		}
	}
	return list
}

func (far *farSide) stall(on bool) {
	read := !on
	for _, to := range far.peers {
		far.tell(to, order{Read: &read})
	}
}

// cut ends every agent and returns when none takes a line any more, or after the
// patience of the suite: the check then sees that the link is not cut.
func (far *farSide) cut() {
	status := 1
	for _, p := range far.puppets {
		p.setDown(true)
		p.mu.Lock()
		if p.conn != nil {
			_ = json.NewEncoder(p.conn).Encode(order{Exit: &status})
		}
		p.mu.Unlock()
	}
	deadline := time.Now().Add(patience)
	for _, p := range far.puppets {
		for p.connected() && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}

func (far *farSide) restore() {
	for _, p := range far.puppets {
		p.setDown(false)
	}
}

func (far *farSide) joined(ctx context.Context) error {
	for _, p := range far.puppets {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (far *farSide) close() {
	for _, p := range far.puppets {
		p.close()
	}
}
