package main

import (
	"net"

	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
)

// followBrokers gives the carriers that name no url the address of the embedded
// broker of their type, where that is enabled. Moving the broker moves them
// along, so that none of them joins whoever has the port that it left.
func (c *configuration) followBrokers() {
	for _, section := range c.carriers {
		if section.urlSet {
			continue
		}
		switch cfg := section.config.(type) {
		case *nats.Config:
			if c.Embedded.NATS.Enabled {
				follow(&cfg.URL, "nats://", c.Embedded.NATS.Listen)
			}
		case *mqtt.Config:
			if c.Embedded.MQTT.Enabled {
				follow(&cfg.URL, "tcp://", c.Embedded.MQTT.Listen)
			}
		}
	}
}

// follow sets the url at which this machine reaches a broker. An address that
// cannot be read is the broker's own problem to tell.
func follow(url *string, scheme, listen string) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return
	}
	if everywhere(host) {
		host = "127.0.0.1"
	}
	*url = scheme + net.JoinHostPort(host, port)
}
