package http

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
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
		body, _ := io.ReadAll(r.Body)
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

// verify checks a signature as the convention has it, by other means than the
// carrier makes it.
func (c call) verify(t *testing.T, key string, number int) {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", c.header.Get("webhook-id"), c.header.Get("webhook-timestamp"), c.body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := strings.Split(c.header.Get("webhook-signature"), " "); got[number] != want {
		t.Errorf("signature %d of %v, want %s", number, got, want)
	}
}

func TestAWebhookGetsTheBytesSigned(t *testing.T) {
	h := newHook(t)
	secret := file(t, "secret", "whsec_"+keyOne+"\n")
	s := start(t, withHook(h.URL+"/hook?x=1", func(w *WebhookConfig) { w.SecretFile = secret }))
	h.answers(500)
	if _, err := s.send(delivery(odd)); err == nil || err.Code != core.CodeFailed {
		t.Fatalf("error %v", err)
	}
	if err := os.WriteFile(secret, []byte("whsec_"+keyTwo+"\nwhsec_"+keyOne+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.answers(204)
	ack, err := s.send(delivery(odd))
	if err != nil || ack.Kind != core.AckHTTP2xx || ack.At.IsZero() || ack.Detail != "204" {
		t.Fatalf("ack %+v, error %v", ack, err)
	}
	calls := h.called()
	calls[0].verify(t, keyOne, 0)
	calls[1].verify(t, keyTwo, 0)
	calls[1].verify(t, keyOne, 1)
	for _, c := range calls {
		if c.body != odd || c.header.Get("Content-Type") != typeJSON {
			t.Errorf("call %+v", c)
		}
		if id := c.header.Get("webhook-id"); id != "msg_0123456789abcdef0123456789abcdef" {
			t.Errorf("webhook-id %q", id)
		}
	}
	if s.carrier.Status().LastSend.IsZero() {
		t.Error("the status tells of no send")
	}
}

func TestEachStatusOfAWebhookHasItsOutcome(t *testing.T) {
	want := func(status int) core.SendCode {
		switch status {
		case 410:
			return core.CodeGone
		case 408, 425:
			return core.CodeFailed
		case 429, 502, 503, 504:
			return core.CodeBusy
		}
		return map[int]core.SendCode{1: core.CodeFailed, 2: "", 3: core.CodeRefused, 4: core.CodeRefused, 5: core.CodeFailed}[status/100]
	}
	for status := 100; status < 600; status++ {
		if got := outcomeOf(status).code; got != want(status) {
			t.Errorf("status %d is %q, want %q", status, got, want(status))
		}
	}
	h := newHook(t)
	s := start(t, withHook(h.URL))
	for status := 200; status < 600; status++ {
		h.answers(status, "Location", "http://127.0.0.1:1/")
		s.carrier.hooks["crm"].circuit = newBreaker()
		_, err := s.send(delivery(`{}`))
		if got := codeOf(err); got != want(status) {
			t.Errorf("status %d ended %q, want %q", status, got, want(status))
		}
	}
	if n := len(h.called()); n != 400 {
		t.Errorf("%d calls for 400 messages", n)
	}
}

func codeOf(err *core.SendError) core.SendCode {
	if err == nil {
		return ""
	}
	return err.Code
}

func TestRetryAfterIsObeyedWithinBounds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"-5":                            0,
		"1.5":                           0,
		"0":                             time.Second,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"999999999":                     time.Hour,
		"99999999999999999999999999":    time.Hour,
		"Tue, 14 Nov 2023 22:13:50 GMT": 30 * time.Second,
		"Tue, 14 Nov 2000 22:13:50 GMT": 0,
		"Tue, 14 Nov 2090 22:13:50 GMT": time.Hour,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q is %v, want %v", header, got, want)
		}
	}
}

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

func TestAnAnswerWithoutEndIsNotReadToItsEnd(t *testing.T) {
	h := newHook(t)
	ended := make(chan int, 2)
	h.does(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(200)
		n, block := 0, make([]byte, 32<<10)
		for n < 1<<30 {
			m, err := w.Write(block)
			n += m
			if err != nil {
				break
			}
		}
		ended <- n
	})
	s := start(t, withHook(h.URL))
	if _, err := s.send(delivery(`{}`)); err != nil {
		t.Errorf("error %v", err)
	}
	if n := <-ended; n >= 1<<30 {
		t.Errorf("%d bytes were taken", n)
	}
	h.does(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.WriteHeader(200)
		_ = nethttp.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	begin := time.Now()
	if _, err := s.send(delivery(`{}`)); err != nil || time.Since(begin) > 2*answerBodyTimeout {
		t.Errorf("a body that does not end: %v after %v", err, time.Since(begin))
	}
}

func TestARefusalIsToldWithAShortExcerpt(t *testing.T) {
	h := newHook(t)
	h.does(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(422)
		fmt.Fprint(w, "no\r\n such\x00 field\xff ", strings.Repeat("y", 1000))
	})
	s := start(t, withHook(h.URL))
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeRefused || !strings.HasPrefix(err.Detail, "webhook crm answered 422: no such field yyy") || len(err.Detail) > 250 {
		t.Errorf("detail %q", err.Detail)
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
	looks := 0
	start := time.Now()
	out.Deadline = start.Add(time.Second)
	s.carrier.hooks["crm"].now = func() time.Time {
		if looks++; looks <= 3 {
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

func TestASecretThatCannotBeReadStopsTheCallOnly(t *testing.T) {
	h := newHook(t)
	secret := file(t, "secret", keyOne)
	s := start(t, withHook(h.URL, func(w *WebhookConfig) { w.SecretFile = secret }))
	if err := os.WriteFile(secret, []byte("whsec_not*base64*at*all"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeUnavailable || strings.Contains(err.Error(), "not*base64") {
		t.Errorf("error %v", err)
	}
}
