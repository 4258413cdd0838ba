package main

import (
	"log/slog"
	"os"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
)

// othersMayRead is the permission that no file with a secret should give.
const othersMayRead = 0o004

// secretFileKeys are the keys whose values name files with secrets in them.
func secretFileKeys() []string {
	return []string{"token_file", "password_file", "secret_file", "credentials_file", "nkey_file", "key_file"}
}

// warnOfOpenSecrets warns of each file with a secret that every user of this
// machine may read. A file that cannot be looked at is somebody else's to tell.
func (c *configuration) warnOfOpenSecrets(logger *slog.Logger) {
	for _, section := range c.carriers {
		for _, found := range settings.Texts("carriers."+section.name, section.config, secretFileKeys()) {
			info, err := os.Stat(found.Value)
			if found.Value == "" || err != nil || info.Mode().Perm()&othersMayRead == 0 {
				continue
			}
			logger.Warn("a file with a secret can be read by every user of this machine",
				"key", found.Key, "file", found.Value, "mode", info.Mode().Perm().String(), "advice", "chmod o-rwx")
		}
	}
}
