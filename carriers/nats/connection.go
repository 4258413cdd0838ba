package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

const (
	dialTimeout = 5 * time.Second
	// pingEvery and unansweredPings bound how long a dead link goes unnoticed.
	pingEvery       = 10 * time.Second
	unansweredPings = 2
	// writeTimeout bounds how long a write to a peer that does not read may take.
	writeTimeout = 10 * time.Second
)

// connection is one connection to a server; it never comes back once it ended.
type connection struct {
	*natsgo.Conn
	dialer *dialer
	// ended is closed when the connection is closed, by whom ever.
	ended chan struct{}
}

// connect dials and logs in. ended is called when the connection has ended, with
// what is known of the reason.
func (c *Carrier) connect(ctx context.Context, ended func(error)) (*connection, error) {
	conn := &connection{dialer: &dialer{ctx: ctx}, ended: make(chan struct{})}
	defer conn.dialer.handshakeOver()
	options := []natsgo.Option{
		natsgo.Name("compozy gateway, carrier " + c.host.Name),
		natsgo.NoReconnect(),
		natsgo.Timeout(dialTimeout),
		natsgo.PingInterval(pingEvery),
		natsgo.MaxPingsOutstanding(unansweredPings),
		natsgo.FlusherTimeout(writeTimeout),
		natsgo.SetCustomDialer(conn.dialer),
		natsgo.PermissionErrOnSubscribe(true),
		natsgo.ErrorHandler(c.asyncError),
		natsgo.ClosedHandler(func(nc *natsgo.Conn) {
			ended(lostBecause(nc.LastError()))
			close(conn.ended)
		}),
	}
	credentials, err := c.cfg.credentials()
	if err != nil {
		return nil, err
	}
	options = append(options, credentials...)
	conn.Conn, err = natsgo.Connect(c.cfg.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", RedactURL(c.cfg.URL), conn.dialer.explain(err))
	}
	return conn, nil
}

// asyncError hears what the server or the library says of a connection.
func (c *Carrier) asyncError(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
	c.log.Warn("nats server or client reports", "error", err)
	if o := c.outlet(); o != nil {
		o.refused(err)
	}
}

// guard cuts the socket when the connection has not ended in time after the end
// of ctx: a write that the peer does not read would hold everything up. It
// returns when the connection has ended.
func (c *connection) guard(ctx context.Context, atMost time.Duration) {
	select {
	case <-ctx.Done():
	case <-c.ended:
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.dialer.cut()
		<-c.ended
	}
}

// credentials reads the files and builds the options for logging in.
func (c Config) credentials() ([]natsgo.Option, error) {
	var options []natsgo.Option
	switch {
	case c.Username != "":
		password, err := readSecret(c.PasswordFile)
		if err != nil {
			return nil, err
		}
		options = append(options, natsgo.UserInfo(c.Username, password))
	case c.TokenFile != "":
		token, err := readSecret(c.TokenFile)
		if err != nil {
			return nil, err
		}
		options = append(options, natsgo.Token(token))
	case c.CredentialsFile != "":
		options = append(options, natsgo.UserCredentials(c.CredentialsFile))
	case c.NKeyFile != "":
		nkey, err := natsgo.NkeyOptionFromSeed(c.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the nkey seed in %s: %w", c.NKeyFile, err)
		}
		options = append(options, nkey)
	}
	config, err := c.TLS.Client()
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, natsgo.Secure(config))
	}
	return options, nil
}

// readSecret reads a file that holds one secret, without the line break at its
// end.
func readSecret(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	secret := strings.TrimRight(string(raw), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("read a secret: %s is empty", path)
	}
	return secret, nil
}

// dialer dials under a context, which the library's own cannot, and keeps hold
// of the socket, so that a write which the peer does not read can be broken off.
type dialer struct {
	ctx context.Context

	mu   sync.Mutex
	conn net.Conn
	last error
	// release unties the socket from ctx, whose end would close it.
	release func() bool
}

// Dial is called by the library.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	dial := net.Dialer{Timeout: dialTimeout}
	conn, err := dial.DialContext(d.ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.last = err
		return nil, err
	}
	d.letGo()
	d.conn = conn
	d.release = context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return conn, nil
}

// handshakeOver unties the socket from the context: from here on the session
// ends it, in order.
func (d *dialer) handshakeOver() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.letGo()
}

func (d *dialer) letGo() {
	if d.release != nil {
		d.release()
		d.release = nil
	}
}

// explain adds what the network said where the library says only that no server
// could be reached.
func (d *dialer) explain(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(err, natsgo.ErrNoServers) && d.last != nil {
		return d.last
	}
	return err
}

// cut closes the socket under the library.
func (d *dialer) cut() {
	d.mu.Lock()
	conn := d.conn
	d.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}
