package http

import (
	"time"

	"github.com/compozy-gateway/gateway/carriers/internal/tlsfiles"
	"github.com/compozy-gateway/gateway/core"
)

// Config is the section of an http carrier.
type Config struct {
	// Listen is host:port. A host that is not loopback needs tokens, or Insecure.
	Listen string `koanf:"listen"`
	// Insecure allows a listener that everybody on the network may use.
	Insecure bool `koanf:"insecure"`
	// TLS makes the listener speak TLS, with client certificates where
	// client_ca_file is set.
	TLS tlsfiles.Config `koanf:"tls"`
	// Tokens are the callers, by name. Without any, the listener trusts whoever
	// can reach it.
	Tokens map[string]TokenConfig `koanf:"tokens"`
	// Webhooks are the endpoints to be called, by name.
	Webhooks map[string]WebhookConfig `koanf:"webhooks"`

	// AcceptTimeout is how long a POST waits for its settlement before it is
	// answered 503.
	AcceptTimeout time.Duration `koanf:"accept_timeout"`
	// ReadTimeout bounds one read of the store.
	ReadTimeout time.Duration `koanf:"read_timeout"`
	// ReadHeaderTimeout bounds the header of a request.
	ReadHeaderTimeout time.Duration `koanf:"read_header_timeout"`
	// BodyTimeout bounds the body of a request, and of NDJSON each line.
	BodyTimeout time.Duration `koanf:"body_timeout"`
	// WriteTimeout bounds each write to a client. A stream whose reader takes
	// nothing for so long is closed.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	// IdleTimeout is how long a connection is kept between requests.
	IdleTimeout time.Duration `koanf:"idle_timeout"`
	// Heartbeat is how often a quiet stream carries a comment.
	Heartbeat time.Duration `koanf:"heartbeat"`
	// MaxBody bounds one NDJSON body in bytes.
	MaxBody int64 `koanf:"max_body"`
	// MaxStreams bounds streams and long polls together.
	MaxStreams int `koanf:"max_streams"`
	// ShutdownTimeout is how long requests may go on once the gateway stops.
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout"`
	// WebhookTimeout bounds one call of a webhook.
	WebhookTimeout time.Duration `koanf:"webhook_timeout"`
}

// TokenConfig is one caller.
type TokenConfig struct {
	// TokenFile holds the bearer token. It is read again when it changes.
	TokenFile string `koanf:"token_file"`
	// Scope bounds what the caller may send and read; peers bounds the from of
	// its envelopes and the peers that it reads as. A peer without * belongs to
	// this token alone.
	core.Scope `koanf:",squash"`
	// Admin reads direct rooms and handles dead letters.
	Admin bool `koanf:"admin"`
}

// WebhookConfig is one endpoint.
type WebhookConfig struct {
	URL string `koanf:"url"`
	// Scope selects what the endpoint gets. With Peers it stands in for the inbox
	// of those peers, and all names must be exact.
	core.Scope `koanf:",squash"`
	// SecretFile holds one key a line, whsec_ and base64. With two, each call is
	// signed with both. Without a file calls are not signed.
	SecretFile string `koanf:"secret_file"`
	// AllowPrivate allows loopback, private and link-local targets.
	AllowPrivate bool `koanf:"allow_private"`
	// TLS names the endpoint's authority and our client certificate.
	TLS tlsfiles.Config `koanf:"tls"`
}

// DefaultConfig is the section where nothing is set.
func DefaultConfig() Config {
	return Config{
		Listen:            "127.0.0.1:8080",
		AcceptTimeout:     10 * time.Second,
		ReadTimeout:       10 * time.Second,
		ReadHeaderTimeout: 10 * time.Second,
		BodyTimeout:       30 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       2 * time.Minute,
		Heartbeat:         10 * time.Second,
		MaxBody:           256 << 20,
		MaxStreams:        1024,
		ShutdownTimeout:   5 * time.Second,
		WebhookTimeout:    15 * time.Second,
	}
}
