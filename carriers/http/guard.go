package http

import (
	"net"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard keeps pages in somebody's browser away from a listener without tokens,
// which trusts whoever reaches it. A page can send requests to this machine, but
// it cannot choose the Origin, and with a name that it made resolve to here the
// Host gives it away. With tokens there is nothing to guard: no page knows one.
func (s *server) guard(r *nethttp.Request) error {
	if len(s.cfg.Tokens) > 0 {
		return nil
	}
	if s.cfg.loopback() && !loopbackHost(r.Host) {
		return forbidden("without tokens the Host must be a loopback name")
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if !s.isOwnOrigin(origin) {
			return forbidden("without tokens a foreign Origin is refused")
		}
	}
	if len(origins) > 0 {
		return nil
	}
	// What a page embeds (an image, a script), links to or submits may come
	// without an Origin. A page of another port of this machine is same-site.
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if !strings.EqualFold(site, "none") && !strings.EqualFold(site, "same-origin") {
			return forbidden("without tokens a foreign page is refused")
		}
	}
	return nil
}

// isOwnOrigin reports whether the origin is this listener's own: its scheme, its
// port, and a name of this machine. Another port is somebody else's page.
func (s *server) isOwnOrigin(origin string) bool {
	scheme, port := "http", "80"
	if s.cfg.TLS.CertFile != "" {
		scheme, port = "https", "443"
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != scheme || !strings.EqualFold(u.Scheme+"://"+u.Host, origin) {
		return false
	}
	if u.Port() != "" {
		port = u.Port()
	}
	_, own, err := net.SplitHostPort(s.Addr().String())
	return err == nil && port == own && loopbackName(u.Hostname())
}

// loopbackHost reports whether a Host header, with or without a port, names this
// machine.
func loopbackHost(hostport string) bool {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return loopbackName(host)
	}
	return loopbackName(strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]"))
}

func loopbackName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// loopbackAddress reports whether a peer's address is on this machine.
func loopbackAddress(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}
