package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeGateway answers like a gateway that misbehaves as a test tells it to.
func fakeGateway(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// record collects what a fake gateway was sent.
type record struct {
	mu   sync.Mutex
	list []string
}

func (r *record) add(entry string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, entry)
	return len(r.list)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

func TestSendTellsDocumentsFromLines(t *testing.T) {
	const one = "{\n \"id\": \"1\"\r\n}\n"
	cases := []struct {
		name, input string
		bodies      []string
	}{
		{"one line", `{"id":"1"}` + "\n", []string{`application/x-ndjson {"id":"1"}` + "\n"}},
		{"one line without its end", `{"id":"1"}`, []string{`application/json {"id":"1"}`}},
		{"two lines", `{"id":"1"}` + "\n" + `{"id":"2"}`, []string{`application/x-ndjson {"id":"1"}` + "\n" + `{"id":"2"}`}},
		{"one envelope over several lines", one, []string{"application/json " + one}},
		{"broken first line", "{bad\n{\"id\":\"2\"}\n", []string{"application/x-ndjson {bad\n{\"id\":\"2\"}\n"}},
		{"one broken line", "{bad\n", []string{"application/json {bad\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got record
			url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got.add(r.Header.Get("Content-Type") + " " + string(body))
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprintln(w, `{"line":1,"status":202,"id":"1","seq":5}`)
			})
			if out := command(t, c.input, "send", "--url", url); out.status != exitGood || out.stdout != "1 committed id=1 seq=5\n" {
				t.Errorf("got %+v", out)
			}
			if !slices.Equal(got.all(), c.bodies) {
				t.Errorf("the gateway got %q, want %q", got.all(), c.bodies)
			}
		})
	}
}

func TestSendPrintsEveryResultAndFailsWhenOneIsRefused(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, `{"line":1,"status":202,"id":"a","seq":5}`)
		fmt.Fprintln(w, `{"line":2,"status":200,"id":"a","seq":5,"duplicate":true}`)
		fmt.Fprintln(w, `{"line":3,"status":202,"id":"b","seq":null,"parked":true}`)
		fmt.Fprintln(w, `{"line":4,"status":422,"id":"c","title":"x","reason_code":"expired","detail":"too old \u001b[2J"}`)
		fmt.Fprintln(w, `{"line":5,"status":503,"title":"Service Unavailable","detail":"later"}`)
	})
	input := strings.Repeat("{}\n", 5)
	text := command(t, input, "send", "--url", url)
	want := "1 committed id=a seq=5\n2 duplicate id=a seq=5 (committed before)\n" +
		"3 parked id=b (it waits for the message that opens its work)\n" +
		"4 refused: expired: \"too old \\x1b[2J\"\n5 refused: Service Unavailable: later\n"
	if text.status != exitFailed || text.stdout != want || text.stderr != "" {
		t.Errorf("got %d %q\n%s\nwant\n%s", text.status, text.stderr, text.stdout, want)
	}
	asJSON := command(t, input, "send", "--url", url, "-o", "json")
	wantJSON := `{"line":1,"status":202,"id":"a","seq":5,"duplicate":false,"parked":false}
{"line":2,"status":200,"id":"a","seq":5,"duplicate":true,"parked":false}
{"line":3,"status":202,"id":"b","seq":null,"duplicate":false,"parked":true}
{"line":4,"status":422,"id":"c","reason_code":"expired","title":"x","detail":"too old \u001b[2J"}
{"line":5,"status":503,"title":"Service Unavailable","detail":"later"}
`
	if asJSON.stdout != wantJSON {
		t.Errorf("got\n%s\nwant\n%s", asJSON.stdout, wantJSON)
	}
}

func TestCommandsSayWhenNobodyAnswers(t *testing.T) {
	for _, args := range [][]string{
		{"send"},
		{"peers", "--workspace", "w"},
		{"work", "x", "--workspace", "w"},
		{"inspect", "x", "--workspace", "w"},
		{"deadletters", "list"},
		{"deadletters", "replay", "1-1"},
		{"tail", "--workspace", "w", "--channel", "c"},
	} {
		got := command(t, "{}", append(args, "--url", "http://127.0.0.1:1")...)
		if got.status != exitFailed || !strings.Contains(got.stderr, "no answer from the gateway at http://127.0.0.1:1") {
			t.Errorf("%v: %+v", args, got)
		}
		if !strings.Contains(got.stderr, "start it with `gateway serve`") {
			t.Errorf("%v does not say what to do: %s", args, got.stderr)
		}
	}
}

