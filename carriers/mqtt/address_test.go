package mqtt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/compozy-gateway/gateway/core"
)

func TestWorkspacesSurviveTheTopicLevel(t *testing.T) {
	tests := []struct{ workspace, level string }{
		{"ws-1", "ws-1"},
		{"acme/lab", "acme%2Flab"},
		{"a+b", "a%2Bb"},
		{"#1", "%231"},
		{"50%", "50%25"},
		{"$SYS", "%24SYS"},
		{"%2F", "%252F"},
		{"/+#%$", "%2F%2B%23%25%24"},
		{"工作-é", "工作-é"},
		{"a\u0085b", "a%C2%85b"},
		{"\u0080\u009f", "%C2%80%C2%9F"},
		{"a\ufdd0\ufffe\U0001ffff", "a%EF%B7%90%EF%BF%BE%F0%9F%BF%BF"},
		{"a\u00a0b\ufffd", "a\u00a0b\ufffd"},
		{strings.Repeat("/", 256), strings.Repeat("%2F", 256)},
	}
	for _, tt := range tests {
		if got := escape(tt.workspace); got != tt.level {
			t.Errorf("escape(%q) = %q, want %q", tt.workspace, got, tt.level)
		}
		if got, err := unescape(tt.level); err != nil || got != tt.workspace {
			t.Errorf("unescape(%q) = %q, %v, want %q", tt.level, got, err, tt.workspace)
		}
	}
}

func TestTopicsAreLocated(t *testing.T) {
	const prefix = "compozy/network/v0"
	native, ingress := core.ArrivalNative, core.ArrivalIngress
	tests := []struct {
		topic   string
		ours    bool
		arrival core.Arrival
		address core.Address
		bad     bool
	}{
		{"compozy/network/v0/ws/lab/broadcast", true, native, core.Address{WorkspaceID: "ws", Channel: "lab", Class: core.AddressBroadcast}, false},
		{"compozy/network/v0/ws/lab/ingress", true, ingress, core.Address{WorkspaceID: "ws", Channel: "lab", Class: core.AddressIngress}, false},
		{"compozy/network/v0/a%2Fb%2B/lab/peer/t0", true, native, core.Address{WorkspaceID: "a/b+", Channel: "lab", Class: core.AddressPeer, Token: "t0"}, false},
		{"compozy/network/v0/a%C2%85b/lab/broadcast", true, native, core.Address{WorkspaceID: "a\u0085b", Channel: "lab", Class: core.AddressBroadcast}, false},
		{"compozy/network/v0/a%2fb/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%2Fb%2b/lab/peer/t0", true, native, core.Address{}, true},
		{"compozy/network/v0/%64emo/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/demo%2D1/lab/ingress", true, ingress, core.Address{}, true},
		{"compozy/network/v0/%E5%B7%A5/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a$b/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a\u0085b/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%c2%85b/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%2/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%zz/lab/ingress", true, ingress, core.Address{}, true},
		{"compozy/network/v0/a%ff/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0//lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/ws//broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/peer/", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/peer", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/peer/a/b", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/broadcast/x", true, native, core.Address{}, true},
		{"compozy/network/v0/a/b/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/broadcast/", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/br/foo", true, native, core.Address{}, true},
		{"compozy/network/v0/", true, native, core.Address{}, true},
		{"compozy/network/v0", true, native, core.Address{}, true},
		{"compozy/network/v00/ws/lab/broadcast", false, 0, core.Address{}, false},
		{"compozy/network/v1/ws/lab/broadcast", false, 0, core.Address{}, false},
		{"broadcast", false, 0, core.Address{}, false},
		{"", false, 0, core.Address{}, false},
	}
	for _, tt := range tests {
		at, ours := locate(prefix, tt.topic)
		if ours != tt.ours || at.arrival != tt.arrival && ours || (at.bad != "") != tt.bad {
			t.Errorf("locate(%q) = %+v, %v", tt.topic, at, ours)
			continue
		}
		if ours && !tt.bad && *at.address != tt.address {
			t.Errorf("locate(%q) = %+v, want %+v", tt.topic, *at.address, tt.address)
		}
	}
}

func TestTopicsLeadToTheRecipient(t *testing.T) {
	const prefix = "p"
	token := core.RouteToken("reviewer.sess-xyz")
	tests := []struct{ workspace, channel, to, topic string }{
		{"ws", "lab", "", "p/ws/lab/broadcast"},
		{"a/b", "lab", "reviewer.sess-xyz", "p/a%2Fb/lab/peer/" + token},
		{"", "lab", "", ""},
		{"ws", "", "", ""},
		{"ws", "a/b", "", ""},
		{"ws", "a+", "", ""},
		{"ws", "#", "", ""},
		{"a\u0085b", "lab", "", "p/a%C2%85b/lab/broadcast"},
		{"a\x00", "lab", "", ""},
		{"a.b", "lab", "", ""},
		{"\xff", "lab", "", ""},
		{"a\r\n", "lab", "", ""},
	}
	for _, tt := range tests {
		got, err := topicFor(prefix, tt.workspace, tt.channel, tt.to)
		if got != tt.topic || (err != nil) != (tt.topic == "") {
			t.Errorf("topicFor(%q, %q, %q) = %q, %v, want %q", tt.workspace, tt.channel, tt.to, got, err, tt.topic)
		}
	}
}

func FuzzEscapedWorkspacesComeBack(f *testing.F) {
	for _, s := range []string{"ws", "a/b", "%2F", "$", "工", "a\u0085b", "\ufffe", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, workspace string) {
		level := escape(workspace)
		if strings.ContainsAny(level, "/+#$") || utf8.ValidString(workspace) && !printable(level) {
			t.Fatalf("escape(%q) = %q", workspace, level)
		}
		got, err := unescape(level)
		if err == nil && got != workspace || err != nil && utf8.ValidString(workspace) {
			t.Fatalf("unescape(escape(%q)) = %q, %v", workspace, got, err)
		}
		// What is no canonical level stands for no workspace.
		if got, err := unescape(workspace); err == nil && escape(got) != workspace {
			t.Fatalf("unescape(%q) = %q, which is spelled %q", workspace, got, escape(got))
		}
	})
}
