package main

import (
	"github.com/compozy-gateway/gateway/carriers/http"
	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
)

// carrierTypes is the one table from carrier type to constructor. A carrier from
// outside the project is one more line here.
func carrierTypes() map[string]carrierType {
	return map[string]carrierType{
		"nats":  newType(nats.DefaultConfig, buildNATS),
		"mqtt":  newType(mqtt.DefaultConfig, buildMQTT),
		"http":  newType(http.DefaultConfig, buildHTTP),
		"stdio": newType(stdio.DefaultConfig, buildStdio),
	}
}

// carrierType is what this package knows of a type of carrier. The any values
// are pointers to the type's own Config.
type carrierType struct {
	defaults func() any
	validate func(config any, key string) []error
	// build's error names its key.
	build func(s *site, name string, config any) (core.Carrier, error)
}

// carrierConfig is a carrier's Config, which says what is wrong with itself.
type carrierConfig interface{ Validate(key string) []error }

func newType[C carrierConfig, K core.Carrier](defaults func() C, build func(*site, C, core.Host) (K, error)) carrierType {
	return carrierType{
		defaults: func() any { c := defaults(); return &c },
		validate: func(config any, key string) []error { return (*config.(*C)).Validate(key) },
		build: func(s *site, name string, config any) (core.Carrier, error) {
			c, err := build(s, *config.(*C), s.gateway.Host(name))
			if err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// site is what carriers are built on.
type site struct {
	gateway *gateway.Gateway
	brokers *brokers
}

func buildNATS(s *site, cfg nats.Config, host core.Host) (*nats.Carrier, error) {
	if server := s.brokers.nats; server != nil && pointsAt(cfg.URL, s.brokers.config.NATS.Listen) {
		cfg.URL = server.ClientURL()
	}
	return nats.New(cfg, host)
}

func buildMQTT(s *site, cfg mqtt.Config, host core.Host) (*mqtt.Carrier, error) {
	if broker := s.brokers.mqtt; broker != nil && pointsAt(cfg.URL, s.brokers.config.MQTT.Listen) {
		cfg.URL = broker.URL()
		return mqtt.New(cfg, host, mqtt.WithBroker(broker))
	}
	return mqtt.New(cfg, host)
}

func buildHTTP(s *site, cfg http.Config, host core.Host) (*http.Carrier, error) {
	view := s.gateway.View(host.Name)
	return http.New(cfg, host, http.Backend{
		Reader: view, Inboxes: view, DeadLetters: view, Fleet: view, Pins: view, Rejections: view, Agents: view, Metrics: s.gateway.Metrics(),
	})
}

func buildStdio(_ *site, cfg stdio.Config, host core.Host) (*stdio.Carrier, error) {
	return stdio.New(cfg, host)
}

// runGuard acts as the guard of an agent's processes, where this process was
// started as one. It reports whether it did.
func runGuard(args []string) bool { return stdio.GuardMain(args) }
