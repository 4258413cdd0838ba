package stdio

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/compozy-gateway/gateway/core"
)

var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Validate reports every problem, each with its full key.
func (c Config) Validate(key string) []error {
	p := problems{key: key}
	if c.MaxLine < 0 {
		p.add("max_line", "must not be negative")
	}
	if c.WriteTimeout <= 0 {
		p.add("write_timeout", "must be positive")
	}
	if c.Restart.Min <= 0 {
		p.add("restart.min", "must be positive")
	}
	if c.Restart.Max < c.Restart.Min {
		p.add("restart.max", "must not be less than restart.min")
	}
	if c.Restart.ResetAfter <= 0 {
		p.add("restart.reset_after", "must be positive")
	}

	type seat struct{ workspace, peer string }
	taken := map[seat]string{}
	for _, name := range sortedKeys(c.Agents) {
		a := c.Agents[name]
		at := "agents." + name
		if !agentName.MatchString(name) {
			p.add(at, "an agent's name is 1 to 64 of a-z 0-9 _ - and begins with a letter or digit")
		}
		a.validate(&p, at)
		if a.PeerID == "" || a.Workspace == "" {
			continue
		}
		s := seat{a.Workspace, a.PeerID}
		if other, ok := taken[s]; ok {
			p.add(at+".peer_id", "agent %q has this peer id in the same workspace", other)
		}
		taken[s] = name
	}
	return p.list
}

// ValidateMaxLine reports a line limit that is less than the largest envelope,
// which depends on the whole configuration.
func (c Config) ValidateMaxLine(key string, maxEnvelopeBytes int) []error {
	if c.MaxLine <= 0 || c.MaxLine >= maxEnvelopeBytes {
		return nil
	}
	return []error{fmt.Errorf("%s.max_line: %d is less than the largest envelope, %d (protocol.max_envelope_bytes): raise it, or leave it out",
		key, c.MaxLine, maxEnvelopeBytes)}
}

func (a AgentConfig) validate(p *problems, at string) {
	switch a.Participation.Mode {
	case "", ModeLocal:
		if a.Participation.Bounds != (Bounds{}) {
			p.add(at+".participation.bounds", "a local agent has no bounds; remove them or set mode: live")
		}
	case ModeLive:
		a.validateLive(p, at)
	default:
		p.add(at+".participation.mode", "must be local or live")
	}

	a.validateCommand(p, at)
	a.validateEnv(p, at)
	if a.PeerID != "" && !core.ValidPeerID(a.PeerID) {
		p.add(at+".peer_id", "%q is no peer id: %s", a.PeerID, core.PeerGrammar)
	}
	if a.Workspace != "" && !core.ValidWorkspaceID(a.Workspace) {
		p.add(at+".workspace", "%q is no workspace id: %s", a.Workspace, core.WorkspaceGrammar)
	}
	if a.Channel != "" && !core.ValidChannel(a.Channel) {
		p.add(at+".channel", "%q is no channel: %s", a.Channel, core.ChannelGrammar)
	}
	switch a.Ack {
	case "", AckWrite, AckExplicit:
	default:
		p.add(at+".ack", "must be write or explicit")
	}
	switch a.Launch {
	case "", LaunchStart, LaunchWake:
	default:
		p.add(at+".launch", "must be start or wake")
	}
	p.list = append(p.list, a.Participation.Bounds.Check(p.key+"."+at+".participation.bounds")...)
	a.validateCard(p, at+".peer_card")
}

func (a AgentConfig) validateLive(p *problems, at string) {
	for _, f := range []struct{ key, value string }{
		{"peer_id", a.PeerID}, {"workspace", a.Workspace}, {"channel", a.Channel},
	} {
		if f.value == "" {
			p.add(at+"."+f.key, "a live agent needs it")
		}
	}
	if len(a.Command) == 0 {
		p.add(at+".command", "a live agent needs it")
	}
	if a.Dir == "" {
		return
	}
	switch info, err := os.Stat(a.Dir); {
	case err != nil:
		p.list = append(p.list, fmt.Errorf("%s.%s.dir: %w", p.key, at, err))
	case !info.IsDir():
		p.add(at+".dir", "%s is no directory", a.Dir)
	}
}

func (a AgentConfig) validateCommand(p *problems, at string) {
	if len(a.Command) > 0 && a.Command[0] == "" {
		p.add(at+".command", "the program's name is empty")
	}
	if slices.ContainsFunc(a.Command, func(s string) bool { return strings.ContainsRune(s, 0) }) {
		p.add(at+".command", "an argument holds a NUL character")
	}
}

// validateEnv never repeats a value: it may be a secret.
func (a AgentConfig) validateEnv(p *problems, at string) {
	for _, name := range sortedKeys(a.Env) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			p.add(at+".env", "%q is no name of an environment variable", name)
		case slices.Contains(reservedEnv, name):
			p.add(at+".env."+name, "the gateway sets this one itself")
		case strings.ContainsRune(string(a.Env[name]), 0):
			p.add(at+".env."+name, "the value holds a NUL character")
		}
	}
}

// cardLists are the members of a peer card that are arrays of strings.
var cardLists = []string{"profiles_supported", "artifacts_supported", "trust_modes_supported"}

func (a AgentConfig) validateCard(p *problems, at string) {
	for _, name := range sortedKeys(a.PeerCard) {
		value := a.PeerCard[name]
		switch {
		case name == "peer_id":
			if value != a.PeerID {
				p.add(at+".peer_id", "must be the agent's peer_id")
			}
		case name == "display_name":
			if _, ok := value.(string); !ok {
				p.add(at+".display_name", "must be a string")
			}
		case name == "ext":
			if _, ok := value.(map[string]any); !ok {
				p.add(at+".ext", "must be a mapping")
			}
		case name == "capabilities":
			if _, err := readCatalogue(value); err != nil {
				p.add(at+".capabilities", "%v", err)
			}
		case slices.Contains(cardLists, name):
			if !isStrings(value) {
				p.add(at+"."+name, "must be a list of strings")
			}
		default:
			p.add(at+"."+name, "a peer card has no such member")
		}
	}
}

func isStrings(value any) bool {
	_, ok := stringList(value)
	return ok
}

// problems collects what is wrong with a configuration.
type problems struct {
	key  string
	list []error
}

func (p *problems) add(key, format string, args ...any) {
	p.list = append(p.list, errors.New(p.key+"."+key+": "+fmt.Sprintf(format, args...)))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
