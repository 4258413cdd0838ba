package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/compozy-gateway/gateway/carriers/mqtt"
	"github.com/compozy-gateway/gateway/carriers/nats"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
	yamlparser "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// configuration is everything that can be configured, checked.
type configuration struct {
	keys
	// carriers are sorted by name.
	carriers []carrierSection
	// natsNamed and mqttNamed say that somebody spoke of the embedded broker.
	natsNamed, mqttNamed bool
}

// keys are the keys of the file whose shape does not depend on what stands in
// it.
type keys struct {
	gateway.Config `koanf:",squash"`
	Embedded       embedded `koanf:"embedded"`
	// Carriers is here so that the key is known; each section is read by the
	// shape of its type.
	Carriers any `koanf:"carriers"`
}

// embedded are the brokers that run inside this process.
type embedded struct {
	NATS nats.ServerConfig `koanf:"nats"`
	MQTT mqtt.BrokerConfig `koanf:"mqtt"`
}

// carrierSection is one configured carrier.
type carrierSection struct {
	// typ is empty when the section names no type that there is; then there is no
	// config either.
	name, typ string
	// config points to the Config of the type's package.
	config any
	// urlSet says that the section has a url of its own.
	urlSet bool
}

// keySeparator stands between the levels of a key inside koanf. Keys may hold
// dots (the extensions of a peer card do), so it is something that none holds.
const keySeparator = "\x1f"

func defaultKeys() keys {
	return keys{
		Config:   gateway.DefaultConfig(),
		Embedded: embedded{NATS: nats.DefaultServerConfig(), MQTT: mqtt.DefaultBrokerConfig()},
	}
}

// defaultCarriers is the set of carriers that runs when no file names others.
func defaultCarriers() map[string]any {
	set := map[string]any{}
	for name, typ := range map[string]string{"nats": "nats", "mqtt": "mqtt", "http": "http", "agents": "stdio"} {
		set[name] = map[string]any{"type": typ}
	}
	return set
}

// load puts the layers together and checks the whole. Its error is a usage error
// that holds every problem. Environment variables that mean nothing are logged.
func (p *process) load() (*configuration, error) {
	layers := koanf.New(keySeparator)
	if err := layers.Load(confmap.Provider(map[string]any{"carriers": defaultCarriers()}, ""), nil); err != nil {
		return nil, fmt.Errorf("load the defaults: %w", err)
	}
	if err := p.loadFile(layers); err != nil {
		return nil, &usageError{err}
	}
	problems := p.loadEnvironment(layers)
	if p.dataDir != "" {
		if err := layers.Set("data_dir", p.dataDir); err != nil {
			return nil, fmt.Errorf("load the flags: %w", err)
		}
	}
	c, found := decodeConfiguration(layers.Raw())
	problems = append(problems, found...)
	problems = append(problems, unreported(c.validate(), problems)...)
	if len(problems) > 0 {
		return nil, &usageError{errors.Join(problems...)}
	}
	return c, nil
}

// loadFile adds the file's layer. Its carriers replace the default ones.
func (p *process) loadFile(layers *koanf.Koanf) error {
	if p.configFile == "" {
		return nil
	}
	text, err := os.ReadFile(p.configFile)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if documents(text) > 1 {
		return fmt.Errorf("--config: %s holds more than one YAML document", p.configFile)
	}
	file := koanf.New(keySeparator)
	if err := file.Load(rawbytes.Provider(text), yamlparser.Parser()); err != nil {
		return fmt.Errorf("--config: %s: %w", p.configFile, oneLine(err))
	}
	if file.Exists("carriers") {
		layers.Delete("carriers")
	}
	return layers.Merge(file)
}

// documentStart is the line that begins another YAML document.
var documentStart = regexp.MustCompile(`(?m)^---(\s|$)`)

// documents counts the documents of a YAML text that hold something.
func documents(text []byte) int {
	n := 0
	for _, document := range documentStart.Split(string(text), -1) {
		for line := range strings.Lines(document) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '%' {
				n++
				break
			}
		}
	}
	return n
}

// oneLine joins the lines of an error, for problems are one line each.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// decodeConfiguration reads the layers' sum by the shapes of its parts.
func decodeConfiguration(raw map[string]any) (*configuration, []error) {
	c := &configuration{keys: defaultKeys()}
	problems := settings.Decode("", raw, &c.keys)
	carriers, ok := raw["carriers"].(map[string]any)
	if !ok {
		if raw["carriers"] != nil {
			problems = append(problems, errors.New("carriers: must be a section of names"))
		}
		return c, problems
	}
	for _, name := range settings.Names(carriers) {
		section, found := decodeCarrier(name, carriers[name])
		problems = append(problems, found...)
		c.carriers = append(c.carriers, section)
	}
	if len(carriers) == 0 {
		problems = append(problems, errors.New("carriers: names no carrier, so nothing could come in or go out; leave the key out to get the default ones"))
	}
	brokers, _ := raw["embedded"].(map[string]any)
	_, c.natsNamed = brokers["nats"]
	_, c.mqttNamed = brokers["mqtt"]
	c.followBrokers()
	return c, problems
}

