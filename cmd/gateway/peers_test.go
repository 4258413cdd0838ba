package main

import (
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestPeersShowsWhatEachClaimsAndWhereThatWasHeard(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	long := strings.Repeat("x", 100)
	var out strings.Builder
	err := printPeers(&out, &peersPage{Peers: []core.PeerView{
		{Peer: "ada", CardCarrier: "mqtt", CardAt: &at, Card: []byte(`{"display_name":"Ada","capabilities":["add","sub"]}`)},
		{Peer: "bob", CardCarrier: "http", CardAt: &at, Card: []byte(`{"display_name":"Bob\u001b[2J","capabilities":[]}`)},
		{Peer: "cat", CardCarrier: "nats", CardAt: &at, Card: []byte(`{"capabilities":["` + long + `"]}`)},
		{Peer: "dan"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CLAIMS TO BE", "Ada: add, sub", "mqtt", "2026-01-02", "xxx\u2026"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"\x1b", long} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q in\n%s", not, out.String())
		}
	}
}
