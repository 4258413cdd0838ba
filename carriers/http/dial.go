package http

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dialTimeout bounds connecting to an endpoint.
const dialTimeout = 10 * time.Second

// errForbiddenTarget says that an endpoint's address is one that only
// allow_private allows.
var errForbiddenTarget = errors.New("the address is not public, and allow_private is not set")

// reservedRanges are the addresses that are not public beyond what netip names
// by itself. Ranges that carry an IPv4 address inside an IPv6 one are among
// them, as nobody publishes an endpoint there.
func reservedRanges() []netip.Prefix {
	ranges := []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
		"3fff::/20", "5f00::/16", "fec0::/10",
	}
	prefixes := make([]netip.Prefix, len(ranges))
	for i, r := range ranges {
		prefixes[i] = netip.MustParsePrefix(r)
	}
	return prefixes
}

// dialer connects to endpoints, and unless private ones are allowed looks at
// each address right before it connects: whatever a name resolves to by then,
// and however the address was written.
type dialer struct {
	allowPrivate bool
	reserved     []netip.Prefix
	net.Dialer
}

func newDialer(allowPrivate bool) *dialer {
	d := &dialer{allowPrivate: allowPrivate, reserved: reservedRanges()}
	d.Timeout = dialTimeout
	if !allowPrivate {
		d.ControlContext = d.control
	}
	return d
}

// dial connects to host:port.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !d.allowPrivate && numericName(host) {
		return nil, fmt.Errorf("%s: %w", host, errForbiddenTarget)
	}
	return d.DialContext(ctx, network, address)
}

// control refuses the connection to an address that is not public.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, errForbiddenTarget)
	}
	if !d.public(target.Addr()) {
		return fmt.Errorf("%s: %w", target.Addr(), errForbiddenTarget)
	}
	return nil
}

// public reports whether the address belongs to the Internet at large.
func (d *dialer) public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, r := range d.reserved {
		if r.Contains(addr) {
			return false
		}
	}
	return true
}

// numericName reports whether the host is no IP address as we write them, and
// yet one that some resolver would read as a number: 2130706433, 0x7f.1, 127.1.
func numericName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
