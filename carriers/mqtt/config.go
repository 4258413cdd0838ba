package mqtt

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/carriers/internal/tlsfiles"
)

// Config is the configuration of one MQTT carrier.
type Config struct {
	// URL is the broker: tcp://, ssl://, ws:// or wss://host:port. Credentials in
	// it are taken, and never shown.
	URL string `koanf:"url"`
	// TopicPrefix is the head of all topics.
	TopicPrefix string `koanf:"topic_prefix"`
	// ClientIDPrefix is the head of the two client ids.
	ClientIDPrefix string `koanf:"client_id_prefix"`
	// Username and PasswordFile are the broker's credentials. The file is read
	// for every connection; a trailing line break is not part of the password.
	Username     string `koanf:"username"`
	PasswordFile string `koanf:"password_file"`
	// TLS names the files for ssl:// and wss://; without any the system's
	// authorities are trusted.
	TLS tlsfiles.Config `koanf:"tls"`
	// Keepalive is how long the link may be silent before a ping, in whole
	// seconds.
	Keepalive time.Duration `koanf:"keepalive"`
	// ConnectTimeout bounds one attempt to connect, and the wait for an answer
	// to a subscription.
	ConnectTimeout time.Duration `koanf:"connect_timeout"`
	// ReconnectMax is the longest pause between two attempts to connect.
	ReconnectMax time.Duration `koanf:"reconnect_max"`
	// MaxPayload is the largest payload in bytes that the broker takes; 0 means
	// that it sets no limit. MQTT 3.1.1 brokers do not tell theirs.
	MaxPayload int `koanf:"max_payload"`
	// InFlight is how many messages may wait for their PUBACK at the same time.
	InFlight int `koanf:"in_flight"`
	// ReceiveQueue is how many received messages may wait for the gateway; it
	// should be larger than the broker's window of unacknowledged messages.
	ReceiveQueue int `koanf:"receive_queue"`
}

// DefaultConfig is the configuration of a carrier of which nothing is said.
func DefaultConfig() Config {
	return Config{
		URL:            "tcp://127.0.0.1:1883",
		TopicPrefix:    "compozy/network/v0",
		ClientIDPrefix: "gateway",
		Keepalive:      30 * time.Second,
		ConnectTimeout: 10 * time.Second,
		ReconnectMax:   5 * time.Second,
		InFlight:       64,
		ReceiveQueue:   1024,
	}
}

// What MQTT and the promises of this package allow.
const (
	maxKeepalive    = 65535 * time.Second
	maxReconnect    = 30 * time.Second
	maxInFlight     = 16384
	maxReceiveQueue = 65535
	maxPrefixBytes  = 256
)

// Validate reports every problem, each with its full key.
func (c Config) Validate(key string) []error {
	var problems []error
	fail := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf(key+"."+name+": "+format, args...))
	}
	if problem := c.urlProblem(); problem != "" {
		fail("url", "%s", problem)
	}
	if problem := prefixProblem(c.TopicPrefix); problem != "" {
		fail("topic_prefix", "%s", problem)
	}
	if c.ClientIDPrefix == "" || strings.ContainsFunc(c.ClientIDPrefix, notInClientID) {
		fail("client_id_prefix", "letters, digits, '-', '_' and '.' only, and at least one of them")
	}
	if c.PasswordFile != "" {
		if c.Username == "" {
			fail("password_file", "needs username")
		}
		if _, err := readPassword(c.PasswordFile); err != nil {
			fail("password_file", "%w", err)
		}
	}
	problems = append(problems, c.TLS.Validate(key+".tls")...)
	if c.Keepalive < time.Second || c.Keepalive > maxKeepalive || c.Keepalive%time.Second != 0 {
		fail("keepalive", "%s is not a whole number of seconds from 1s to %s", c.Keepalive, maxKeepalive)
	}
	if c.ConnectTimeout <= 0 {
		fail("connect_timeout", "%s is not positive", c.ConnectTimeout)
	}
	if c.ReconnectMax <= 0 || c.ReconnectMax > maxReconnect {
		fail("reconnect_max", "%s is not between 0 and %s", c.ReconnectMax, maxReconnect)
	}
	if c.MaxPayload < 0 {
		fail("max_payload", "%d is negative; 0 means no limit", c.MaxPayload)
	}
	if c.InFlight < 1 || c.InFlight > maxInFlight {
		fail("in_flight", "%d is not between 1 and %d", c.InFlight, maxInFlight)
	}
	if c.ReceiveQueue < 1 || c.ReceiveQueue > maxReceiveQueue {
		fail("receive_queue", "%d is not between 1 and %d", c.ReceiveQueue, maxReceiveQueue)
	}
	return problems
}

// urlProblem says what is wrong with the URL, and never repeats it: it may hold
// a password.
func (c Config) urlProblem() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "is not a URL"
	}
	switch {
	case !knownScheme(u.Scheme):
		return "must begin with tcp://, ssl://, ws:// or wss://"
	case u.Hostname() == "":
		return "names no host"
	case u.User != nil && (c.Username != "" || c.PasswordFile != ""):
		return "holds credentials, and username or password_file does too: give them once"
	case c.TLS.Enabled() && !encrypted(u.Scheme):
		return "must begin with ssl:// or wss:// for the tls files to count"
	}
	return ""
}

// prefixProblem says why a topic prefix cannot be used.
func prefixProblem(prefix string) string {
	if prefix == "" || len(prefix) > maxPrefixBytes {
		return fmt.Sprintf("must have 1 to %d bytes", maxPrefixBytes)
	}
	if strings.HasPrefix(prefix, "$") {
		return "must not begin with $: such topics belong to the broker"
	}
	for level := range strings.SplitSeq(prefix, "/") {
		switch {
		case level == "":
			return "has an empty level"
		case strings.ContainsAny(level, "+#"):
			return "must not hold the wildcards + and #"
		case !printable(level):
			return "holds a character that topics must not hold"
		}
	}
	return ""
}

func notInClientID(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return false
	}
	return true
}

func readPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
