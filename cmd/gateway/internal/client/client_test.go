package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewRefusesWhatIsNoAddressOfAGateway(t *testing.T) {
	for _, raw := range []string{"", "127.0.0.1:8080", "ftp://host", "http://", "http://user:password@host", "http://[::1"} {
		if _, err := New(Options{URL: raw}); err == nil {
			t.Errorf("%q was taken", raw)
		} else if strings.Contains(err.Error(), "password") {
			t.Errorf("%q: the error shows the password: %v", raw, err)
		}
	}
	if _, err := New(Options{URL: "https://host", CAFile: "missing.pem"}); err == nil {
		t.Error("a missing file of authorities was taken")
	}
	if _, err := New(Options{URL: "https://host", CertFile: "missing.pem", KeyFile: "missing.key"}); err == nil {
		t.Error("a missing certificate was taken")
	}
}

func TestPathEscapesEverySegment(t *testing.T) {
	got := Path("workspaces", "a/b+c#d%e é", "messages", "x?y")
	want := "/v0/workspaces/a%2Fb+c%23d%25e%20%C3%A9/messages/x%3Fy"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheTokenIsReadAgainForEveryRequest(t *testing.T) {
	var seen []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		fmt.Fprint(w, "{}")
	})
	c.tokenFile = filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"one\n", "two"} {
		if err := os.WriteFile(c.tokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), http.MethodGet, "/x"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []string{"Bearer one", "Bearer two"}) {
		t.Errorf("the gateway saw %q", seen)
	}
}

func TestARedirectIsARefusal(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	})
	var p *Problem
	if err := c.Call(t.Context(), http.MethodGet, "/x"); !errors.As(err, &p) || p.Status != http.StatusFound {
		t.Errorf("got %v", err)
	}
}

func TestProblemsAreTold(t *testing.T) {
	cases := []struct {
		name       string
		status     int
		retryAfter string
		body       string
		says       string
		passing    bool
		wait       time.Duration
	}{
		{"protocol refusal", 422, "", `{"title":"Refused","reason_code":"malformed","detail":"no id"}`, "422: malformed: no id", false, 0},
		{"plain problem", 404, "", `{"title":"Not Found"}`, "404: Not Found", false, 0},
		{"busy store", 503, "2", `{"title":"Busy","detail":"later"}`, "503: Busy: later", true, 2 * time.Second},
		{"not ours", 502, "soon", `<html>`, "502: Bad Gateway", true, 0},
		{"absurd patience", 503, "999999999", `{}`, "503", true, time.Minute},
		{"negative patience", 503, "-1", `{}`, "503", true, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.retryAfter)
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			})
			err := c.Call(t.Context(), http.MethodGet, "/x")
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if Passing(err) != tc.passing || RetryAfter(err) != tc.wait {
				t.Errorf("passing %v after %s, want %v after %s", Passing(err), RetryAfter(err), tc.passing, tc.wait)
			}
		})
	}
}