func TestWhatIsNotKnownIsNamed(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	cases := []struct {
		name string
		args []string
		says []string
	}{
		{"a message", []string{"inspect", "m-1", "--workspace", "w"}, []string{"workspace w has no message m-1", "name one with --peer", "404"}},
		{"a unit of work", []string{"work", "w-1", "--workspace", "w"}, []string{"workspace w has no work w-1", "name one with --peer"}},
		{"a message, as somebody", []string{"inspect", "m-1", "--workspace", "w", "--peer", "bob"}, []string{"no message m-1", "--peer bob is shown"}},
		{"an agent", []string{"agents", "renew", "echo"}, []string{"renew agent echo: "}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := command(t, "", append(tc.args, "--url", url)...)
			for _, want := range tc.says {
				if got.status != exitFailed || !strings.Contains(got.stderr, want) {
					t.Errorf("%+v; want %q", got, want)
				}
			}
		})
	}
}

func TestAttachSendsAgainWhatHadNoAnswer(t *testing.T) {
	var posted record
	attempts := 0
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case r.URL.Path == "/v0/envelopes":
			attempts++
			lines := bufio.NewScanner(r.Body)
			for n := 1; lines.Scan(); n++ {
				posted.add(lines.Text())
				if attempts == 1 {
					panic(http.ErrAbortHandler)
				}
				status := http.StatusAccepted
				if attempts == 2 {
					status = http.StatusServiceUnavailable
				}
				fmt.Fprintf(w, `{"line":%d,"status":%d,"id":"x","seq":%d}`+"\n", n, status, n)
			}
		}
	})
	got := command(t, "{\"id\":\"x\"}\n", "attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--url", url)
	if got.status != exitGood || got.stdout != `{"carrier":{"ack":"x","seq":1}}`+"\n" {
		t.Errorf("got %+v", got)
	}
	if want := slices.Repeat([]string{`{"id":"x"}`}, 3); !slices.Equal(posted.all(), want) {
		t.Errorf("the gateway got %q", posted.all())
	}
}

func TestAttachAnswersRefusedLinesAndKeepsGoing(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case r.URL.Path == "/v0/envelopes":
			body, _ := io.ReadAll(r.Body)
			for n := range strings.Count(string(body), "\n") {
				fmt.Fprintf(w, `{"line":%d,"status":422,"reason_code":"malformed","detail":"no \"id\""}`+"\n", n+1)
			}
		}
	})
	input := "{bad\n" + "{" + strings.Repeat("x", maxLineBytes) + "\n{}"
	got := command(t, input, "attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--url", url)
	const refused = `{"carrier":{"nack":null,"reason_code":"malformed","detail":"no \"id\""}}`
	lines := strings.Split(got.stdout, "\n")
	slices.Sort(lines)
	if got.status != exitGood || len(lines) != 4 || lines[3] != refused || lines[2] != refused || !strings.Contains(lines[1], "longer than") {
		t.Errorf("got %d\n%s\n%s", got.status, got.stdout, got.stderr)
	}
}

func TestAttachEndsWhenItIsRefused(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	reader, writer := io.Pipe()
	defer writer.Close()
	b := inBackground(t, nil, reader, "attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--url", url)
	b.wait(t)
	writer.Close()
	if b.status != exitFailed || !strings.Contains(b.stderr.String(), "403") {
		t.Errorf("status %d, %s", b.status, &b.stderr)
	}
}

func TestAttachAcknowledgesOnlyWhatWasWritten(t *testing.T) {
	var calls record
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet && r.URL.Query().Get("after") == "0":
			fmt.Fprint(w, `{"entries":[{"position":4,"seq":4,"envelope":{"id":"a",`+"\n"+`"n":1.10}},{"position":6,"seq":6,"envelope":{"id":"b"}}],"next":6}`)
		case r.Method == http.MethodGet:
			calls.add("poll after " + r.URL.Query().Get("after"))
			<-r.Context().Done()
		default:
			calls.add(r.Method + " " + r.URL.Path + " " + string(body))
		}
	})
	reader, writer := io.Pipe()
	b := inBackground(t, nil, reader, "attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--detach", "--url", url)
	eventually(t, "the next poll is asked", func() bool { return slices.Contains(calls.all(), "poll after 6") })
	writer.Close()
	b.wait(t)
	if b.stdout.String() != "{\"id\":\"a\", \"n\":1.10}\n{\"id\":\"b\"}\n" {
		t.Errorf("stdout is %q", b.stdout.String())
	}
	const peer = "/v0/workspaces/w/channels/c/peers/p"
	want := []string{"PUT " + peer + " ", "POST " + peer + `/inbox/ack {"position":6}`, "poll after 6", "DELETE " + peer + " "}
	if !slices.Equal(calls.all(), want) {
		t.Errorf("calls are %q, want %q", calls.all(), want)
	}
}

