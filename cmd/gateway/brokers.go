package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
)

// natsDir is where the embedded NATS server keeps its streams, below data_dir.
const natsDir = "nats"

// brokers are the embedded brokers that run; nil where one does not.
type brokers struct {
	config embedded
	nats   *nats.Server
	mqtt   *mqtt.Broker
}

// startBrokers starts the embedded brokers that are enabled and that a carrier's
// url points at: one that nobody here speaks to would only take a port. On an
// error nothing is left running.
func startBrokers(c *configuration, logger *slog.Logger) (*brokers, error) {
	b := &brokers{config: c.Embedded}
	var err error
	if site := c.natsSite(); site.wanted(logger) {
		b.nats, err = nats.StartServer(c.Embedded.NATS, filepath.Join(c.DataDir, natsDir), logger.With("broker", "nats"))
		if err != nil {
			return nil, site.advise(err)
		}
	}
	if site := c.mqttSite(); site.wanted(logger) {
		b.mqtt, err = mqtt.NewBroker(c.Embedded.MQTT, logger.With("broker", "mqtt"))
		if err != nil {
			return nil, errors.Join(site.advise(err), b.close())
		}
	}
	return b, nil
}

// serve lets devices in, once the carriers have been made that take what they
// publish.
func (b *brokers) serve() error {
	if b.mqtt == nil {
		return nil
	}
	return b.mqtt.Serve()
}

func (b *brokers) close() error {
	var err error
	if b.mqtt != nil {
		if err = b.mqtt.Close(); err != nil {
			err = fmt.Errorf("stop the embedded MQTT broker: %w", err)
		}
	}
	if b.nats != nil {
		b.nats.Close()
	}
	return err
}

// pointsAt reports whether a carrier's url means the broker that listens on the
// address, by a scheme that the broker speaks.
func pointsAt(rawURL, listen string) bool {
	scheme, reaches := reach(rawURL, listen)
	return reaches && plain(scheme)
}

// mistaken says what is wrong with a carrier's url that leads to an embedded
// broker by a scheme that the broker does not speak; it is empty when nothing is.
// The broker has the port, so that nobody else can be meant.
func mistaken(rawURL, key, listen string) string {
	scheme, reaches := reach(rawURL, listen)
	if !reaches || plain(scheme) {
		return ""
	}
	return fmt.Sprintf("has the scheme %s and the address of %s, which speaks plain TCP alone: "+
		"leave the url out to follow the broker, or set %s.enabled: false", scheme, key, key)
}

// reach reports whether a url has the address of the broker that listens there,
// whatever its scheme: the same port, and a host that reaches it. Port 0 on both
// sides is the free port that the broker finds.
func reach(rawURL, listen string) (scheme string, reaches bool) {
	if !strings.Contains(rawURL, "://") {
		rawURL = "nats://" + rawURL
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", false
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || u.Port() != port {
		return "", false
	}
	return u.Scheme, strings.EqualFold(u.Hostname(), host) || local(u.Hostname()) && (local(host) || everywhere(host))
}

// plain reports whether a scheme means TCP without anything around it.
func plain(scheme string) bool {
	switch scheme {
	case "nats", "tcp", "mqtt":
		return true
	}
	return false
}

// local reports whether a host name means this machine's loopback.
func local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// everywhere reports whether a listener on the host takes every address.
func everywhere(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}
