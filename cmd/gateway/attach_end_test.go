package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestAttachGivesUpOnAnAbsentGatewayOnceItsInputHasEnded(t *testing.T) {
	silent := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v0/envelopes" {
			if r.Method == http.MethodGet {
				<-r.Context().Done()
			}
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	file, err := os.Open(writeFile(t, "lines", strings.Repeat(envelope("m", "p", "x")+"\n", 4*queuedLines)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases := []struct {
		name, url string
		stdin     io.Reader
	}{
		{"nobody listens, nothing read", "http://127.0.0.1:1", strings.NewReader("")},
		{"nobody listens, a line read", "http://127.0.0.1:1", strings.NewReader(envelope("m", "p", "x"))},
		{"nobody listens, a file longer than the queue", "http://127.0.0.1:1", file},
		{"the gateway does not answer", silent, strings.NewReader(envelope("m", "p", "x"))},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b := inBackground(t, nil, tc.stdin, "attach", "--workspace", "w", "--channel", "c", "--peer", "p",
				"--url", tc.url, "--give-up-after", "300ms", "--detach")
			b.wait(t)
			if b.status != exitFailed || !strings.Contains(b.stderr.String(), "stdin has ended, and the gateway takes nothing") {
				t.Errorf("status %d, stderr %s", b.status, &b.stderr)
			}
		})
	}
}

func TestAttachDoesNotGiveUpWhileItsInputIsOpen(t *testing.T) {
	var calls record
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && calls.add("attach") < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		}
	})
	reader, writer := io.Pipe()
	defer writer.Close()
	b := inBackground(t, nil, reader, "attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--url", url, "--give-up-after", "1ms")
	eventually(t, "it is attached in the end", func() bool { return len(calls.all()) == 4 })
	writer.Close()
	b.wait(t)
}

func TestAttachRefusesLinesOfOtherPeersItself(t *testing.T) {
	var posted record
	url := fakeGateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case r.URL.Path == "/v0/envelopes":
			body, _ := io.ReadAll(r.Body)
			for n, line := range strings.Split(strings.TrimSuffix(string(body), "\n"), "\n") {
				posted.add(line)
				fmt.Fprintf(w, `{"line":%d,"status":202,"id":"mine","seq":%d}`+"\n", n+1, n+1)
			}
		}
	})
	mine, other, unread := envelope("mine", "bob", "x"), envelope("other", "eve", "x"), `{"id":"unread","from":7}`
	got := command(t, mine+"\n"+other+"\n"+unread+"\n", "attach", "--workspace", "w", "--channel", "c", "--peer", "bob", "--url", url)
	const refused = `{"carrier":{"nack":"other","reason_code":"not_target","detail":"from is eve, but this process is attached as bob"}}` + "\n"
	if got.status != exitGood || strings.Count(got.stdout, "\n") != 3 || !strings.Contains(got.stdout, refused) {
		t.Errorf("got %+v", got)
	}
	if sent := strings.Join(posted.all(), "\n"); sent != mine+"\n"+unread {
		t.Errorf("the gateway got\n%s", sent)
	}
}
