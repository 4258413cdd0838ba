package http

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// maxHeartbeat is the longest that a proxy can be relied on to keep an idle
// stream.
const maxHeartbeat = 15 * time.Second

// Validate reports every problem, each with its full key.
func (c Config) Validate(key string) []error {
	var problems []error
	add := func(sub, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s.%s: %w", key, sub, fmt.Errorf(format, args...)))
	}
	if err := checkListen(c.Listen); err != nil {
		add("listen", "%w", err)
	} else if !c.loopback() && len(c.Tokens) == 0 && !c.Insecure {
		add("listen", "%s can be reached from the network: set tokens, or insecure: true to serve everybody", c.Listen)
	}
	problems = append(problems, c.TLS.Validate(key+".tls")...)
	if c.TLS.Enabled() && c.TLS.CertFile == "" {
		add("tls", "a listener needs cert_file and key_file")
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"accept_timeout", c.AcceptTimeout},
		{"read_timeout", c.ReadTimeout},
		{"read_header_timeout", c.ReadHeaderTimeout},
		{"body_timeout", c.BodyTimeout},
		{"write_timeout", c.WriteTimeout},
		{"idle_timeout", c.IdleTimeout},
		{"heartbeat", c.Heartbeat},
		{"shutdown_timeout", c.ShutdownTimeout},
		{"webhook_timeout", c.WebhookTimeout},
	} {
		if d.value <= 0 {
			add(d.key, "%s is not a positive duration", d.value)
		}
	}
	if c.Heartbeat > maxHeartbeat {
		add("heartbeat", "%s is longer than %s, and proxies cut idle streams", c.Heartbeat, maxHeartbeat)
	}
	if c.MaxBody <= 0 {
		add("max_body", "%d is not a positive number of bytes", c.MaxBody)
	}
	if c.MaxStreams <= 0 {
		add("max_streams", "%d is not a positive number", c.MaxStreams)
	}
	problems = append(problems, validateTokens(key+".tokens", c.Tokens)...)
	return append(problems, validateWebhooks(key+".webhooks", c.Webhooks)...)
}

func checkListen(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not of the form host:port", listen)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("%q has no valid port", listen)
	}
	return nil
}

// loopback reports whether only this machine can reach the listener.
func (c Config) loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

var entryName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func validateTokens(key string, tokens map[string]TokenConfig) []error {
	var problems []error
	byHash := map[[32]byte]string{}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		at := key + "." + name
		if !entryName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s: a token's name is 1 to 64 letters, digits, - or _", at))
		}
		if tokens[name].TokenFile == "" {
			problems = append(problems, fmt.Errorf("%s.token_file: is required", at))
			continue
		}
		hash, err := readToken(tokens[name].TokenFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.token_file: %w", at, err))
			continue
		}
		if other, taken := byHash[hash]; taken {
			problems = append(problems, fmt.Errorf("%s.token_file: holds the same token as %s.%s", at, key, other))
		}
		byHash[hash] = name
	}
	return problems
}

func validateWebhooks(key string, webhooks map[string]WebhookConfig) []error {
	var problems []error
	served := map[seat]string{}
	for _, name := range slices.Sorted(maps.Keys(webhooks)) {
		at, hook := key+"."+name, webhooks[name]
		if !entryName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s: a webhook's name is 1 to 64 letters, digits, - or _", at))
		}
		if _, err := parseEndpoint(hook.URL); err != nil {
			problems = append(problems, fmt.Errorf("%s.url: %w", at, err))
		}
		if hook.SecretFile != "" {
			if _, err := readKeys(hook.SecretFile); err != nil {
				problems = append(problems, fmt.Errorf("%s.secret_file: %w", at, err))
			}
		}
		problems = append(problems, hook.TLS.Validate(at+".tls")...)
		problems = append(problems, hook.validatePeers(at)...)
		for _, a := range hook.seats() {
			if other, taken := served[a]; taken {
				problems = append(problems, fmt.Errorf("%s.peers: %s of %s/%s is served by webhook %s already",
					at, a.peer, a.workspace, a.channel, other))
			}
			served[a] = name
		}
	}
	return problems
}

// validatePeers checks that the attachments of a webhook can be told: a peer is
// attached to one channel, so patterns say nothing.
func (w WebhookConfig) validatePeers(key string) []error {
	if len(w.Peers) == 0 {
		return nil
	}
	var problems []error
	for _, list := range []struct {
		key   string
		names []string
		valid func(string) bool
	}{
		{"peers", w.Peers, core.ValidPeerID},
		{"workspaces", w.Workspaces, core.ValidWorkspaceID},
		{"channels", w.Channels, core.ValidChannel},
	} {
		if len(list.names) == 0 {
			problems = append(problems, fmt.Errorf("%s.%s: is required with peers", key, list.key))
		}
		for _, name := range list.names {
			if !list.valid(name) {
				problems = append(problems, fmt.Errorf("%s.%s: %q is not an exact name, as peers demand", key, list.key, name))
			}
		}
	}
	return problems
}

// seats are the peers whose inbox the webhook stands in for.
func (w WebhookConfig) seats() []seat {
	var out []seat
	for _, ws := range w.Workspaces {
		for _, ch := range w.Channels {
			for _, peer := range w.Peers {
				out = append(out, seat{ws, ch, peer})
			}
		}
	}
	return out
}

// parseEndpoint reads the URL of a webhook. Its errors do not repeat the URL,
// which may hold credentials.
func parseEndpoint(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, fmt.Errorf("is required")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("is not a valid URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the scheme must be http or https")
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("names no host")
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("has a fragment, which is never sent")
	}
	return u, nil
}
