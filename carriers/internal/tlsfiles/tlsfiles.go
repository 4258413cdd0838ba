// Package tlsfiles builds TLS configurations from the files that a carrier's
// configuration names.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Config names the files. Empty names are left out.
type Config struct {
	// CertFile and KeyFile hold our own certificate and its key, PEM.
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
	// CAFile holds the authorities that a client trusts beside the system's own.
	CAFile string `koanf:"ca_file"`
	// ClientCAFile holds the authorities whose client certificates a server
	// demands.
	ClientCAFile string `koanf:"client_ca_file"`
}

// Enabled reports whether any file is named.
func (c Config) Enabled() bool { return c != Config{} }

// Validate reports every problem, each with its key below the given one.
func (c Config) Validate(key string) []error {
	var problems []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		problems = append(problems, fmt.Errorf("%s: cert_file and key_file belong together: set both", key))
	}
	for _, f := range []struct{ key, path string }{
		{"cert_file", c.CertFile}, {"key_file", c.KeyFile}, {"ca_file", c.CAFile}, {"client_ca_file", c.ClientCAFile},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			problems = append(problems, fmt.Errorf("%s.%s: %w", key, f.key, err))
		}
	}
	return problems
}

// Client builds the configuration of the side that connects. It is nil when no
// file is named.
func (c Config) Client() (*tls.Config, error) {
	if !c.Enabled() {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := c.loadPair(out); err != nil {
		return nil, err
	}
	if c.CAFile != "" {
		pool, err := loadPool(c.CAFile)
		if err != nil {
			return nil, err
		}
		out.RootCAs = pool
	}
	return out, nil
}

// Server builds the configuration of the side that listens. It is nil when no
// file is named. With ClientCAFile every client must show a certificate.
func (c Config) Server() (*tls.Config, error) {
	if !c.Enabled() {
		return nil, nil
	}
	if c.CertFile == "" {
		return nil, fmt.Errorf("a TLS listener needs cert_file and key_file")
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := c.loadPair(out); err != nil {
		return nil, err
	}
	if c.ClientCAFile != "" {
		pool, err := loadPool(c.ClientCAFile)
		if err != nil {
			return nil, err
		}
		out.ClientCAs = pool
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}

func (c Config) loadPair(out *tls.Config) error {
	if c.CertFile == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s with its key: %w", c.CertFile, err)
	}
	out.Certificates = []tls.Certificate{pair}
	return nil
}

func loadPool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}
