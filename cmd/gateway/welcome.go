package main

import (
	"fmt"
	"io"
	"net"

	"github.com/compozy-gateway/gateway/carriers/http"
	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
)

// printWelcome tells a person what runs where, and three lines to try it with.
func printWelcome(w io.Writer, program string, r *running) {
	fmt.Fprintf(w, "gateway %s is serving; its data is in %s\n", r.config.Name, r.config.DataDir)
	places := newTable()
	base, protected := "", false
	for _, section := range r.config.carriers {
		places.add("  "+section.name, section.typ, r.where(section))
		if cfg, ok := section.config.(*http.Config); ok && base == "" {
			base, protected = r.baseURL(section), len(cfg.Tokens) > 0
		}
	}
	if err := places.write(w, ""); err != nil || base == "" {
		return
	}
	const target = "--workspace demo --channel general"
	flags, header := "", ""
	if base != defaultURL {
		flags += " --url " + base
	}
	if protected {
		flags += " --token-file FILE"
		header = ` -H "Authorization: Bearer $TOKEN"`
	}
	fmt.Fprintf(w, "\nTo try it, in another terminal:\n")
	fmt.Fprintf(w, "  %s tail %s%s\n", program, target, flags)
	fmt.Fprintf(w, "  %s send %s --from alice --text \"hello\"%s\n", program, target, flags)
	fmt.Fprintf(w, "  curl -s%s %s/v0/workspaces/demo/channels/general/messages\n", header, base)
}

// where tells where a carrier is to be found.
func (r *running) where(section carrierSection) string {
	switch cfg := section.config.(type) {
	case *http.Config:
		return r.baseURL(section)
	case *nats.Config:
		if s := r.brokers.nats; s != nil && pointsAt(cfg.URL, r.brokers.config.NATS.Listen) {
			return s.ClientURL() + " (embedded)"
		}
		return settings.HideURL(cfg.URL)
	case *mqtt.Config:
		if b := r.brokers.mqtt; b != nil && pointsAt(cfg.URL, r.brokers.config.MQTT.Listen) {
			return b.URL() + " (embedded)"
		}
		return settings.HideURL(cfg.URL)
	case *stdio.Config:
		live := 0
		for _, agent := range cfg.Agents {
			if agent.Participation.Mode == stdio.ModeLive {
				live++
			}
		}
		return describeAgents(len(cfg.Agents), live)
	}
	return ""
}

func describeAgents(all, live int) string {
	switch {
	case all == 0:
		return "no agents"
	case all == 1 && live == 1:
		return "1 agent, live"
	case all == 1:
		return "1 agent, not live"
	}
	return fmt.Sprintf("%d agents, %d of them live", all, live)
}

// baseURL is how a client on this machine reaches an HTTP carrier.
func (r *running) baseURL(section carrierSection) string {
	cfg, ok := section.config.(*http.Config)
	carrier, listens := r.carriers[section.name].(*http.Carrier)
	if !ok || !listens || carrier.Addr() == nil {
		return ""
	}
	scheme := "http://"
	if cfg.TLS.Enabled() {
		scheme = "https://"
	}
	address := carrier.Addr().String()
	host, port, err := net.SplitHostPort(address)
	if err == nil && everywhere(host) {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return scheme + address
}
