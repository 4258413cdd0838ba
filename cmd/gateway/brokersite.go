package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"

	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
)

// brokerSite is an embedded broker's place in the configuration: where it would
// listen, and who speaks to it.
type brokerSite struct {
	key, listen string
	enabled     bool
	// named says that somebody spoke of the broker: that it runs by default is no
	// wish.
	named    bool
	carriers []brokerClient
}

// brokerClient is a carrier of the broker's kind.
type brokerClient struct {
	// key is the key of its url.
	key, url string
	// set says that the url was set, and does not follow the broker.
	set bool
}

func (c *configuration) natsSite() *brokerSite {
	site := &brokerSite{
		key: "embedded.nats", listen: c.Embedded.NATS.Listen, enabled: c.Embedded.NATS.Enabled, named: c.natsNamed,
	}
	for _, section := range c.carriers {
		if cfg, ok := section.config.(*nats.Config); ok {
			site.add(section, cfg.URL)
		}
	}
	return site
}

func (c *configuration) mqttSite() *brokerSite {
	site := &brokerSite{
		key: "embedded.mqtt", listen: c.Embedded.MQTT.Listen, enabled: c.Embedded.MQTT.Enabled, named: c.mqttNamed,
	}
	for _, section := range c.carriers {
		if cfg, ok := section.config.(*mqtt.Config); ok {
			site.add(section, cfg.URL)
		}
	}
	return site
}

func (s *brokerSite) add(section carrierSection, url string) {
	s.carriers = append(s.carriers, brokerClient{key: "carriers." + section.name + ".url", url: url, set: section.urlSet})
}

// wanted reports whether the broker is to be started. One that is not, though
// somebody may count on it, is warned of: a carrier that means to reach it would
// join whatever else answers at its url.
func (s *brokerSite) wanted(logger *slog.Logger) bool {
	if !s.enabled {
		return false
	}
	elsewhere := make([]string, 0, len(s.carriers))
	for _, carrier := range s.carriers {
		if pointsAt(carrier.url, s.listen) {
			return true
		}
		elsewhere = append(elsewhere, carrier.key+"="+settings.HideURL(carrier.url))
	}
	const message = "the embedded broker is not started: no carrier's url points at it"
	if len(elsewhere) == 0 && !s.named {
		logger.Info(message, "key", s.key, "listen", s.listen)
		return false
	}
	logger.Warn(message, "key", s.key, "listen", s.listen, "carriers", strings.Join(elsewhere, " "),
		"advice", "leave the url out to follow the broker, or set "+s.key+".enabled: false")
	return false
}

// advise adds what can be done to the error of a port that is taken.
func (s *brokerSite) advise(err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	var along []string
	for _, carrier := range s.carriers {
		if carrier.set && pointsAt(carrier.url, s.listen) {
			along = append(along, carrier.key)
		}
	}
	move := fmt.Sprintf("%s.listen to another address (%s; port 0 takes a free one)", s.key, environName(s.key+".listen"))
	if len(along) > 0 {
		move += ", and " + strings.Join(along, " and ") + " to the same"
	}
	return fmt.Errorf("%w; set %s, or to use the broker that is there, %s.enabled: false and its address as the carrier's url", err, move, s.key)
}

// adviseListen adds the same for a carrier that listens itself.
func adviseListen(name string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	key := "carriers." + name + ".listen"
	return fmt.Errorf("%w; stop what has the port, or set %s to another address (%s)", err, key, environName(key))
}

// environName is the variable that sets a key.
func environName(key string) string {
	return environPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", environLevel))
}
