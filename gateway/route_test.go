package gateway

import (
	"maps"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

func TestWhoGetsAMessage(t *testing.T) {
	card := fields{"body": fields{"peer_card": fields{
		"peer_id": "ann", "profiles_supported": []string{}, "capabilities": []string{},
		"artifacts_supported": []string{}, "trust_modes_supported": []string{},
	}}}
	direct := func(w *world, more ...fields) fields {
		return w.envelope("say", "ann", append([]fields{inRoom(roomOne), {"body": fields{"text": "x"}}}, more...)...)
	}
	cases := []struct {
		name  string
		setUp func(*world)
		via   func(*world) *origin
		offer func(*world) fields
		want  map[string]string
	}{
		{
			"a public message goes to every other link and, in a new thread, to all attached peers", nil, nil,
			func(w *world) fields { return w.say("ann") },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "broadcast", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"an ingress arrival goes to its own carrier too", nil, func(w *world) *origin { return w.http },
			func(w *world) fields { return w.say("ann") },
			map[string]string{"carrier:nats": "broadcast", "carrier:mqtt": "broadcast", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"never to the sender", nil, func(w *world) *origin { return w.http },
			func(w *world) fields { return w.say("bob") },
			map[string]string{"carrier:nats": "broadcast", "carrier:mqtt": "broadcast", "peer:bob": "origin", "peer:cat": "to cat"},
		},
		{
			"with participants only they receive", func(w *world) { w.arrive(w.nats, w.say("ann", fields{"mentions": []string{"cat"}})) }, nil,
			func(w *world) fields { return w.say("ann") },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "broadcast", "peer:bob": "not_participant", "peer:cat": "to cat"},
		},
		{
			"the sender alone is no participant", func(w *world) { w.arrive(w.nats, w.say("ann")) }, nil,
			func(w *world) fields { return w.say("ann") },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "broadcast", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"a mention adds the peer", func(w *world) { w.arrive(w.nats, w.say("ann", fields{"mentions": []string{"cat"}})) }, nil,
			func(w *world) fields { return w.say("ann", fields{"mentions": []string{"bob"}}) },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "broadcast", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"a directed message goes to its attached target alone", nil, nil,
			func(w *world) fields { return w.say("ann", fields{"to": "bob"}) },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "located_elsewhere", "peer:bob": "to bob", "peer:cat": "not_addressed"},
		},
		{
			"a directed message and a mention", nil, nil,
			func(w *world) fields { return w.say("ann", fields{"to": "bob", "mentions": []string{"cat"}}) },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "located_elsewhere", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"an unknown target is looked for on every link", nil, func(w *world) *origin { return w.http },
			func(w *world) fields { return w.say("ann", fields{"to": "dan"}) },
			map[string]string{"carrier:nats": "to dan", "carrier:mqtt": "to dan", "peer:bob": "not_addressed", "peer:cat": "not_addressed"},
		},
		{
			"a target that was heard is sent to there", func(w *world) { w.arrive(w.mqtt, w.say("dan", inThread("thread_two"))) },
			func(w *world) *origin { return w.http },
			func(w *world) fields { return w.say("ann", fields{"to": "dan"}) },
			map[string]string{"carrier:nats": "located_elsewhere", "carrier:mqtt": "to dan", "peer:bob": "not_addressed", "peer:cat": "not_addressed"},
		},
		{
			"a greet goes to all", func(w *world) { w.arrive(w.nats, w.say("ann", fields{"mentions": []string{"cat"}})) }, nil,
			func(w *world) fields { return w.envelope("greet", "ann", card) },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "broadcast", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"a directed whois goes to its target", nil, nil,
			func(w *world) fields {
				return w.envelope("whois", "ann", fields{"to": "bob", "body": fields{"type": "request"}})
			},
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "located_elsewhere", "peer:bob": "to bob", "peer:cat": "not_addressed"},
		},
		{
			"a direct room's message goes to the other party alone, mentions or not", nil, func(w *world) *origin { return w.http },
			func(w *world) fields { return direct(w, fields{"to": "bob", "mentions": []string{"cat"}}) },
			map[string]string{"carrier:nats": "located_elsewhere", "carrier:mqtt": "located_elsewhere", "peer:bob": "to bob", "peer:cat": "not_participant"},
		},
		{
			"a direct room's message waits for a party that is nowhere", nil, func(w *world) *origin { return w.http },
			func(w *world) fields { return direct(w, fields{"to": "dan"}) },
			map[string]string{"waiting peer:dan": "to dan", "peer:bob": "not_participant", "peer:cat": "not_participant"},
		},
		{
			"a direct room's message goes to where the party was heard", func(w *world) { w.arrive(w.mqtt, w.say("dan", inThread("thread_two"))) },
			func(w *world) *origin { return w.http },
			func(w *world) fields { return direct(w, fields{"to": "dan"}) },
			map[string]string{"carrier:nats": "located_elsewhere", "carrier:mqtt": "to dan", "peer:bob": "not_participant", "peer:cat": "not_participant"},
		},
		{
			"out of scope", func(w *world) { w.dir.links[1].scopes = []core.Scope{{Channels: []string{"other"}}} }, nil,
			func(w *world) fields { return w.say("ann") },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "out_of_scope", "peer:bob": "to bob", "peer:cat": "to cat"},
		},
		{
			"a webhook observes what its scope selects", addWebhook, nil,
			func(w *world) fields { return w.say("ann", fields{"to": "bob"}) },
			map[string]string{"carrier:nats": "origin", "carrier:mqtt": "located_elsewhere", "webhook:hook": "to bob", "peer:bob": "to bob", "peer:cat": "not_addressed"},
		},
		{
			"a webhook sees no direct room", addWebhook, func(w *world) *origin { return w.http },
			func(w *world) fields { return direct(w, fields{"to": "bob"}) },
			map[string]string{"carrier:nats": "located_elsewhere", "carrier:mqtt": "located_elsewhere", "webhook:hook": "not_participant", "peer:bob": "to bob", "peer:cat": "not_participant"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.attach(10, "bob")
			w.attach(11, "cat")
			if c.setUp != nil {
				c.setUp(w)
			}
			via := w.nats
			if c.via != nil {
				via = c.via(w)
			}
			w.accepted(w.arrive(via, c.offer(w)))
			if got := w.decisions(); !maps.Equal(got, c.want) {
				t.Fatalf("decisions\n got %v\nwant %v", got, c.want)
			}
		})
	}
}

