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

func TestWhatNeverBecomesARequestIsRefusedAsTheDocsSay(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		request string
		want    int
		problem bool
	}{
		"no HTTP":                   {"hello\r\n\r\n", 400, false},
		"a bad escape":              {"GET /v0/workspaces/%zz/peers HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, false},
		"no Host":                   {"GET /healthz HTTP/1.1\r\n\r\n", 400, false},
		"two lengths":               {"POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, false},
		"a header that is too long": {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes) + "\r\n\r\n", 431, false},
		"an expectation":            {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\n\r\n", 417, false},
		"an unknown coding":         {"POST /v0/envelopes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501, false},
		"all options":               {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, true},
		"a tunnel":                  {"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, true},
		"an unknown method":         {"BREW /v0/carriers HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, true},
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial()
			fmt.Fprint(conn, c.request)
			resp, err := nethttp.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.want || (resp.Header.Get("Content-Type") == typeProblem) != c.problem {
				t.Errorf("answered %d as %q", resp.StatusCode, resp.Header.Get("Content-Type"))
			}
		})
	}
}
