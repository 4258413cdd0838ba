package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestFilesWithSecretsThatOthersMayReadAreWarnedOf(t *testing.T) {
	open, closed := writeFile(t, "open", strings.Repeat("a", 40)), writeFile(t, "closed", strings.Repeat("b", 40))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, &loading{file: fmt.Sprintf(
		"carriers: {h: {type: http, tokens: {open: {token_file: %s}, closed: {token_file: %s}}}, n: {type: nats, token_file: %s}}\n", open, closed, open)})
	var log bytes.Buffer
	c.warnOfOpenSecrets(slog.New(slog.NewTextHandler(&log, nil)))
	said := log.String()
	for _, key := range []string{"key=carriers.h.tokens.open.token_file ", "key=carriers.n.token_file "} {
		if !strings.Contains(said, key) {
			t.Errorf("%q is missing in %s", key, said)
		}
	}
	if strings.Count(said, "\n") != 2 || strings.Contains(said, "aaaa") {
		t.Errorf("the log says %s", said)
	}
}
