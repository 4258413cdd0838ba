package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitGood   = 0
	exitFailed = 1
	exitUsage  = 2
)

// process is everything that a command knows of the world around it, so that a
// test can start one.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	// program is how hints for people call this program.
	program string

	configFile string
	dataDir    string
	logLevel   string
	logFormat  string

	// unknown is the error of a help that was asked for a command that there is not.
	unknown error
}

// errFailed ends a command with status 1 when its output has said why already.
var errFailed = errors.New("failed")

// usageError is the user's mistake: an unknown flag, a bad key, a port in use.
// It ends a command with status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// run executes one command line and returns its exit status.
func (p *process) run(ctx context.Context, args []string) int {
	root := p.newRoot()
	started := false
	onStart(root, func() { started = true })
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = p.unknown
	}
	var usage *usageError
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.As(err, &usage):
		printProblems(p.stderr, err)
		return exitUsage
	case !started:
		fmt.Fprintf(p.stderr, "error: %v\nSee %s --help\n", err, cmd.CommandPath())
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitFailed
	case errors.Is(err, syscall.EPIPE):
		// Whoever read our output has gone; nobody is left to be told.
		return exitFailed
	default:
		fmt.Fprintf(p.stderr, "error: %v%s\n", err, p.advise(err))
		return exitFailed
	}
}

// onStart calls told when a command begins its own work: what failed before
// that is the command line's fault.
func onStart(cmd *cobra.Command, told func()) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			told()
			return work(cmd, args)
		}
	}
	for _, below := range cmd.Commands() {
		onStart(below, told)
	}
}

// printProblems writes one line for each of the errors that were joined.
func printProblems(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "error: %s\n", line)
	}
}

func (p *process) newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "gateway",
		Short: "Carry compozy-network/v0 envelopes between NATS, MQTT, HTTP and local agents",
		Long: `gateway takes compozy-network/v0 envelopes in on any carrier, commits each one
once, and sends it out on every other carrier that should have it.

Start one with "serve"; every other command but validate, digest, backup and
config talks to it over HTTP. Data is written to stdout, logs and errors to
stderr. The exit status is 0 when all went well, 1 when something failed, 2 for
wrong usage or configuration.`,
		Example:       "  gateway serve\n  gateway send --workspace demo --channel general --from alice --text hello",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return p.checkLogFlags()
		},
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = versionLine(buildVersion())
	root.SetVersionTemplate("{{.Version}}\n")
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if named := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(named) > 0 {
			p.unknown = unknownCommand(cmd, named[0])
			return
		}
		help(cmd, args)
	})
	root.SetHelpCommand(helpCommand())
	flags := root.PersistentFlags()
	flags.StringVar(&p.configFile, "config", "", "configuration `FILE` (YAML); without one the defaults run")
	flags.StringVar(&p.dataDir, "data-dir", "", "`DIR` of the database, in place of data_dir")
	flags.StringVar(&p.logLevel, "log-level", "info", "least `LEVEL` to log: debug, info, warn or error")
	flags.StringVar(&p.logFormat, "log-format", "text", "`FORMAT` of the log on stderr: text or json")
	root.AddCommand(
		p.serveCommand(), p.sendCommand(), p.tailCommand(), p.attachCommand(), p.mcpCommand(),
		p.inspectCommand(), p.peersCommand(), p.workCommand(), p.agentsCommand(), p.deadLettersCommand(),
		p.rejectionsCommand(),
		p.validateCommand(), p.digestCommand(), p.backupCommand(), p.configCommand(),
		p.versionCommand(),
	)
	return root
}

// group makes a command that only holds others: alone it shows its help, and
// with a name that none of them has it is wrong usage.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// helpCommand is wrong usage, as anywhere else, with a name that no command has.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Example: "  gateway help serve\n  gateway help agents renew",
		RunE: func(cmd *cobra.Command, args []string) error {
			named, rest, err := cmd.Root().Find(args)
			if err != nil {
				return &usageError{err}
			}
			if len(rest) > 0 {
				return unknownCommand(named, rest[0])
			}
			named.InitDefaultHelpFlag() // So that it is shown.
			named.InitDefaultVersionFlag()
			return named.Help()
		},
	}
}

func unknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("unknown command %q for %q%s", name, parent.CommandPath(), hint)
}

func (p *process) checkLogFlags() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(p.logLevel)); err != nil {
		return usagef("--log-level: %q is not a level; use debug, info, warn or error", p.logLevel)
	}
	if p.logFormat != "text" && p.logFormat != "json" {
		return usagef("--log-format: %q is not a format; use text or json", p.logFormat)
	}
	return nil
}

// logger writes to stderr as the flags say. They are checked before any command
// runs.
func (p *process) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(p.logLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if p.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(p.stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}

// programName is how a person would start this program again.
func programName(arg0 string) string {
	if strings.Contains(arg0, "go-build") {
		return "go run ./cmd/gateway"
	}
	if filepath.Base(arg0) == arg0 || filepath.IsAbs(arg0) {
		return arg0
	}
	return "./" + filepath.Clean(arg0)
}
