package http

import (
	"fmt"
	"net"
	nethttp "net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// endpointsInTrouble are endpoints that misbehave, and how a call of each ends.
var endpointsInTrouble = []struct {
	name   string
	answer nethttp.HandlerFunc
	want   core.SendCode
}{
	{"answers", func(nethttp.ResponseWriter, *nethttp.Request) {}, ""},
	{"fails", func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(500) }, core.CodeFailed},
	{"redirects", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(307)
	}, core.CodeRefused},
	{"hangs", func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() }, core.CodeTimeout},
	{"streams for ever", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		for block := make([]byte, 32<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}, ""},
	{"closes without an answer", func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) }, core.CodeTimeout},
	{"closes in mid header", cut("HTTP/1.1 200 OK\r\nContent-Le"), core.CodeTimeout},
	{"closes in mid body", cut("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), ""},
	{"closes in a refusal's body", cut("HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nhalf"), core.CodeRefused},
	{"does not speak HTTP", cut("220 mail.example ESMTP\r\n"), core.CodeTimeout},
	{"switches protocols", cut("HTTP/1.1 101 Switching Protocols\r\n\r\n"), core.CodeFailed},
}

// cut answers with the beginning of an answer and closes the connection.
func cut(beginning string) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		conn := hijack(w)
		defer conn.Close()
		_, _ = conn.Write([]byte(beginning)) // The client may be gone.
	}
}

func hijack(w nethttp.ResponseWriter) net.Conn {
	conn, _, err := nethttp.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // HTTP/1 connections can be taken over.
	}
	return conn
}

func TestAnEndpointInTroubleHasItsOutcome(t *testing.T) {
	for _, c := range endpointsInTrouble {
		t.Run(c.name, func(t *testing.T) {
			h := newHook(t)
			h.does(c.answer)
			s := start(t, withHook(h.URL), func(c *Config) { c.WebhookTimeout = 200 * time.Millisecond })
			if _, err := s.send(delivery(`{}`)); codeOf(err) != c.want {
				t.Errorf("ended %q, want %q: %v", codeOf(err), c.want, err)
			}
			if n := len(h.called()); n != 1 {
				t.Errorf("%d calls", n)
			}
			// The next call is not held up.
			h.does(nil)
			s.carrier.hooks["crm"].circuit = newBreaker()
			if _, err := s.send(delivery(`{}`)); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestAnInformationalStatusIsNoAnswer: what counts is the answer behind it.
func TestAnInformationalStatusIsNoAnswer(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL))
	for status := 100; status < 200; status++ {
		if status == nethttp.StatusSwitchingProtocols {
			continue // That one is an answer.
		}
		for _, c := range []struct {
			behind string
			want   core.SendCode
		}{
			{"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", ""},
			{"HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", core.CodeFailed},
			{"", core.CodeTimeout},
		} {
			h.does(cut(fmt.Sprintf("HTTP/1.1 %d Wait\r\n\r\n", status) + c.behind))
			s.carrier.hooks["crm"].circuit = newBreaker()
			if _, err := s.send(delivery(`{}`)); codeOf(err) != c.want {
				t.Errorf("%d with %q behind it ended %q, want %q", status, c.behind, codeOf(err), c.want)
			}
		}
	}
}

func TestAThousandAttemptsLeaveNothingOpen(t *testing.T) {
	h := newHook(t)
	s := start(t, withHook(h.URL), func(c *Config) { c.WebhookTimeout = 5 * time.Millisecond })
	attempts := func(n int) {
		for i := range n {
			h.does(endpointsInTrouble[i%len(endpointsInTrouble)].answer)
			s.carrier.hooks["crm"].circuit = newBreaker()
			_, _ = s.send(delivery(`{}`)) // How each ends is another test's matter.
		}
	}
	attempts(2 * len(endpointsInTrouble))
	// One connection may be kept, with its two ends and their goroutines, and one
	// may be closing.
	const kept = 4
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	attempts(1000)
	eventually(t, "files and goroutines are as many as before", func() bool {
		return openFiles(t) <= files+kept && runtime.NumGoroutine() <= goroutines+2*kept
	})
}

// openFiles is how many files this process has open, as Linux tells it; elsewhere
// it is 0, and the goroutines must do.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(entries)
}
