package http

import (
	"fmt"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

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

func TestARefusalDoesNotRepeatWhereTheWebhookIs(t *testing.T) {
	h := newHook(t)
	h.does(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.WriteHeader(404)
		fmt.Fprintf(w, "cannot POST %s (%s %s) here", r.URL.RequestURI(), r.URL.Path, r.URL.RawQuery)
	})
	s := start(t, withHook(h.URL+"/hooks/t0p%20secret?key=t0psecret"))
	_, err := s.send(delivery(`{}`))
	if codeOf(err) != core.CodeRefused || err.Detail != "webhook crm answered 404: cannot POST (hidden) ((hidden) (hidden)) here" {
		t.Errorf("detail %q", err.Detail)
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
