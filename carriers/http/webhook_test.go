package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	keyOne = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	keyTwo = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// call is one request as an endpoint got it.
type call struct {
	header nethttp.Header
	body   string
}

// hook is an endpoint that answers as the test says.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []call
	answer nethttp.HandlerFunc
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // Not a whole call.
		}
		h.mu.Lock()
		h.calls = append(h.calls, call{r.Header, string(body)})
		answer := h.answer
		h.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// answers makes the endpoint answer with the status and the headers.
func (h *hook) answers(status int, headers ...string) {
	h.does(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	})
}

func (h *hook) does(answer nethttp.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *hook) called() []call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]call(nil), h.calls...)
}

// withHook configures one webhook that may be private.
func withHook(url string, changes ...func(*WebhookConfig)) func(*Config) {
	return func(c *Config) {
		w := WebhookConfig{URL: url, AllowPrivate: true}
		for _, change := range changes {
			change(&w)
		}
		c.Webhooks = map[string]WebhookConfig{"crm": w}
	}
}

var toHook = core.Recipient{Carrier: "http", Link: "crm"}

func delivery(raw string) core.Outbound {
	return core.Outbound{
		Delivery: core.DeliveryID{Seq: 1, Recipient: 2}, Token: "0123456789abcdef0123456789abcdef", Recipient: toHook,
		Envelope: &core.Envelope{ID: "e.1.2", Raw: []byte(raw)}, Seq: 1, Attempt: 1,
	}
}

// send sends and waits for what is reported.
func (s *site) send(out core.Outbound) (core.Ack, *core.SendError) {
	s.Helper()
	return s.sendWithin(patience, out)
}

func (s *site) sendWithin(d time.Duration, out core.Outbound) (core.Ack, *core.SendError) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	type report struct {
		ack core.Ack
		err error
	}
	reports := make(chan report, 2)
	s.carrier.Send(ctx, out, func(ack core.Ack, err error) { reports <- report{ack, err} })
	select {
	case r := <-reports:
		if r.err == nil {
			return r.ack, nil
		}
		var failed *core.SendError
		if !errors.As(r.err, &failed) {
			s.Fatalf("the error is a %T: %v", r.err, r.err)
		}
		return r.ack, failed
	case <-time.After(d + patience):
		s.Fatal("the send was not reported")
		return core.Ack{}, nil
	}
}

func codeOf(err *core.SendError) core.SendCode {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestAnEndpointThatCannotBeReachedIsUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://user:hidden-word@" + l.Addr().String() + "/hidden-path?key=hidden-key"
	l.Close()
	s := start(t, withHook(url))
	_, failed := s.send(delivery(`{}`))
	if codeOf(failed) != core.CodeUnavailable {
		t.Errorf("error %v", failed)
	}
	if strings.Contains(failed.Error(), "hidden") {
		t.Errorf("the error tells the URL: %v", failed)
	}
}

func TestAnEndpointThatDoesNotAnswerTimesOut(t *testing.T) {
	h := newHook(t)
	release := make(chan struct{})
	h.does(func(nethttp.ResponseWriter, *nethttp.Request) { <-release })
	s := start(t, withHook(h.URL), func(c *Config) { c.WebhookTimeout = 50 * time.Millisecond })
	if _, err := s.send(delivery(`{}`)); codeOf(err) != core.CodeTimeout {
		t.Errorf("error %v", err)
	}
	if _, err := s.sendWithin(10*time.Millisecond, delivery(`{}`)); codeOf(err) != core.CodeTimeout {
		t.Errorf("at the end of the context: %v", err)
	}
	close(release)
}

func TestAConnectionThatBreaksLeavesTheOutcomeUnknown(t *testing.T) {
	h := newHook(t)
	h.does(func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) })
	s := start(t, withHook(h.URL))
	if _, err := s.send(delivery(`{}`)); codeOf(err) != core.CodeTimeout {
		t.Errorf("error %v", err)
	}
}

func TestAMessageIsNotWrittenAfterItsDeadline(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL))
	out := delivery(`{}`)
	out.Deadline = time.Now().Add(-time.Second)
	if _, err := s.send(out); codeOf(err) != core.CodeExpired {
		t.Errorf("error %v", err)
	}
	// The deadline passes between the first look at the clock and the write.
	var looks atomic.Int32
	start := time.Now()
	out.Deadline = start.Add(time.Second)
	s.carrier.hooks["crm"].now = func() time.Time {
		if looks.Add(1) <= 3 {
			return start
		}
		return out.Deadline
	}
	if _, err := s.send(out); codeOf(err) != core.CodeExpired {
		t.Errorf("error %v", err)
	}
	if n := len(h.called()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestCallsOfOneEndpointFollowOneAnother(t *testing.T) {
	h := newHook(t)
	var now, worst int
	var mu sync.Mutex
	h.does(func(nethttp.ResponseWriter, *nethttp.Request) {
		mu.Lock()
		now++
		worst = max(worst, now)
		mu.Unlock()
		mu.Lock()
		now--
		mu.Unlock()
	})
	s := start(t, withHook(h.URL))
	var done sync.WaitGroup
	for i := range 100 {
		done.Add(1)
		s.carrier.Send(context.Background(), delivery(fmt.Sprint(i)), func(core.Ack, error) { done.Done() })
	}
	done.Wait()
	for i, c := range h.called() {
		if c.body != fmt.Sprint(i) {
			t.Fatalf("call %d is message %s", i, c.body)
		}
	}
	if worst > 1 {
		t.Errorf("%d calls at once", worst)
	}
}

func TestASendToNobodyIsAnError(t *testing.T) {
	s := start(t)
	out := delivery(`{}`)
	if _, err := s.send(out); codeOf(err) != core.CodeBadAddress {
		t.Errorf("error %v", err)
	}
	out.Recipient = core.Recipient{Carrier: "http", WorkspaceID: testWS, Channel: testCh, Peer: "ada"}
	if _, err := s.send(out); codeOf(err) != core.CodeUnavailable || err.RetryAfter == 0 {
		t.Errorf("error %v", err)
	}
}
