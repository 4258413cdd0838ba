package http

import (
	"net"
	nethttp "net/http"
	"strings"
	"testing"
)

func TestWithoutTokensOnlyLoopbackNamesAndOurOwnPagesAreServed(t *testing.T) {
	s := start(t)
	_, port, err := net.SplitHostPort(s.carrier.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"localhost", []string{"Host", "localhost:8080"}, 200},
		{"localhost without a port", []string{"Host", "localhost"}, 200},
		{"another localhost name", []string{"Host", "gateway.localhost:1"}, 200},
		{"upper case and a dot", []string{"Host", "LOCALHOST."}, 200},
		{"127.0.0.0/8", []string{"Host", "127.8.9.1:80"}, 200},
		{"IPv6 loopback", []string{"Host", "[::1]:80"}, 200},
		{"IPv6 loopback without a port", []string{"Host", "[::1]"}, 200},
		{"a name that resolves to here", []string{"Host", "evil.example:8080"}, 403},
		{"a name that looks like ours", []string{"Host", "localhost.evil.example"}, 403},
		{"a private address", []string{"Host", "192.168.1.5:8080"}, 403},
		{"unspecified", []string{"Host", "0.0.0.0:8080"}, 403},
		{"a number", []string{"Host", "2130706433"}, 403},
		{"our own page", []string{"Origin", "http://localhost:PORT"}, 200},
		{"our own page by another name", []string{"Origin", "http://[::1]:PORT"}, 200},
		{"our own page without TLS of which we have none", []string{"Origin", "https://localhost:PORT"}, 403},
		{"a page of another port", []string{"Origin", "http://localhost:3000"}, 403},
		{"a page of the standard port", []string{"Origin", "http://127.0.0.1"}, 403},
		{"no origin but a URL", []string{"Origin", "http://localhost:PORT/x"}, 403},
		{"an origin with a user", []string{"Origin", "http://localhost:PORT@evil.example:PORT"}, 403},
		{"a foreign name with our port", []string{"Origin", "http://evil.example:PORT"}, 403},
		{"an origin whose site is told, too", []string{"Origin", "http://localhost:PORT", "Sec-Fetch-Site", "same-origin"}, 200},
		{"a foreign page", []string{"Origin", "https://evil.example"}, 403},
		{"a page without an origin", []string{"Origin", "null"}, 403},
		{"a page from a file", []string{"Origin", "file://localhost/x"}, 403},
		{"an image in a foreign page", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"an image in a page of another port", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"our own image", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"an address that was typed", []string{"Sec-Fetch-Site", "none"}, 200},
	} {
		for i, h := range c.headers {
			c.headers[i] = strings.ReplaceAll(h, "PORT", port)
		}
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"/v0/carriers", "/healthz", channelPath + "/messages"} {
				wantStatus(t, s.get(path, c.headers...), c.want)
			}
			if c.want != 403 {
				return
			}
			wantStatus(t, s.get(channelPath+"/stream", c.headers...), 403)
			wantStatus(t, s.get(channelPath+"/peers/ada/inbox?after=1", c.headers...), 403)
			wantStatus(t, s.post(say("e1"), c.headers...), 403)
			wantStatus(t, s.do(s.request("DELETE", channelPath+"/peers/ada", "", c.headers...)), 403)
		})
	}
	if n := len(s.mem.offers()); n != 0 {
		t.Errorf("%d frames were offered", n)
	}
}

func TestAnInsecureListenerStillRefusesForeignPages(t *testing.T) {
	s := start(t, func(c *Config) { c.Listen, c.Insecure = "0.0.0.0:0", true })
	s.url = strings.Replace(s.url, "[::]", "127.0.0.1", 1)
	wantStatus(t, s.get("/v0/carriers", "Host", "gateway.internal:8080"), 200)
	wantStatus(t, s.get("/v0/carriers", "Origin", "https://evil.example"), 403)
}

