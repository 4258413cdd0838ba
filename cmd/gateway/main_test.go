package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if stdio.GuardMain(os.Args) {
		return
	}
	if file := os.Getenv(benchTimes); file != "" {
		benchAgent(file)
	}
	goleak.VerifyTestMain(m)
}

// outcome is what a finished command left behind.
type outcome struct {
	status         int
	stdout, stderr string
}

// command runs one command line to its end, with nothing in its environment.
func command(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	return commandIn(t.Context(), nil, strings.NewReader(stdin), args...)
}

func commandIn(ctx context.Context, environ []string, stdin io.Reader, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	p := &process{stdin: stdin, stdout: &stdout, stderr: &stderr, environ: environ, program: "gateway"}
	status := p.run(ctx, args)
	return outcome{status, stdout.String(), stderr.String()}
}

func TestWrongUsageEndsWithStatus2AndSaysWhyOnStderr(t *testing.T) {
	cases := []struct {
		name string
		args []string
		says string
	}{
		{"unknown command", []string{"serv"}, "unknown command"},
		{"unknown command of a group", []string{"config", "prnt"}, "unknown command"},
		{"unknown flag", []string{"serve", "--prot"}, "unknown flag"},
		{"unknown command with --help", []string{"serv", "--help"}, `unknown command "serv"`},
		{"help of an unknown command", []string{"help", "serv"}, `unknown command "serv" for "gateway"; did you mean serve`},
		{"help of an unknown command of a group", []string{"help", "config", "prnt"}, `unknown command "prnt" for "gateway config"`},
		{"help of what no command has", []string{"help", "serve", "now"}, `unknown command "now" for "gateway serve"`},
		{"unknown command of a group with --help", []string{"config", "prnt", "--help"}, `unknown command "prnt"`},
		{"too many arguments", []string{"serve", "now"}, `unexpected argument "now"`},
		{"one argument too many", []string{"inspect", "a", "b", "--workspace", "w"}, `unexpected argument "b"`},
		{"too few arguments", []string{"inspect", "--workspace", "w"}, "the argument ID is missing"},
		{"no delivery", []string{"deadletters", "replay"}, "the argument DELIVERY is missing"},
		{"no delivery's id", []string{"deadletters", "discard", "1-1", "x"}, "x is not the id of a delivery"},
		{"unreadable token file", []string{"peers", "--workspace", "w", "--token-file", "no-such-token"}, "--token-file: "},
		{"missing flag", []string{"peers"}, "workspace"},
		{"bad number", []string{"tail", "--after", "x"}, "after"},
		{"bad format", []string{"version", "-o", "xml"}, "-o"},
		{"bad log level", []string{"version", "--log-level", "loud"}, "--log-level"},
		{"bad log format", []string{"version", "--log-format", "xml"}, "--log-format"},
		{"bad url", []string{"peers", "--workspace", "w", "--url", "localhost"}, "--url"},
		{"missing file", []string{"validate", "no-such-file"}, "no-such-file"},
		{"missing configuration", []string{"config", "check", "--config", "no-such-file"}, "no-such-file"},
		{"nothing to send", []string{"send"}, "empty"},
		{"say without its text", []string{"send", "--from", "alice"}, "--text"},
		{"direct room with nobody", []string{"send", "--direct", "--text", "x", "--workspace", "w", "--channel", "c", "--from", "a"}, "--to"},
		{"say that expires at once", []string{"send", "--text", "x", "--workspace", "w", "--channel", "c", "--from", "a", "--expires-in", "0s"}, "--expires-in"},
		{"say that has expired", []string{"send", "--text", "x", "--workspace", "w", "--channel", "c", "--from", "a", "--expires-in", "-5m"}, "--expires-in"},
		{"attachment without patience", []string{"attach", "--workspace", "w", "--channel", "c", "--peer", "p", "--give-up-after", "0s"}, "--give-up-after"},
		{"say and a file", []string{"send", "--text", "x", "file"}, "exclude"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := command(t, "", c.args...)
			if got.status != exitUsage || !strings.Contains(got.stderr, c.says) {
				t.Errorf("status %d, stderr %q; want 2 and %q", got.status, got.stderr, c.says)
			}
			if got.stdout != "" {
				t.Errorf("wrong usage wrote data: %q", got.stdout)
			}
		})
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	var walk func(path []string, cmd *cobra.Command)
	walk = func(path []string, cmd *cobra.Command) {
		got := command(t, "", append(path, "--help")...)
		if got.status != exitGood || got.stderr != "" {
			t.Errorf("%v --help ends with %d and %q", path, got.status, got.stderr)
		}
		if !strings.Contains(got.stdout, "Examples:\n  gateway") {
			t.Errorf("%v --help has no example:\n%s", path, got.stdout)
		}
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() {
				walk(append(path[:len(path):len(path)], below.Name()), below)
			}
		}
	}
	walk(nil, (&process{}).newRoot())
}

func TestVersionNamesTheProtocol(t *testing.T) {
	if got := command(t, "", "version"); got.status != exitGood || !strings.Contains(got.stdout, "compozy-network/v0") {
		t.Errorf("got %+v", got)
	}
	if flag := command(t, "", "--version"); flag != command(t, "", "version") {
		t.Errorf("--version gives %+v", flag)
	}
	if got := command(t, "", "version", "-o", "json"); got.status != exitGood || !strings.HasPrefix(got.stdout, `{"version":`) {
		t.Errorf("got %+v", got)
	}
}

func TestProgramNameIsWhatAPersonTypes(t *testing.T) {
	for arg0, want := range map[string]string{
		"/tmp/go-build123/b001/exe/gateway": "go run ./cmd/gateway",
		"gateway":                           "gateway",
		"/usr/bin/gateway":                  "/usr/bin/gateway",
		"bin/gateway":                       "./bin/gateway",
		"./gateway":                         "./gateway",
	} {
		if got := programName(arg0); got != want {
			t.Errorf("programName(%s) = %s, want %s", arg0, got, want)
		}
	}
}

func TestTextFromStrangersCannotSteerATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "-",
		"plain é":             "plain é",
		"a\x1b[2Jb":           `"a\x1b[2Jb"`,
		"line\nbreak":         `"line\nbreak"`,
		"c1 \u009b2J":         `"c1 \u009b2J"`,
		"bidi \u202egnp.exe":  `"bidi \u202egnp.exe"`,
		"tab\tseparated cell": `"tab\tseparated cell"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}
