package carriertest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// runMemory runs the carrier with an intake that settles everything with s, and
// gives a function that ends the run.
func runMemory(t *testing.T, m *Memory, s core.Settlement) (stop func()) {
	t.Helper()
	in := newIntake()
	in.settleInOffer(s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, in) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

func TestMemoryTellsTheSenderOfTheEnd(t *testing.T) {
	refusal := rejected()
	for _, c := range []struct {
		name       string
		redelivers bool
		settlement core.Settlement
		want       core.Verdict
	}{
		{"a commit", true, committed, core.VerdictCommitted},
		{"a rejection", true, refusal, core.VerdictRejected},
		{"a retry that is not redelivered", false, retry, core.VerdictRetry},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := boundedLimits()
				limits.Redelivers = c.redelivers
				m := NewMemory("mem", MemoryConfig{Limits: limits})
				f := m.Ingress([]byte("{}"))
				stop := runMemory(t, m, c.settlement)
				defer stop()
				got, err := f.Wait(t.Context())
				if err != nil || got.Verdict != c.want || got.Rejection != c.settlement.Rejection {
					t.Errorf("Wait = %+v, %v; want verdict %d", got, err, c.want)
				}
			})
		})
	}
}

func TestMemoryWaitsOnlyAsLongAsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory("mem", MemoryConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Native([]byte("{}")).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait of a frame that nobody takes: %v", err)
		}
		if _, err := m.AwaitSent(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("AwaitSent of a message that nobody sends: %v", err)
		}
	})
}

func TestMemoryKeepsUnsettledFramesFromOneRunToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory("mem", MemoryConfig{})
		first, second := m.Native([]byte("1")), m.Native([]byte("2"))
		stop := runMemory(t, m, core.Settlement{})
		synctest.Wait()
		stop()
		if first.Offers() != 1 || second.Offers() != 1 || len(m.Learnt()) != 0 {
			t.Fatalf("after a run that settled nothing: %d and %d offers, %d learnt", first.Offers(), second.Offers(), len(m.Learnt()))
		}
		defer runMemory(t, m, committed)()
		for _, f := range []*Injected{first, second} {
			if _, err := f.Wait(t.Context()); err != nil || f.Offers() != 2 {
				t.Errorf("after the next run: %d offers, %v", f.Offers(), err)
			}
		}
		if l := m.Learnt(); len(l) != 2 || l[0].Frame != first || len(first.Learnt()) != 1 {
			t.Errorf("the frames were settled out of order or more than once: %+v", l)
		}
	})
}

// reportOf sends a message and gives what is reported of it, and after how long.
func reportOf(t *testing.T, m *Memory, to core.Recipient) (core.Ack, time.Duration, error) {
	t.Helper()
	reports := make(chan report, 1)
	begin := time.Now()
	m.Send(t.Context(), core.Outbound{Recipient: to, Envelope: &core.Envelope{Raw: []byte("{}")}}, func(ack core.Ack, err error) {
		reports <- report{ack, err}
	})
	got := <-reports
	return got.ack, time.Since(begin), got.err
}

func TestMemoryBehavesBadlyTowardsTheNamedOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory("mem", MemoryConfig{})
		bad, good := core.Recipient{Carrier: "mem", Link: "bad"}, m.Link()
		defer runMemory(t, m, committed)()
		synctest.Wait()

		m.Slow(time.Second, bad)
		if _, took, err := reportOf(t, m, bad); err != nil || took != time.Second {
			t.Errorf("a slow recipient acknowledged after %v, %v", took, err)
		}
		if _, took, err := reportOf(t, m, good); err != nil || took != 0 {
			t.Errorf("the other acknowledged after %v, %v", took, err)
		}
		m.Slow(0)
		refusal := &core.SendError{Code: core.CodeGone, Detail: "gone"}
		m.Refuse(refusal, bad)
		if _, _, err := reportOf(t, m, bad); !errors.Is(err, refusal) {
			t.Errorf("a refusing recipient reported %v", err)
		}
		if ack, _, err := reportOf(t, m, good); err != nil || ack.Kind != m.Limits().AckKind {
			t.Errorf("the other reported %+v, %v", ack, err)
		}
		if n := len(m.Sent(bad)); n != 1 || len(m.Sent()) != 3 {
			t.Errorf("%d messages came out to the one and %d in all, want 1 and 3", n, len(m.Sent()))
		}
	})
}

func TestMemoryBehavesBadlyTowardsThoseToComeWhenNoneIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory("mem", MemoryConfig{})
		defer runMemory(t, m, committed)()
		synctest.Wait()
		m.Withhold(true)
		var acked int
		for range 3 {
			out := core.Outbound{Recipient: m.Link(), Envelope: &core.Envelope{Raw: []byte("{}")}}
			m.Send(t.Context(), out, func(_ core.Ack, err error) {
				// A report may use the carrier, as a gateway that sends the next does.
				if err == nil && m.Status().State == core.StateReady {
					acked++
				}
			})
		}
		if acked != 0 || m.Peak(m.Link()) != 3 {
			t.Errorf("while withheld: %d acknowledged, peak %d", acked, m.Peak(m.Link()))
		}
		m.Withhold(false)
		if acked != 3 {
			t.Errorf("%d of 3 were acknowledged once they could be", acked)
		}
	})
}

func TestMemoryHostsPeersWhileItRuns(t *testing.T) {
	at := core.Attachment{WorkspaceID: testWorkspace, Channel: testChannel, Peer: "bob", Push: true}
	id := core.DeliveryID{Seq: 1, Recipient: 2}
	ack := core.Ack{Kind: core.AckStdioAck}
	m, in := NewMemory("mem", MemoryConfig{}), newIntake()
	if m.Attach(t.Context(), at) == nil || m.Detach(t.Context(), at) == nil || m.Acked(t.Context(), id, ack) == nil {
		t.Error("a carrier that does not run reached a gateway")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, in) }()
	if err := m.await(ctx, m.up); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Attach(ctx, at), m.Acked(ctx, id, ack)); err != nil || !in.attached[at] || in.acks[id] != ack {
		t.Errorf("attach and acknowledge: %v, %v, %v", err, in.attached, in.acks)
	}
	if err := m.Detach(ctx, at); err != nil || in.attached[at] {
		t.Errorf("detach: %v, %v", err, in.attached)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
