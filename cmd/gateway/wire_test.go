package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/http"
	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/compozy-gateway/gateway/gateway"
	"github.com/compozy-gateway/gateway/store"
)

func TestACarrierThatCannotBeBuiltNamesItsKeyOnce(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	g, err := gateway.New(gateway.Options{Config: gateway.DefaultConfig(), Store: db, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	web, bus, devices, agents := http.DefaultConfig(), nats.DefaultConfig(), mqtt.DefaultConfig(), stdio.DefaultConfig()
	web.Webhooks = map[string]http.WebhookConfig{"crm": {URL: "ftp://127.0.0.1"}}
	bus.URL, devices.URL, agents.MaxLine = "ftp://127.0.0.1", "://", 1
	for typ, c := range map[string]struct {
		config any
		key    string
	}{
		"http": {&web, "carriers.x.webhooks.crm.url: "}, "nats": {&bus, "carriers.x.url: "},
		"mqtt": {&devices, "carriers.x: "}, "stdio": {&agents, "carriers.x.max_line: "},
	} {
		_, err := carrierTypes()[typ].build(&site{gateway: g, brokers: &brokers{}}, "x", c.config)
		if err == nil || !strings.HasPrefix(err.Error(), c.key) || strings.Count(err.Error(), "carriers.x") != 1 {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
