package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestTailGoesOnWhereTheStreamBroke(t *testing.T) {
	var asked record
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		n := asked.add(r.URL.Query().Get("after") + "/" + r.Header.Get("Last-Event-ID"))
		switch n {
		case 1:
			fmt.Fprint(w, ": open\n\nid: 7\n\n")
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			fmt.Fprint(w, "id: 8\nevent: envelope\ndata: {\"id\":\"a\"}\n\nid: 9\nevent: envelope\nda")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 4:
			fmt.Fprint(w, "id: 20\nevent: gap\ndata: {}\n\nid: 21\nevent: envelope\ndata: {\"id\":\"b\"}\n\n")
		default:
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	b := inBackground(t, nil, nil, "tail", "--workspace", "w", "--channel", "c", "--after", "3", "--url", url)
	eventually(t, "the stream is followed over all its breaks", func() bool { return len(asked.all()) == 5 })
	b.end(t)
	if want := []string{"3/", "3/7", "3/7", "3/8", "3/21"}; !slices.Equal(asked.all(), want) {
		t.Errorf("asked for %q, want %q", asked.all(), want)
	}
	if b.stdout.String() != "{\"id\":\"a\"}\n{\"id\":\"b\"}\n" || b.status != exitGood {
		t.Errorf("status %d, stdout %q", b.status, b.stdout.String())
	}
	if !strings.Contains(b.stderr.String(), "no longer kept") {
		t.Errorf("the gap is not told: %s", &b.stderr)
	}
}

func TestTailTellsLostMessagesFromAnUnknownPosition(t *testing.T) {
	cases := []struct{ name, data, says, not string }{
		{"older than what is kept", `{"after":3,"continues_after":20}`, "no longer kept", "unknown"},
		{"ahead of the history", `{"after":9999,"continues_after":20}`, "the position is unknown", "kept"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "id: 20\nevent: gap\ndata: %s\n\n", tc.data)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			b := inBackground(t, nil, nil, "tail", "--workspace", "w", "--channel", "c", "--after", "3", "--url", url)
			eventually(t, "it is told", func() bool { return strings.Contains(b.stderr.String(), "continues_after=20") })
			b.end(t)
			if said := b.stderr.String(); !strings.Contains(said, tc.says) || strings.Contains(said, tc.not) {
				t.Errorf("it says %s", said)
			}
		})
	}
}

func TestTailEndsWhenItIsRefused(t *testing.T) {
	url := fakeGateway(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if got := command(t, "", "tail", "--workspace", "w", "--channel", "c", "--url", url); got.status != exitFailed || !strings.Contains(got.stderr, "403") {
		t.Errorf("got %+v", got)
	}
}

func TestTailTextTellsWhatAMessageSays(t *testing.T) {
	cases := []struct{ envelope, says string }{
		{envelope("m", "alice", "hi\nthere"), `alice say in thread_main: "hi\nthere"`},
		{strings.Replace(envelope("m", "alice", "hi"), `"ts"`, `"to":"bob","ts"`, 1), "alice -> bob say in thread_main: hi"},
		{`{"x":"\u001b"}`, `{"x":"\u001b"}`},
		{strings.Replace(envelope("m", "alice", "hi"), `"ts":`, `"ts":1767322245,"x":`, 1), "02:50:45Z alice say in thread_main: hi"},
	}
	for _, c := range cases {
		if got := describeEnvelope("5", []byte(c.envelope)); !strings.HasPrefix(got, "5 ") || !strings.HasSuffix(got, c.says) {
			t.Errorf("got %s, want ...%s", got, c.says)
		}
	}
}
