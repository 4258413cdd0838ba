package nats

import (
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
	"pgregory.net/rapid"
)

const bobToken = "790dd5515558f7784877abcbca51c5ba"

func TestDestination(t *testing.T) {
	s := subjects{prefix: "compozy.network.v0"}
	cases := []struct {
		name, workspace, channel, to, want string
	}{
		{"broadcast", "ws", "lab", "", "compozy.network.v0.ws.lab.broadcast"},
		{"peer", "ws", "lab", "reviewer.sess-xyz", "compozy.network.v0.ws.lab.peer." + bobToken},
		{"signs that are legal in a workspace", "a/b+c#d%e$f", "lab", "", "compozy.network.v0.a/b+c#d%e$f.lab.broadcast"},
		{"letters of any script", "é工作", "lab", "", "compozy.network.v0.é工作.lab.broadcast"},
		{"empty workspace", "", "lab", "", ""},
		{"empty channel", "ws", "", "", ""},
		{"greater-than", "ws>", "lab", "", ""},
		{"asterisk", "*", "lab", "", ""},
		{"dot", "a.b", "lab", "", ""},
		{"leading dot", ".a", "lab", "", ""},
		{"trailing dot", "a.", "lab", "", ""},
		{"double dot", "a..b", "lab", "", ""},
		{"space", "a b", "lab", "", ""},
		{"tab", "a\tb", "lab", "", ""},
		{"carriage return", "a\rb", "lab", "", ""},
		{"another protocol line", "a\r\nPUB x 0\r\n", "lab", "", ""},
		{"NUL", "a\x00b", "lab", "", ""},
		{"wildcard channel", "ws", ">", "", ""},
		{"channel with a dot", "ws", "lab.peer", "", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := s.destination(tc.workspace, tc.channel, tc.to)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	s := subjects{prefix: "p.q"}
	cases := []struct {
		name, subject string
		want          *core.Address
		arrival       core.Arrival
	}{
		{"broadcast", "p.q.ws.lab.broadcast", &core.Address{WorkspaceID: "ws", Channel: "lab", Class: core.AddressBroadcast}, core.ArrivalNative},
		{"peer", "p.q.ws.lab.peer." + bobToken, &core.Address{WorkspaceID: "ws", Channel: "lab", Class: core.AddressPeer, Token: bobToken}, core.ArrivalNative},
		{"ingress", "p.q.ws.lab.ingress", &core.Address{WorkspaceID: "ws", Channel: "lab", Class: core.AddressIngress}, core.ArrivalIngress},
		{"é", "p.q.é.lab.ingress", &core.Address{WorkspaceID: "é", Channel: "lab", Class: core.AddressIngress}, core.ArrivalIngress},
		{"other prefix", "p.x.ws.lab.broadcast", nil, core.ArrivalNative},
		{"prefix alone", "p.q", nil, core.ArrivalNative},
		{"too short", "p.q.ws.lab", nil, core.ArrivalNative},
		{"too long", "p.q.ws.lab.broadcast.more", nil, core.ArrivalNative},
		{"unknown class", "p.q.ws.lab.shout", nil, core.ArrivalNative},
		{"peer without token", "p.q.ws.lab.peer", nil, core.ArrivalNative},
		{"peer with a name", "p.q.ws.lab.peer.bob", nil, core.ArrivalNative},
		{"token in upper case", "p.q.ws.lab.peer." + strings.ToUpper(bobToken), nil, core.ArrivalNative},
		{"channel in upper case", "p.q.ws.LAB.broadcast", nil, core.ArrivalNative},
		{"ingress with a bad channel", "p.q.ws.LAB.ingress", nil, core.ArrivalIngress},
		{"workspace that is no UTF-8", "p.q.\xff.lab.broadcast", nil, core.ArrivalNative},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, arrival, bad := s.parse(tc.subject)
			if arrival != tc.arrival || (got == nil) != (tc.want == nil) || (got != nil && *got != *tc.want) {
				t.Errorf("got %+v, %v; want %+v, %v", got, arrival, tc.want, tc.arrival)
			}
			if (bad == "") != (tc.want != nil) {
				t.Errorf("why: %q", bad)
			}
		})
	}
}

func TestWhatIsWrongWithASubjectStaysShort(t *testing.T) {
	_, _, bad := subjects{prefix: "p"}.parse("p." + strings.Repeat("é", 2000))
	if len(bad) > 400 {
		t.Errorf("the reason has %d bytes", len(bad))
	}
}

// TestDestinationReadsBack holds for every workspace that the protocol allows.
func TestDestinationReadsBack(t *testing.T) {
	s := subjects{prefix: "compozy.network.v0"}
	rapid.Check(t, func(t *rapid.T) {
		workspace := rapid.StringN(1, -1, 256).Filter(core.ValidWorkspaceID).Draw(t, "workspace")
		channel := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,20}`).Draw(t, "channel")
		to := rapid.SampledFrom([]string{"", "bob", "reviewer.sess-xyz"}).Draw(t, "to")
		subject, err := s.destination(workspace, channel, to)
		if err != nil {
			t.Fatalf("a legal address is refused: %v", err)
		}
		got, arrival, bad := s.parse(subject)
		if bad != "" || got.WorkspaceID != workspace || got.Channel != channel || arrival != core.ArrivalNative {
			t.Fatalf("%q reads back as %+v (%s)", subject, got, bad)
		}
		if (to == "") != (got.Class == core.AddressBroadcast) || (to != "" && got.Token != core.RouteToken(to)) {
			t.Fatalf("%q reads back as %+v, for %q", subject, got, to)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"p.ws.lab.broadcast", "p.ws.lab.peer." + bobToken, "p.é.lab.ingress", "p", "p....", "p.ws.lab.peer."} {
		f.Add(seed)
	}
	s := subjects{prefix: "p"}
	f.Fuzz(func(t *testing.T, subject string) {
		a, _, bad := s.parse(subject)
		if (a == nil) == (bad == "") {
			t.Fatalf("%q gives %+v and %q", subject, a, bad)
		}
		if a == nil {
			return
		}
		back := "p." + a.WorkspaceID + "." + a.Channel + "." + string(a.Class)
		if a.Class == core.AddressPeer {
			back += "." + a.Token
		}
		if back != subject {
			t.Fatalf("%q reads as %+v", subject, a)
		}
	})
}

func TestCovers(t *testing.T) {
	cases := []struct {
		pattern, other string
		want           bool
	}{
		{"a.>", "a.b", true},
		{"a.>", "a.>", true},
		{"a.>", "a", false},
		{">", "a.*.c", true},
		{"a.*.c", "a.*.c", true},
		{"a.*.c", "a.b.c", true},
		{"a.b.c", "a.*.c", false},
		{"a.*", "a.>", false},
		{"a.*.*.*", "a.*.*.broadcast", true},
		{"a.*", "a.b.c", false},
		{"a.b", "a.b", true},
	}
	for _, tc := range cases {
		if got := covers(tc.pattern, tc.other); got != tc.want {
			t.Errorf("covers(%q, %q) = %v", tc.pattern, tc.other, got)
		}
	}
}
