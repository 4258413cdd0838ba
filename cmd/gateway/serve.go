package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
	"github.com/compozy-gateway/gateway/store"
	"github.com/spf13/cobra"
)

func (p *process) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run a gateway until it is told to stop",
		Long: `Run a gateway in the foreground. Without a configuration it keeps its data in the
directory "data", runs a NATS server with JetStream and an MQTT broker inside
this process, and listens on loopback only.

A broker that is down is no error: the gateway starts, says on /readyz which
carrier is not ready, and keeps trying. SIGTERM and SIGINT stop it gracefully;
a second signal ends it at once.`,
		Example: "  gateway serve\n  gateway serve --config gateway.yaml --log-format json\n  GATEWAY_CARRIERS__HTTP__LISTEN=127.0.0.1:9090 gateway serve",
		Args:    noArguments(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context()) },
	}
}

// collectAt is how much the heap of a gateway grows, in percent of what is in
// use, until it is collected. In use are a few MiB that turn over thousands of
// times a second, so that memory buys processor time (docs/design.md,
// Performance).
const collectAt = 120

func (p *process) serve(ctx context.Context) error {
	if !slices.ContainsFunc(p.environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(collectAt)
	}
	c, err := p.load()
	if err != nil {
		return err
	}
	logger := p.logger()
	c.warnOfOpenSecrets(logger)
	db, err := store.Open(ctx, store.Options{
		Dir: c.DataDir, Synchronous: c.Store.Synchronous, Logger: logger, Now: time.Now,
	})
	if err != nil {
		return usagef("data_dir: %w", err)
	}
	running, err := assemble(c, db, logger)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	logger.Info("serving", "name", c.Name, "data_dir", c.DataDir, "version", buildVersion().Version)
	printWelcome(p.stdout, p.program, running)
	err = running.gateway.Run(ctx)
	if err = errors.Join(err, running.brokers.close(), db.Close()); err != nil {
		return err
	}
	logger.Info("stopped")
	return nil
}

// running is a gateway with all its carriers, ready to run.
type running struct {
	config   *configuration
	gateway  *gateway.Gateway
	brokers  *brokers
	carriers map[string]core.Carrier
}

// assemble starts the embedded brokers, takes the ports and builds the carriers.
// On an error it leaves nothing running; a port that is in use is one.
func assemble(c *configuration, db *store.Store, logger *slog.Logger) (*running, error) {
	gw, err := gateway.New(gateway.Options{Config: c.Config, Store: db, Logger: logger, Now: time.Now})
	if err != nil {
		return nil, err
	}
	b, err := startBrokers(c, logger)
	if err != nil {
		return nil, &usageError{err}
	}
	r := &running{config: c, gateway: gw, brokers: b, carriers: map[string]core.Carrier{}}
	for _, section := range c.carriers {
		if err := r.add(section); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	if err := b.serve(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return r, nil
}

// listener is a carrier that takes a port before it runs.
type listener interface{ Listen() error }

func (r *running) add(section carrierSection) error {
	entry := carrierTypes()[section.typ]
	carrier, err := entry.build(&site{gateway: r.gateway, brokers: r.brokers}, section.name, section.config)
	if err != nil {
		return &usageError{err}
	}
	if l, ok := carrier.(listener); ok {
		if err := l.Listen(); err != nil {
			return &usageError{adviseListen(section.name, err)}
		}
	}
	r.carriers[section.name] = carrier
	return r.gateway.AddCarrier(section.name, section.typ, carrier)
}
