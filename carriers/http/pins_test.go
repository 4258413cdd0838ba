package http

import (
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// foreignPin is the principal of a pin that another carrier holds.
const foreignPin = "an agent"

func TestAReservedPeerIsReadByItsOwnerAlone(t *testing.T) {
	room := func(s *site) {
		s.mem.pins = append(s.mem.pins, core.Pin{Workspaces: []string{testWS}, Peer: "rex", Principal: foreignPin})
		s.mem.put(1, `{"room":"of rex"}`, "rex", "bob")
		s.mem.inspections["m1"] = &core.Inspection{Channel: testCh, Envelope: []byte(`{"room":"of rex"}`), Parties: [2]string{"rex", "bob"}}
		s.mem.works["w1"] = &core.WorkView{Channel: testCh, Surface: core.SurfaceDirect, Initiator: "rex", Target: "bob", WorkID: "of rex"}
	}
	open := func(c *Config) {
		c.Tokens["open"] = TokenConfig{TokenFile: file(t, "open", "secret-open")}
	}
	s := tokenSite(t, open)
	room(s)
	for _, path := range []string{
		channelPath + "/messages?peer=rex", channelPath + "/stream?after=0&peer=rex",
		"/v0/workspaces/ws-1/messages/m1?peer=rex", "/v0/workspaces/ws-1/work/w1?peer=rex",
		channelPath + "/peers/rex/inbox", channelPath + "/messages?peer=ada",
	} {
		t.Run("GET "+path, func(t *testing.T) {
			r := s.get(path, as("open")...)
			if wantStatus(t, r, 403); strings.Contains(string(r.body), "of rex") {
				t.Errorf("the answer shows the room: %s", r.body)
			}
		})
	}
	for _, who := range []string{"open", "admin"} {
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "", ""}, {"DELETE", "", ""}, {"POST", "/inbox/ack", `{"position":1}`},
		} {
			t.Run(who+" "+c.method+c.path, func(t *testing.T) {
				wantStatus(t, s.do(s.request(c.method, channelPath+"/peers/rex"+c.path, c.body, as(who)...)), 403)
			})
		}
	}
	wantStatus(t, s.get(channelPath+"/messages?peer=bob", as("open")...), 200)
	wantStatus(t, s.get("/v0/workspaces/ws-2/messages/m1?peer=rex", as("open")...), 200)
	for _, query := range []string{"", "?peer=rex"} {
		if r := s.get(channelPath+"/messages"+query, as("admin")...); !strings.Contains(string(r.body), "of rex") {
			t.Errorf("an admin with %q sees %s", query, r.body)
		}
	}

	claimed := start(t)
	room(claimed)
	if r := claimed.get(channelPath + "/messages?peer=rex"); !strings.Contains(string(r.body), "of rex") {
		t.Errorf("without tokens peer= is not taken as the claim that it is: %s", r.body)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		r := claimed.do(claimed.request(method, channelPath+"/peers/rex", ""))
		if wantStatus(t, r, 403); !strings.Contains(string(r.body), "an agent which the gateway hosts") {
			t.Errorf("%s of an agent's peer is refused with %s", method, r.body)
		}
	}
}
