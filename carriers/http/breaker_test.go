package http

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestAnEndpointThatAsksForPatienceGetsIt(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL))
	h.answers(429, "Retry-After", "1")
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeBusy || err.RetryAfter != time.Second {
		t.Fatalf("error %+v", err)
	}
	h.answers(200)
	if _, err = s.send(delivery(`{}`)); codeOf(err) != core.CodeUnavailable || err.RetryAfter <= 0 || err.RetryAfter > time.Second {
		t.Errorf("the next message: %+v", err)
	}
	eventually(t, "the endpoint is called again", func() bool { _, err := s.send(delivery(`{}`)); return err == nil })
	if n := len(h.called()); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestAnEndpointThatIsGoneIsDisabled(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL))
	h.answers(410)
	for range 3 {
		if _, err := s.send(delivery(`{}`)); codeOf(err) != core.CodeGone {
			t.Errorf("error %v", err)
		}
	}
	if n := len(h.called()); n != 1 {
		t.Errorf("%d calls", n)
	}
	if got := fmt.Sprint(s.carrier.Status().Detail["webhooks"]); !strings.Contains(got, "circuit:disabled") {
		t.Errorf("status %s", got)
	}
	if s.carrier.Status().State != core.StateReady {
		t.Error("an endpoint makes the carrier not ready")
	}
}

func TestADeadEndpointIsLeftAloneAndThenProbed(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL))
	h.answers(500)
	for range 1000 {
		_, _ = s.send(delivery(`{}`))
	}
	if n := len(h.called()); n != breakAfter {
		t.Errorf("%d calls of a dead endpoint for 1000 sends, want %d", n, breakAfter)
	}
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeUnavailable || err.RetryAfter <= 0 {
		t.Errorf("error %+v", err)
	}
	h.answers(200)
	hook := s.carrier.hooks["crm"]
	now := time.Now()
	hook.now = func() time.Time { return now.Add(maxBreak) }
	for range 3 {
		if _, err := s.send(delivery(`{}`)); err != nil {
			t.Errorf("error %v", err)
		}
	}
}

func TestBreaksGrowWithJitterUpToTheirBound(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, random := range []float64{0, 0.5, 0.999} {
		b := &breaker{random: func() float64 { return random }}
		want := firstBreak
		for i := range 20 {
			b.failed(now, 0)
			wait := b.wait(now)
			if i+1 < breakAfter {
				if wait != 0 {
					t.Errorf("open after %d failures", i+1)
				}
				continue
			}
			if wait < want*4/5 || wait > want*6/5 {
				t.Errorf("failure %d: %v, want about %v", i+1, wait, want)
			}
			want = min(2*want, maxBreak)
		}
		b.answered()
		if b.wait(now) != 0 {
			t.Error("open after an answer")
		}
	}
}
