package mqtt

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// dialer opens the network connection under an MQTT client.
type dialer struct {
	// url has no credentials.
	url     *url.URL
	tls     *tls.Config
	timeout time.Duration
}

func knownScheme(scheme string) bool {
	switch scheme {
	case "tcp", "mqtt", "ssl", "tls", "mqtts", "ws", "wss":
		return true
	}
	return false
}

func encrypted(scheme string) bool {
	switch scheme {
	case "ssl", "tls", "mqtts", "wss":
		return true
	}
	return false
}

// dial connects until ctx ends or the timeout has passed. A web socket heeds the
// timeout alone.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	switch d.url.Scheme {
	case "ws", "wss":
		conn, err := paho.NewWebsocket(d.url.String(), d.tls, d.timeout, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", d.url.Host, err)
		}
		return conn, nil
	case "ssl", "tls", "mqtts":
		secure := tls.Dialer{NetDialer: &net.Dialer{Timeout: d.timeout}, Config: d.tls}
		return secure.DialContext(ctx, "tcp", withPort(d.url, "8883"))
	default:
		plain := net.Dialer{Timeout: d.timeout}
		return plain.DialContext(ctx, "tcp", withPort(d.url, "1883"))
	}
}

func withPort(u *url.URL, port string) string {
	if p := u.Port(); p != "" {
		port = p
	}
	return net.JoinHostPort(u.Hostname(), port)
}
