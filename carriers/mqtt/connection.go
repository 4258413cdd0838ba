package mqtt

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Bounds inside one connection.
const (
	// writeTimeout bounds one write to the socket.
	writeTimeout = 10 * time.Second
	// handoffTimeout bounds how long the library may keep a packet that it cannot
	// hand to its writing goroutine. When a connection ends at a bad moment, it
	// keeps one that long.
	handoffTimeout = 5 * time.Second
	// goodbye is how long a clean disconnect may take.
	goodbye = 250 * time.Millisecond
	// maxPingWait bounds the wait for the answer to a ping.
	maxPingWait = 10 * time.Second
)

// connection is one connection to the broker: one client of the library, that is
// never connected a second time.
type connection struct {
	client paho.Client
	// ctx ends when the connection has; its cause says why.
	ctx  context.Context
	end  context.CancelCauseFunc
	wire atomic.Pointer[wire]
}

// credentials yields what a connection is opened with.
type credentials func() (username, password string, err error)

// identity is what a connection says of itself to the broker.
type identity struct {
	clientID string
	// shown is the client id as the log may have it.
	shown string
	// clean asks for a session that ends with the connection.
	clean     bool
	keepalive time.Duration
	login     credentials
}

// connect opens a connection. Frames may reach the handler before it returns.
// The handler must return soon after the connection's ctx has ended.
func connect(ctx context.Context, d *dialer, id identity, handler func(*connection, paho.Message)) (*connection, error) {
	username, password, err := id.login()
	if err != nil {
		return nil, err
	}
	c := &connection{}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))

	opts := paho.NewClientOptions().
		SetClientID(id.clientID).
		SetCleanSession(id.clean).
		SetUsername(username).
		SetPassword(password).
		SetProtocolVersion(4).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetOrderMatters(true).
		SetAutoAckDisabled(true).
		SetKeepAlive(id.keepalive).
		SetPingTimeout(min(id.keepalive, maxPingWait)).
		SetConnectTimeout(d.timeout).
		SetWriteTimeout(handoffTimeout).
		SetConnectionLostHandler(nil).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) {
			conn, err := d.dial(ctx)
			if err != nil {
				return nil, err
			}
			w := newWire(conn, writeTimeout, c.end)
			c.wire.Store(w)
			return w, nil
		})
	opts.Servers = []*url.URL{d.url}
	if handler != nil {
		opts.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { handler(c, m) })
	}

	c.client = paho.NewClient(opts)
	release := context.AfterFunc(ctx, func() { c.drop(errStopping) })
	token := c.client.Connect()
	<-token.Done() // the dialer's timeout bounds it
	if err := token.Error(); err != nil {
		release()
		c.end(err)
		return nil, fmt.Errorf("connect: %w", err)
	}
	release()
	return c, nil
}

// drop ends the connection at once and says why.
func (c *connection) drop(why error) {
	c.end(why)
	if w := c.wire.Load(); w != nil {
		_ = w.Close() // it ends the library's work; there is nothing to do about an error
	}
}

// lost is why the connection ended; nil while it stands.
func (c *connection) lost() error { return context.Cause(c.ctx) }

// close says goodbye to the broker where it still can, and waits until the
// library has ended everything that it ran for this connection.
func (c *connection) close() {
	if c.ctx.Err() == nil {
		c.client.Disconnect(uint(goodbye.Milliseconds()))
	}
	c.drop(errStopping)
	// With the socket closed nothing can hold the library up; the second call
	// returns when the first one, or the handling of a loss, has finished.
	c.client.Disconnect(uint(writeTimeout.Milliseconds()))
}