func TestAnAbsentGatewayIsUnreachable(t *testing.T) {
	c, err := New(Options{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Call(t.Context(), http.MethodGet, "/x")
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !Passing(err) {
		t.Errorf("got %v", err)
	}
}

func TestPostSendsTheBytesAndTellsTheOutcome(t *testing.T) {
	const envelope = "{ \"id\" : \"m\\u0031\",\n \"n\":1.10 }"
	cases := []struct {
		name   string
		status int
		body   string
		want   Result
	}{
		{"new", 202, `{"id":"m1","seq":7,"duplicate":false,"parked":false}`, Result{Line: 1, Status: 202, ID: "m1"}},
		{"duplicate", 200, `{"id":"m1","seq":7,"duplicate":true}`, Result{Line: 1, Status: 200, ID: "m1", Duplicate: true}},
		{"parked", 202, `{"id":"m1","seq":null,"parked":true}`, Result{Line: 1, Status: 202, ID: "m1", Parked: true}},
		{
			"refused", 422, `{"title":"Refused","reason_code":"expired","detail":"late","id":"m1"}`,
			Result{Line: 1, Status: 422, ID: "m1", ReasonCode: "expired", Title: "Refused", Detail: "late"},
		},
		{"too large", 413, `{"title":"Too large"}`, Result{Line: 1, Status: 413, Title: "Too large"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if string(body) != envelope || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("the gateway got %q as %s", body, r.Header.Get("Content-Type"))
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			})
			got, err := c.Post(t.Context(), []byte(envelope))
			if err != nil {
				t.Fatal(err)
			}
			if hasSeq := got.Seq != nil && *got.Seq == 7; hasSeq != (tc.status < 300 && !tc.want.Parked) {
				t.Errorf("seq is %v", got.Seq)
			}
			got.Seq = nil
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestPostLinesGivesResultsWhileLinesAreStillSent(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		lines := bufio.NewScanner(r.Body)
		for n := 1; lines.Scan(); n++ {
			fmt.Fprintf(w, `{"line":%d,"status":202,"id":%q}`+"\n", n, lines.Text())
			w.(http.Flusher).Flush()
		}
	})
	reader, writer := io.Pipe()
	go fmt.Fprintln(writer, "a")
	var ids []string
	n, err := c.PostLines(t.Context(), reader, func(r Result) error {
		ids = append(ids, r.ID)
		if len(ids) == 3 {
			writer.Close()
			return nil
		}
		go fmt.Fprintln(writer, strings.Repeat("b", len(ids)))
		return nil
	})
	if err != nil || n != 3 || !slices.Equal(ids, []string{"a", "b", "bb"}) {
		t.Errorf("got %d results %q, %v", n, ids, err)
	}
}

func TestPostLinesCountsWhatWasAnsweredBeforeTheConnectionBroke(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, `{"line":1,"status":202}`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	n, err := c.PostLines(t.Context(), strings.NewReader("a\nb\n"), func(Result) error { return nil })
	if n != 1 || !Passing(err) {
		t.Errorf("got %d results, %v", n, err)
	}
}

func TestReadEventsFollowsTheFormat(t *testing.T) {
	const stream = ": hello\n\n" +
		"event: envelope\r\nid: 5\r\ndata: {\"a\":1}\r\n\r\n" +
		"data:no space\ndata: second line\n\n" +
		"event: gap\n\n" +
		"id: 9\ndata\n\n" +
		"id: 12\n\n" +
		"event: cut off\ndata: x\n"
	var got []string
	err := readEvents(strings.NewReader(stream), func() {}, func(e Event) error {
		got = append(got, fmt.Sprintf("%s|%s|%s", e.Name, e.ID, e.Data))
		return nil
	})
	want := []string{`envelope|5|{"a":1}`, "message|5|no space\nsecond line", "gap|5|", "message|9|", "|12|"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestReadEventsTakesALineLongerThanItsBuffer(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var got int
	err := readEvents(strings.NewReader("data: "+long+"\n\n"), func() {}, func(e Event) error { got = len(e.Data); return nil })
	if err != nil || got != len(long) {
		t.Errorf("got %d bytes, %v", got, err)
	}
}

func TestStreamStartsBehindThePositionAndEndsWithTheContext(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "41" || r.URL.Query().Get("peer") != "p" || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("the gateway was asked %s with %v", r.URL, r.Header)
		}
		fmt.Fprint(w, "event: envelope\nid: 42\ndata: {}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	err := c.Stream(ctx, "/s", url.Values{"peer": {"p"}}, "41", func(e Event) error {
		ids = append(ids, e.ID)
		cancel()
		return nil
	})
	if err == nil || !slices.Equal(ids, []string{"42"}) {
		t.Errorf("got %q, %v", ids, err)
	}
}

func TestStreamHandsBackTheErrorOfItsReader(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: x\n\ndata: y\n\n") })
	full := errors.New("disk full")
	if err := c.Stream(t.Context(), "/s", nil, "", func(Event) error { return full }); !errors.Is(err, full) || Passing(err) {
		t.Errorf("got %v", err)
	}
}

func TestInboxKeepsTheBytesOfEnvelopes(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.EscapedPath() {
		case "GET /v0/workspaces/w%2F1/channels/c/peers/p/inbox":
			if r.URL.Query().Get("after") != "3" || r.URL.Query().Get("wait") != "30s" || r.URL.Query().Get("limit") != "7" {
				t.Errorf("asked with %s", r.URL.RawQuery)
			}
			fmt.Fprint(w, `{"entries":[{"position":4,"seq":9,"envelope":{"n":1.10,"s":"\u0041"}}],"next":4}`)
		case "POST /v0/workspaces/w%2F1/channels/c/peers/p/inbox/ack":
			if body, _ := io.ReadAll(r.Body); string(body) != `{"position":4}` {
				t.Errorf("acknowledged with %s", body)
			}
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL)
		}
	})
	seat := Seat{"w/1", "c", "p"}
	page, err := c.Inbox(t.Context(), seat, InboxQuery{After: 3, Wait: 30 * time.Second, Limit: 7})
	if err != nil || len(page.Entries) != 1 || page.Next != 4 {
		t.Fatalf("got %+v, %v", page, err)
	}
	if e := page.Entries[0]; e.Position != 4 || string(e.Envelope) != `{"n":1.10,"s":"\u0041"}` {
		t.Fatalf("got %+v", e)
	}
	if err := c.Acknowledge(t.Context(), seat, 4); err != nil {
		t.Error(err)
	}
}
