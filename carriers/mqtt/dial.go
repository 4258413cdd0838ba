package mqtt

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"sync"
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

// wire is the network connection of one MQTT client. It bounds every write, for
// the client's keepalive cannot find a dead peer while it waits behind a write
// itself, and it tells when and why it ended.
type wire struct {
	net.Conn
	writeTimeout time.Duration
	// ended is called once, with the first error that was seen.
	ended func(error)
	// published gets a signal after each PUBLISH that was written, or could not be.
	published chan struct{}

	mu    sync.Mutex
	cause error
	once  sync.Once
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.note(err)
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.writeTimeout)); err != nil {
		w.note(err)
		return 0, err
	}
	n, err := w.Conn.Write(p)
	w.note(err)
	if len(p) > 0 && p[0]>>4 == typePublish {
		signal(w.published)
	}
	return n, err
}

// typePublish is the packet type of PUBLISH. The library writes each packet with
// one call.
const typePublish = 3

// Close ends the connection. The library calls it for every kind of end.
func (w *wire) Close() error {
	w.note(errDisconnects)
	err := w.Conn.Close()
	w.once.Do(func() {
		w.mu.Lock()
		cause := w.cause
		w.mu.Unlock()
		w.ended(cause)
	})
	return err
}

// note keeps the first error.
func (w *wire) note(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	if w.cause == nil {
		w.cause = err
	}
	w.mu.Unlock()
}