func TestEveryAnswerThatIsNotSuccessIsAProblem(t *testing.T) {
	s := start(t)
	s.mem.readErr = errSecretTooLong
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 404},
		{"GET", "/v0", 404},
		{"GET", "/v0/carriers/", 404},
		{"GET", "//v0/carriers", 404},
		{"GET", "/v0/../v0/carriers", 404},
		{"GET", "/v0/workspaces//peers", 404},
		{"GET", "/v0/workspaces/ws-1/threads/", 404},
		{"GET", "/v0/envelopes", 405},
		{"DELETE", "/v0/envelopes", 405},
		{"POST", "/v0/carriers", 405},
		{"PATCH", channelPath + "/peers/ada", 405},
		{"OPTIONS", "/v0/envelopes", 405},
		{"GET", "/metrics", 404},
		{"GET", "/v0/workspaces/a.b/peers", 400},
		{"GET", "/v0/workspaces/w/channels/UPPER/messages", 400},
		{"PUT", channelPath + "/peers/UPPER", 400},
		{"GET", channelPath + "/messages?after=x", 400},
		{"GET", channelPath + "/messages?after=-1", 400},
		{"GET", channelPath + "/messages?limit=0", 400},
		{"GET", channelPath + "/messages?kind=direct", 400},
		{"GET", channelPath + "/messages?thread_id=x", 400},
		{"GET", channelPath + "/messages?peer=UPPER", 400},
		{"GET", channelPath + "/messages?after=%zz", 400},
		{"GET", channelPath + "/messages?after=1;limit=2", 400},
		{"GET", channelPath + "/messages?after=1&after=2", 400},
		{"GET", channelPath + "/messages?limit=1&limit=1", 400},
		{"GET", channelPath + "/messages?peer=&peer=ada", 400},
		{"GET", channelPath + "/messages?limits=1", 400},
		{"GET", channelPath + "/messages?Peer=ada", 400},
		{"GET", channelPath + "/stream?limit=1", 400},
		{"GET", channelPath + "/peers/ada/inbox?peer=bob", 400},
		{"PUT", channelPath + "/peers/ada?x", 400},
		{"DELETE", "/v0/deadletters/1-1?force=1", 400},
		{"POST", "/v0/envelopes?dry=1", 400},
		{"GET", "/v0/carriers?all", 400},
		{"GET", channelPath + "/stream?after=x", 400},
		{"GET", channelPath + "/peers/ada/inbox?wait=soon", 400},
		{"GET", "/v0/workspaces/ws-1/messages/none", 404},
		{"GET", "/v0/workspaces/ws-1/work/none", 404},
		{"POST", "/v0/deadletters/none/replay", 400},
		{"DELETE", "/v0/deadletters/1-1", 404},
		{"GET", "/v0/deadletters?after=x", 400},
		{"GET", channelPath + "/messages", 500},
		{"GET", "/v0/workspaces/ws-1/threads", 500},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := s.do(s.request(c.method, c.path, ""))
			wantStatus(t, r, c.want)
			if c.want == 405 && r.header.Get("Allow") == "" {
				t.Error("405 names no method")
			}
			if c.want == 500 && strings.Contains(string(r.body), errSecretTooLong.Error()) {
				t.Errorf("the cause is told to everybody: %s", r.body)
			}
		})
	}
	if !strings.Contains(s.logs.String(), errSecretTooLong.Error()) {
		t.Error("the cause of a 500 is not logged")
	}
}

func TestHeadOpensNoStream(t *testing.T) {
	s := start(t)
	for _, path := range []string{channelPath + "/stream", channelPath + "/peers/ada/inbox"} {
		resp, err := s.client.Head(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 {
			t.Errorf("HEAD %s: %d", path, resp.StatusCode)
		}
	}
}

func TestAHandlerThatPanicsIsAnswered500(t *testing.T) {
	s := start(t)
	s.carrier.backend.Metrics = nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) { panic("at the metrics") })
	wantStatus(t, s.get("/metrics"), 500)
	if logs := s.logs.String(); !strings.Contains(logs, "handler panicked") {
		t.Errorf("the panic is not logged: %s", logs)
	}
}