var carrierName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func decodeCarrier(name string, value any) (carrierSection, []error) {
	key := "carriers." + name
	section := carrierSection{name: name}
	if !carrierName.MatchString(name) {
		return section, []error{fmt.Errorf("%s: a carrier's name is 1 to 64 lower-case letters, digits, - or _", key)}
	}
	raw, ok := value.(map[string]any)
	if !ok {
		return section, []error{fmt.Errorf("%s: must be a section with a type", key)}
	}
	types := carrierTypes()
	names := settings.Names(types)
	typ, ok := raw["type"].(string)
	if !ok {
		return section, []error{fmt.Errorf("%s.type: is required; it is one of %s", key, strings.Join(names, ", "))}
	}
	entry, ok := types[typ]
	if !ok {
		return section, []error{fmt.Errorf("%s.type: %q is unknown; it is one of %s, the nearest is %s",
			key, typ, strings.Join(names, ", "), settings.Nearest(typ, names))}
	}
	section.typ, section.config = typ, entry.defaults()
	_, section.urlSet = raw["url"]
	rest := map[string]any{}
	for k, v := range raw {
		if k != "type" {
			rest[k] = v
		}
	}
	return section, settings.Decode(key, rest, section.config)
}

// agentHost is the configuration of a carrier that hosts agents.
type agentHost interface{ HostedAgents() []core.HostedAgent }

// lineReading is the configuration of a carrier that bounds its lines.
type lineReading interface {
	ValidateMaxLine(key string, maxEnvelopeBytes int) []error
}

// validate asks every part what is wrong with its own keys.
func (c *configuration) validate() []error {
	problems := c.Validate()
	// Bounds are resolved against the configured ones once those are good.
	resolvable := !speakOf(problems, "participation")
	problems = append(problems, c.Embedded.NATS.Validate("embedded.nats")...)
	problems = append(problems, c.Embedded.MQTT.Validate("embedded.mqtt")...)
	var names []string
	agents := map[string][]core.HostedAgent{}
	for _, section := range c.carriers {
		names = append(names, section.name)
		problems = append(problems, c.validateCarrier(section, resolvable)...)
		if cfg, ok := section.config.(agentHost); ok {
			agents[section.name] = cfg.HostedAgents()
		}
	}
	problems = append(problems, gateway.ValidateSeats(agents)...)
	return append(problems, c.ValidateScopes(names)...)
}

func (c *configuration) validateCarrier(section carrierSection, resolvable bool) []error {
	if section.typ == "" {
		return nil
	}
	key := "carriers." + section.name
	problems := carrierTypes()[section.typ].validate(section.config, key)
	if cfg, ok := section.config.(agentHost); ok && resolvable && len(problems) == 0 {
		problems = c.ValidateAgents(key, cfg.HostedAgents())
	}
	if cfg, ok := section.config.(lineReading); ok {
		problems = append(problems, cfg.ValidateMaxLine(key, c.Protocol.MaxEnvelopeBytes)...)
	}
	if wrong := c.mistakenURL(section); wrong != "" {
		problems = append(problems, fmt.Errorf("%s.url: %s", key, wrong))
	}
	if cfg, ok := section.config.(*nats.Config); ok && c.lacksJetStream(cfg) {
		problems = append(problems, fmt.Errorf("%s.mode: is jetstream, but embedded.nats, where its url points, has jetstream: false", key))
	}
	return problems
}

// speakOf reports whether one of the problems, which begin with their keys, is
// about the key or one below it.
func speakOf(problems []error, key string) bool {
	return slices.ContainsFunc(problems, func(err error) bool {
		rest, ok := strings.CutPrefix(err.Error(), key)
		return ok && strings.IndexAny(rest, ".:[") == 0
	})
}

// unreported leaves out the problems whose key has been reported already: a value
// that could not be read is not told to be missing as well.
func unreported(problems, reported []error) []error {
	return slices.DeleteFunc(problems, func(err error) bool {
		key, _, _ := strings.Cut(err.Error(), ": ")
		return speakOf(reported, key)
	})
}

// mistakenURL says what is wrong with a url that leads to an embedded broker in a
// way that the broker does not speak.
func (c *configuration) mistakenURL(section carrierSection) string {
	switch cfg := section.config.(type) {
	case *nats.Config:
		if c.Embedded.NATS.Enabled {
			return mistaken(cfg.URL, "embedded.nats", c.Embedded.NATS.Listen)
		}
	case *mqtt.Config:
		if c.Embedded.MQTT.Enabled {
			return mistaken(cfg.URL, "embedded.mqtt", c.Embedded.MQTT.Listen)
		}
	}
	return ""
}

// lacksJetStream reports a carrier that wants streams of an embedded server that
// has none.
func (c *configuration) lacksJetStream(cfg *nats.Config) bool {
	server := c.Embedded.NATS
	return server.Enabled && !server.JetStream && cfg.Mode == nats.ModeJetStream && pointsAt(cfg.URL, server.Listen)
}

// carrierShape is the type of the configuration of a carrier type, nil when
// there is no such type.
func carrierShape(typ string) reflect.Type {
	entry, ok := carrierTypes()[typ]
	if !ok {
		return nil
	}
	return reflect.TypeOf(entry.defaults())
}