func TestDeadLettersAreListedOverAllPagesAndHandledOneByOne(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path + "?" + r.URL.Query().Get("after") {
		case "GET /v0/deadletters?":
			fmt.Fprint(w, `{"deadletters":[{"delivery":"1-1","recipient":"carrier:mqtt","workspace_id":"w","id":"m","reason":"too large","attempts":2}],"next":"1-1"}`)
		case "GET /v0/deadletters?1-1":
			fmt.Fprint(w, `{"deadletters":[{"delivery":"2-1","recipient":"webhook:h","workspace_id":"w","id":"n","reason":"http 404","attempts":1}],"next":null}`)
		case "POST /v0/deadletters/1-1/replay?", "DELETE /v0/deadletters/2-1?":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"title":"Conflict","detail":"has expired"}`)
		}
	})
	list := command(t, "", "deadletters", "list", "--url", url)
	if list.status != exitGood || !strings.Contains(list.stdout, "too large") || !strings.Contains(list.stdout, "webhook:h") {
		t.Errorf("got %+v", list)
	}
	replay := command(t, "", "deadletters", "replay", "9-9", "1-1", "--url", url)
	if replay.status != exitFailed || replay.stdout != "replayed 1-1\n" || !strings.Contains(replay.stderr, "9-9: the gateway answered 409: Conflict: has expired") {
		t.Errorf("got %+v", replay)
	}
	asJSON := command(t, "", "deadletters", "replay", "9-9", "1-1", "--url", url, "-o", "json")
	if want := `{"delivery":"9-9","outcome":"failed","error":"the gateway answered 409: Conflict: has expired"}` + "\n" +
		`{"delivery":"1-1","outcome":"replayed"}` + "\n"; asJSON.status != exitFailed || asJSON.stdout != want {
		t.Errorf("got %+v, want %s", asJSON, want)
	}
	if discard := command(t, "", "deadletters", "discard", "2-1", "--url", url); discard.status != exitGood || discard.stdout != "discarded 2-1\n" {
		t.Errorf("got %+v", discard)
	}
}

func TestDocumentsArePrintedAsTheyCameOrAsTables(t *testing.T) {
	answers := map[string]string{
		"/v0/workspaces/w/peers":  "{\"peers\":[{\"peer\":\"bob\",\"attached\":[\"a\",\"b\"],\n\"card\":{\"n\":1.10,\"s\":\"<\"}}]}\n",
		"/v0/workspaces/w/work/x": `{"work_id":"x","state":"needs_input","initiator":"a","target":"b","container_id":"thread_t"}`,
	}
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answers[r.URL.Path]) })
	cases := []struct {
		args       []string
		text, json string
	}{
		{[]string{"peers"}, "a,b", `{"peers":[{"peer":"bob","attached":["a","b"], "card":{"n":1.10,"s":"<"}}]}` + "\n"},
		{[]string{"work", "x"}, "needs_input", answers["/v0/workspaces/w/work/x"] + "\n"},
	}
	for _, c := range cases {
		args := append(c.args, "--workspace", "w", "--url", url)
		if got := command(t, "", args...); got.status != exitGood || !strings.Contains(got.stdout, c.text) {
			t.Errorf("%v: %+v", args, got)
		}
		if got := command(t, "", append(args, "-o", "json")...); got.stdout != c.json {
			t.Errorf("%v: got %q, want %q", args, got.stdout, c.json)
		}
	}
}

func TestAnInspectionTellsWhatTheMessageIs(t *testing.T) {
	cases := []struct{ name, envelope, says string }{
		{
			"directed in a thread",
			strings.NewReplacer(`"ts":`, `"to":"bob","mentions":["eve"],"expires_at":1767322305,"ts":1767322245,"x":`).Replace(envelope("m", "alice", "hi")),
			"say from alice to bob, mentioning eve, in thread thread_main, in channel general of workspace demo, sent 2026-01-02 02:50:45.000Z, expires 2026-01-02 02:51:45.000Z\n",
		},
		{
			"in a direct room",
			strings.NewReplacer(`"surface":"thread","thread_id":"thread_main"`, `"surface":"direct","direct_id":"direct_0123456789abcdef0123456789abcdef"`).Replace(envelope("m", "alice", "hi")),
			"say from alice, in direct room direct_0123456789abcdef0123456789abcdef, in channel general",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			url := fakeGateway(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"seq":5,"committed_at":"2026-01-02T03:04:05+02:00","carrier":"nats","arrival":"native","envelope":%s}`, tc.envelope)
			})
			got := command(t, "", "inspect", "m", "--workspace", "demo", "--url", url)
			if got.status != exitGood || !strings.Contains(got.stdout, tc.says) || !strings.Contains(got.stdout, "seq 5, committed 2026-01-02 01:04:05.000Z") {
				t.Errorf("got %+v, want %s", got, tc.says)
			}
		})
	}
}
