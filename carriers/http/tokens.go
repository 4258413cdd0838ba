package http

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// tokenPoll is how often token files are read again, and so how long a
	// removed token may still be used.
	tokenPoll = time.Second
	// tokenMissPause bounds how often unknown tokens can make us read the files.
	tokenMissPause = 100 * time.Millisecond
	// maxTokenFile is far above any token.
	maxTokenFile = 64 << 10
)

// credential is one token as its file holds it now.
type credential struct {
	name   string
	config TokenConfig
	hash   [sha256.Size]byte
	// revoked is done once the file does not hold this token any more.
	revoked context.Context
	revoke  context.CancelFunc
}

// keyring knows the tokens. Tokens are kept as hashes, so that nothing can print
// them, and comparing hashes says nothing of how much of a guess was right.
type keyring struct {
	config map[string]TokenConfig
	names  []string
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	current  map[string]*credential
	failed   map[string]bool
	lastRead time.Time
}

func newKeyring(config map[string]TokenConfig, logger *slog.Logger, now func() time.Time) *keyring {
	k := &keyring{
		config:  config,
		names:   slices.Sorted(maps.Keys(config)),
		logger:  logger,
		now:     now,
		current: map[string]*credential{},
		failed:  map[string]bool{},
	}
	k.reload()
	return k
}

// watch reads the files again until ctx ends.
func (k *keyring) watch(ctx context.Context) {
	if len(k.names) == 0 {
		return
	}
	tick := time.NewTicker(tokenPoll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.reload()
		case <-ctx.Done():
			return
		}
	}
}

// find gives the credential of a presented token, nil when it is unknown.
func (k *keyring) find(token string) *credential {
	hash := sha256.Sum256([]byte(token))
	if c := k.match(hash); c != nil {
		return c
	}
	k.mu.Lock()
	stale := k.now().Sub(k.lastRead) >= tokenMissPause
	k.mu.Unlock()
	if !stale {
		return nil
	}
	k.reload()
	return k.match(hash)
}

// match compares with every token, whichever it is that fits.
func (k *keyring) match(hash [sha256.Size]byte) *credential {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *credential
	for _, name := range k.names {
		if c := k.current[name]; c != nil && subtle.ConstantTimeCompare(c.hash[:], hash[:]) == 1 && found == nil {
			found = c
		}
	}
	return found
}

// reload reads every file. A token that changed or cannot be read is revoked.
func (k *keyring) reload() {
	type reading struct {
		hash [sha256.Size]byte
		err  error
	}
	readings := make(map[string]reading, len(k.names))
	for _, name := range k.names {
		hash, err := readToken(k.config[name].TokenFile)
		readings[name] = reading{hash, err}
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastRead = k.now()
	for _, name := range k.names {
		r, old := readings[name], k.current[name]
		if r.err != nil && !k.failed[name] {
			k.logger.Warn("token is not usable", "token", name, "error", r.err)
		}
		k.failed[name] = r.err != nil
		if old != nil && r.err == nil && old.hash == r.hash {
			continue
		}
		if old != nil {
			old.revoke()
			delete(k.current, name)
			k.logger.Info("token revoked", "token", name)
		}
		if r.err == nil {
			revoked, revoke := context.WithCancel(context.Background())
			k.current[name] = &credential{name: name, config: k.config[name], hash: r.hash, revoked: revoked, revoke: revoke}
		}
	}
}

// readToken reads the hash of the token in the file.
func readToken(path string) ([sha256.Size]byte, error) {
	raw, err := readSecret(path)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	token := bytes.TrimSpace(raw)
	if len(token) == 0 {
		return [sha256.Size]byte{}, fmt.Errorf("%s is empty", path)
	}
	if bytes.ContainsAny(token, " \t\r\n") {
		return [sha256.Size]byte{}, fmt.Errorf("%s holds more than one token", path)
	}
	return sha256.Sum256(token), nil
}

var errSecretTooLong = errors.New("is too long for a secret")

// readSecret reads a small file.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	if info.Size() > maxTokenFile {
		return nil, fmt.Errorf("%s %w", path, errSecretTooLong)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return raw, nil
}
