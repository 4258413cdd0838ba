package nats

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/carriers/internal/tlsfiles"
)

// Mode says how a carrier uses NATS.
type Mode string

// The two modes.
const (
	// ModeJetStream: through a stream and a durable consumer, at least once.
	ModeJetStream Mode = "jetstream"
	// ModeCore: plain subscriptions, at most once.
	ModeCore Mode = "core"
)

// Config is the configuration of a NATS carrier.
type Config struct {
	// URL is where the server is; several, separated by commas, are tried in turn.
	// It may hold credentials and is never shown with them.
	URL string `koanf:"url"`
	// Mode is jetstream or core.
	Mode Mode `koanf:"mode"`
	// SubjectPrefix is what stands before the workspace in every subject.
	SubjectPrefix string `koanf:"subject_prefix"`
	// Stream is the name of the stream in JetStream mode. It is created when
	// there is none; an existing one must cover the subjects and is never changed.
	Stream string `koanf:"stream"`

	// Username goes with PasswordFile. At most one of Username, TokenFile,
	// CredentialsFile and NKeyFile is set. The files are read at each connect, so
	// that they can be renewed while the gateway runs.
	Username     string `koanf:"username"`
	PasswordFile string `koanf:"password_file"`
	TokenFile    string `koanf:"token_file"`
	// CredentialsFile is a .creds file with a JWT and its seed.
	CredentialsFile string `koanf:"credentials_file"`
	// NKeyFile holds an nkey seed.
	NKeyFile string `koanf:"nkey_file"`
	// TLS names the certificate files. A tls:// address without any trusts the
	// system's authorities.
	TLS tlsfiles.Config `koanf:"tls"`

	// MaxPayload is the largest envelope in bytes that is sent; 0 leaves it to the
	// server's own limit, which is looked at when a message is sent.
	MaxPayload int `koanf:"max_payload"`
	// AckWait is how long the server waits for an acknowledgement before it sends
	// a message again, at least a second. A commit may take longer.
	AckWait time.Duration `koanf:"ack_wait"`
	// MaxAckPending is how many messages may be delivered and not yet
	// acknowledged.
	MaxAckPending int `koanf:"max_ack_pending"`
	// StreamMaxAge is how long a stream that the gateway creates keeps its
	// messages; 0 keeps them for ever.
	StreamMaxAge time.Duration `koanf:"stream_max_age"`
	// StreamReplicas is the number of copies of a stream that the gateway creates.
	StreamReplicas int `koanf:"stream_replicas"`
}

// DefaultConfig is the configuration without a word from anybody.
func DefaultConfig() Config {
	return Config{
		URL:            "nats://127.0.0.1:4222",
		Mode:           ModeJetStream,
		SubjectPrefix:  "compozy.network.v0",
		Stream:         "COMPOZY_NETWORK_V0",
		AckWait:        30 * time.Second,
		MaxAckPending:  1024,
		StreamMaxAge:   72 * time.Hour,
		StreamReplicas: 1,
	}
}

// The bounds of the configuration.
const (
	minAckWait        = time.Second
	maxAckPending     = 65536
	maxStreamReplicas = 5
	// maxPrefixBytes leaves room in the server's control line (4 KiB) for the
	// longest workspace and channel.
	maxPrefixBytes = 512
)

// Validate reports every problem, each message beginning with its key below the
// given one.
func (c Config) Validate(key string) []error {
	p := problems{key: key}
	p.add("url", validateURLs(c.URL))
	if c.Mode != ModeJetStream && c.Mode != ModeCore {
		p.addf("mode", "%q is neither %q nor %q", c.Mode, ModeJetStream, ModeCore)
	}
	if err := validatePrefix(c.SubjectPrefix); err != nil {
		p.add("subject_prefix", err)
	}
	if !legalName(c.Stream) {
		p.addf("stream", "%q is no stream name: it must not be empty nor hold white space or any of . * > / \\", c.Stream)
	}
	if c.MaxPayload < 0 {
		p.addf("max_payload", "%d is negative; 0 leaves it to the server", c.MaxPayload)
	}
	if c.AckWait < minAckWait {
		p.addf("ack_wait", "%v is less than %v", c.AckWait, minAckWait)
	}
	if c.MaxAckPending < 1 || c.MaxAckPending > maxAckPending {
		p.addf("max_ack_pending", "%d is not between 1 and %d", c.MaxAckPending, maxAckPending)
	}
	if c.StreamMaxAge < 0 || (c.StreamMaxAge > 0 && c.StreamMaxAge < minAckWait) {
		p.addf("stream_max_age", "%v is neither 0 nor at least %v", c.StreamMaxAge, minAckWait)
	}
	if c.StreamReplicas < 1 || c.StreamReplicas > maxStreamReplicas {
		p.addf("stream_replicas", "%d is not between 1 and %d", c.StreamReplicas, maxStreamReplicas)
	}
	c.validateCredentials(&p)
	p.list = append(p.list, c.TLS.Validate(key+".tls")...)
	return p.list
}

func (c Config) validateCredentials(p *problems) {
	var set []string
	for _, m := range []struct{ key, value string }{
		{"username", c.Username},
		{"token_file", c.TokenFile},
		{"credentials_file", c.CredentialsFile},
		{"nkey_file", c.NKeyFile},
	} {
		if m.value != "" {
			set = append(set, m.key)
		}
	}
	if len(set) > 1 {
		p.addf(set[0], "%s are set: only one way to log in can be", strings.Join(set, " and "))
	}
	if (c.Username == "") != (c.PasswordFile == "") {
		p.addf("password_file", "username and password_file belong together: set both")
	}
	for _, f := range []struct{ key, path string }{
		{"password_file", c.PasswordFile},
		{"token_file", c.TokenFile},
		{"credentials_file", c.CredentialsFile},
		{"nkey_file", c.NKeyFile},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			p.add(f.key, err)
		}
	}
}

// problems collects what is wrong, each under its full key.
type problems struct {
	key  string
	list []error
}

func (p *problems) add(key string, err error) {
	if err != nil {
		p.list = append(p.list, fmt.Errorf("%s.%s: %w", p.key, key, err))
	}
}

func (p *problems) addf(key, format string, args ...any) {
	p.add(key, fmt.Errorf(format, args...))
}

// validateURLs looks at each address of the list. Its errors do not repeat the
// address, which may hold a password.
func validateURLs(list string) error {
	if strings.TrimSpace(list) == "" {
		return errors.New("no server is named; for example nats://127.0.0.1:4222")
	}
	for i, raw := range strings.Split(list, ",") {
		u, err := parseURL(raw)
		switch {
		case err != nil:
			return fmt.Errorf("address %d of the list is no URL", i+1)
		case u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss":
			return fmt.Errorf("address %d of the list has the scheme %q: it must be nats, tls, ws or wss", i+1, u.Scheme)
		case u.Hostname() == "":
			return fmt.Errorf("address %d of the list names no host", i+1)
		}
	}
	return nil
}

// parseURL reads one address of the list; without a scheme it is nats.
func parseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	if !strings.Contains(raw, "://") {
		raw = "nats://" + raw
	}
	return url.Parse(raw)
}

// RedactURL is a list of server addresses as it may be shown: without any
// credentials, and without a path, which may stand for some.
func RedactURL(list string) string {
	shown := strings.Split(list, ",")
	for i, raw := range shown {
		u, err := parseURL(raw)
		if err != nil {
			shown[i] = "(unreadable address)"
			continue
		}
		shown[i] = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return strings.Join(shown, ",")
}