func addWebhook(w *world) {
	r := w.dir.put(store.RecipientRow{ID: 20, Recipient: core.Recipient{Carrier: "http", Link: "hook"}}, nil)
	w.dir.addLink(r, nil, core.Scope{})
}

func TestAPeerIsLocatedByWhatIsAccepted(t *testing.T) {
	w := newWorld(t)
	w.arrive(w.http, w.say("ann"))
	if len(w.changes.Peers) != 0 {
		t.Fatal("posting located the sender")
	}
	w.arrive(w.nats, w.say("ann"))
	if len(w.located) != 1 || w.located[0].link != w.nats.row {
		t.Fatalf("located %+v", w.located)
	}
	w.arrive(w.nats, w.say("ann"))
	if len(w.located) != 0 {
		t.Fatal("the same place counted as a move")
	}
	stale := w.say("ann")
	stale["ts"] = w.now.Unix() - 1000
	w.arrive(w.mqtt, stale)
	if len(w.located) != 0 {
		t.Fatal("a refused message located its sender")
	}
}

func TestPinsReserveIds(t *testing.T) {
	p := &pins{own: "gateway.test", carriers: map[string]core.Pinner{
		"agents": pinList{{Workspaces: []string{"ws"}, Peer: "bot", Principal: "a"}},
		"http":   pinList{{Peer: "ann", Principal: "t1"}, {Peer: "ann", Principal: "t2"}},
	}}
	cases := []struct {
		workspace, peer, carrier, principal string
		want                                bool
	}{
		{"ws", "gateway.test", "nats", "", false},
		{"ws", "bot", "nats", "", false},
		{"ws", "bot", "agents", "a", true},
		{"ws", "bot", "agents", "b", false},
		{"other", "bot", "nats", "", true},
		{"ws", "ann", "http", "t1", true},
		{"ws", "ann", "http", "t2", true},
		{"ws", "ann", "http", "t3", false},
		{"ws", "ann", "mqtt", "", false},
		{"ws", "dan", "mqtt", "", true},
	}
	for _, c := range cases {
		if got := p.allow(c.workspace, c.peer, c.carrier, c.principal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

type pinList []core.Pin

func (l pinList) Pins() []core.Pin { return l }
