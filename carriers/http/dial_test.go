package http

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestPrivateTargetsAreNotCalled(t *testing.T) {
	h := newHook(t)
	port := h.URL[strings.LastIndex(h.URL, ":"):]
	for _, host := range []string{
		"127.0.0.1" + port, "[::ffff:127.0.0.1]" + port, "0.0.0.0" + port, "2130706433" + port, "0x7f000001" + port,
		"0177.0.0.1" + port, "127.1" + port, "localhost" + port, "example.com@127.0.0.1" + port, "127.0.0.1." + port, "[::1]" + port,
		"169.254.169.254", "10.0.0.1", "[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "100.64.0.1", "224.0.0.1",
	} {
		t.Run(host, func(t *testing.T) {
			s := start(t, withHook("http://"+host+"/", func(w *WebhookConfig) { w.AllowPrivate = false }))
			_, err := s.send(delivery(`{}`))
			if codeOf(err) != core.CodeRefused || !strings.Contains(err.Error(), "allow_private") {
				t.Errorf("error %v", err)
			}
		})
	}
	if n := len(h.called()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestWhichAddressesArePublic(t *testing.T) {
	d := newDialer(false)
	for _, addr := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "2a00:1450::1"} {
		if !d.public(netip.MustParseAddr(addr)) {
			t.Errorf("%s is not public", addr)
		}
	}
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.1.1", "127.255.255.255", "169.254.1.1", "172.16.0.1", "172.31.255.255", "192.0.0.1",
		"192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::",
		"fc00::1", "fd12::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	} {
		if d.public(netip.MustParseAddr(addr)) {
			t.Errorf("%s is public", addr)
		}
	}
}

func TestNamesThatResolversReadAsNumbers(t *testing.T) {
	for host, want := range map[string]bool{
		"2130706433": true, "0x7f000001": true, "127.1": true, "0177.0.0.1": true, "a.b.0x1": true, "1.2.3.4.5": true, "127.0.0.1.": true,
		"999999999999999999999999": true, "127.0.0.1": false, "::1": false, "example.com": false, "1.example": false, "localhost": false, "0xyz": false,
	} {
		if got := numericName(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
}
