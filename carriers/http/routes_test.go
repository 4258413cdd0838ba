package http

import (
	"bufio"
	"fmt"
	nethttp "net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// escaped writes a value as a segment of a path, dots too: clients take . and ..
// for directories.
func escaped(value string) string {
	return strings.ReplaceAll(url.PathEscape(value), ".", "%2E")
}

func TestEveryValueOfAPathCanBeSaid(t *testing.T) {
	s := start(t)
	for _, value := range []string{"/", "//", "a/", "/a", "+", "#", "%", "%2F", "$", ".", "..", "?", "&;=", "{id}", "inbox", "\u00e9 \u65e5"} {
		t.Run(value, func(t *testing.T) {
			s.mem.with(func() {
				s.mem.inspections = map[string]*core.Inspection{value: {Channel: testCh, Envelope: []byte(`{"found":1}`)}}
				s.mem.works = map[string]*core.WorkView{value: {Channel: testCh, WorkID: value}}
			})
			wantStatus(t, s.get("/v0/workspaces/ws-1/messages/"+escaped(value)), 200)
			wantStatus(t, s.get("/v0/workspaces/ws-1/work/"+escaped(value)), 200)
			wantStatus(t, s.do(s.request("POST", "/v0/agents/"+escaped(value)+"/renew", "")), 404)
			if !core.ValidWorkspaceID(value) {
				return
			}
			ws := "/v0/workspaces/" + escaped(value)
			for _, path := range []string{"/peers", "/threads", "/channels/lab/messages", "/channels/lab/peers/ada/inbox", "/messages/" + escaped(value)} {
				wantStatus(t, s.get(ws+path), 200)
			}
			wantStatus(t, s.do(s.request("PUT", ws+"/channels/lab/peers/ada", "")), 204)
			if !s.mem.isAttached(core.Attachment{WorkspaceID: value, Channel: "lab", Peer: "ada"}) {
				t.Error("another workspace was understood")
			}
		})
	}
}

func TestAWorkspaceOfDotsIsNotValid(t *testing.T) {
	s := start(t)
	for _, ws := range []string{".", "..", "a.b"} {
		wantStatus(t, s.get("/v0/workspaces/"+escaped(ws)+"/peers"), 400)
	}
}

func TestAllowNamesTheMethodsOfAPath(t *testing.T) {
	s := start(t)
	for path, want := range map[string]string{
		"/v0/envelopes":            "POST",
		"/v0/carriers":             "GET, HEAD",
		channelPath + "/peers/ada": "DELETE, PUT",
	} {
		r := s.do(s.request("PATCH", path, ""))
		if wantStatus(t, r, 405); r.header.Get("Allow") != want {
			t.Errorf("%s allows %q, want %q", path, r.header.Get("Allow"), want)
		}
	}
}

func TestAHeaderThatIsThereTwiceIsRefused(t *testing.T) {
	body := say("e1")
	for name, c := range map[string]struct {
		s       *site
		headers string
		want    int
	}{
		"types":          {start(t), "Content-Type: application/json\r\nContent-Type: application/x-ndjson\r\n", 415},
		"the same types": {start(t), "Content-Type: application/json\r\nContent-Type: application/json\r\n", 415},
		"tokens": {
			tokenSite(t), "Content-Type: application/json\r\nAuthorization: Bearer secret-ada\r\nAuthorization: Bearer secret-admin\r\n", 401,
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := c.s.dial()
			fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", c.headers, len(body), body)
			r := readReply(t, conn)
			r.problem(t)
			wantStatus(t, r, c.want)
		})
	}
}

func TestAClientThatHangsUpIsNoErrorOfOurs(t *testing.T) {
	s := start(t)
	conn := s.dial()
	fmt.Fprintf(conn, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	conn.Close()
	eventually(t, "it is noticed", func() bool { return strings.Contains(s.logs.String(), "the client hung up") })

	stream := s.dial()
	fmt.Fprintf(stream, "GET %s/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", channelPath)
	resp, err := nethttp.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Close()
	_ = resp.Body.Close()
	eventually(t, "the stream is closed", func() bool { return len(s.carrier.streams) == 0 })

	batch := s.dial()
	fmt.Fprintf(batch, "POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n{")
	batch.Close()
	s.stop()
	if logs := s.logs.String(); strings.Contains(logs, "level=ERROR") || strings.Contains(logs, "level=WARN") {
		t.Errorf("the log says\n%s", logs)
	}
}
