package mqtt

import (
	"strings"
	"testing"

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
		{"compozy/network/v0/a%2fb%2B/lab/peer/t0", true, native, core.Address{WorkspaceID: "a/b+", Channel: "lab", Class: core.AddressPeer, Token: "t0"}, false},
		{"compozy/network/v0/a%2/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/a%zz/lab/ingress", true, ingress, core.Address{}, true},
		{"compozy/network/v0/a%ff/lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0//lab/broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/ws//broadcast", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/peer/", true, native, core.Address{}, true},
		{"compozy/network/v0/ws/lab/peer", false, 0, core.Address{}, false},
		{"compozy/network/v0/ws/lab/peer/a/b", false, 0, core.Address{}, false},
		{"compozy/network/v0/ws/lab/broadcast/x", false, 0, core.Address{}, false},
		{"compozy/network/v0/a/b/lab/broadcast", false, 0, core.Address{}, false},
		{"compozy/network/v0/ws/lab", false, 0, core.Address{}, false},
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
		{"a\x00", "lab", "", ""},
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
	for _, s := range []string{"ws", "a/b", "%2F", "$", "工"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, workspace string) {
		level := escape(workspace)
		if strings.ContainsAny(level, "/+#$") {
			t.Fatalf("escape(%q) = %q", workspace, level)
		}
		got, err := unescape(level)
		if err == nil && got != workspace || err != nil && printable(workspace) {
			t.Fatalf("unescape(escape(%q)) = %q, %v", workspace, got, err)
		}
	})
}
