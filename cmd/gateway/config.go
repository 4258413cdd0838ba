package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	example "github.com/compozy-gateway/gateway"
	"github.com/compozy-gateway/gateway/carriers/stdio"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/settings"
	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"
)

func (p *process) configCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "config",
		Short: "Print, check or start a configuration",
		Long: `A configuration is made of layers: the defaults, the file that --config names, the
environment, the flags. In the environment GATEWAY_ stands before a key and two
underscores between its levels: GATEWAY_CARRIERS__NATS__URL is carriers.nats.url.`,
		Example: "  gateway config init gateway.yaml\n  gateway config check --config gateway.yaml\n  gateway config print --config gateway.yaml",
	})
	cmd.AddCommand(p.configPrintCommand(), p.configCheckCommand(), p.configInitCommand())
	return cmd
}

func (p *process) configPrintCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "print",
		Short:   "Print the configuration in force, without secrets",
		Example: "  gateway config print --config gateway.yaml\n  gateway config print -o json",
		Args:    noArguments(),
		RunE: func(*cobra.Command, []string) error {
			c, err := p.load()
			if err != nil {
				return err
			}
			if out.json() {
				var document any
				if err := c.render().Decode(&document); err != nil {
					return fmt.Errorf("render the configuration: %w", err)
				}
				return printJSON(p.stdout, document)
			}
			// The encoder would tell a failed write by its text alone.
			var text bytes.Buffer
			encoder := yaml.NewEncoder(&text)
			encoder.SetIndent(2)
			if err := errors.Join(encoder.Encode(c.render()), encoder.Close()); err != nil {
				return fmt.Errorf("render the configuration: %w", err)
			}
			_, err = text.WriteTo(p.stdout)
			return err
		},
	}
	out.addFlag(cmd, "text")
	return cmd
}

func (p *process) configCheckCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and name every problem with its key",
		Long: `Check everything that can be told without starting: unknown keys, values of the
wrong type or out of range, files that are not there. Every problem is one line
on stderr that begins with its key; the exit status is then 2. The program of an
agent may still come, so one that is not there is a warning alone.`,
		Example: "  gateway config check --config gateway.yaml",
		Args:    noArguments(),
		RunE: func(*cobra.Command, []string) error {
			c, err := p.load()
			var usage *usageError
			if err == nil {
				c.warnOfMissingPrograms(p.logger())
			}
			switch {
			case err == nil && out.json():
				return printJSON(p.stdout, checkReport{Good: true, Problems: []string{}})
			case err == nil:
				_, err := fmt.Fprintln(p.stdout, "the configuration is good")
				return err
			case errors.As(err, &usage) && out.json():
				return errors.Join(err, printJSON(p.stdout, checkReport{Problems: strings.Split(err.Error(), "\n")}))
			}
			return err
		},
	}
	out.addFlag(cmd, "text")
	return cmd
}

// programHost is the configuration of a carrier that starts programs.
type programHost interface {
	MissingPrograms(key string) []stdio.MissingProgram
}

// warnOfMissingPrograms warns of each program of a live agent that cannot be
// started as things stand. The gateway runs all the same, and goes on trying.
func (c *configuration) warnOfMissingPrograms(logger *slog.Logger) {
	for _, section := range c.carriers {
		host, ok := section.config.(programHost)
		if !ok {
			continue
		}
		for _, missing := range host.MissingPrograms("carriers." + section.name) {
			logger.Warn("the program of an agent cannot be started",
				"key", missing.Key, "program", missing.Program, "why", missing.Why, "advice", missing.Advice)
		}
	}
}

// checkReport is what a program is told of a configuration. Each problem begins
// with its key.
type checkReport struct {
	Good     bool     `json:"good"`
	Problems []string `json:"problems"`
}

func (p *process) configInitCommand() *cobra.Command {
	var (
		out   output
		force bool
	)
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a configuration file with every key, its default and what it means",
		Long: `Write a configuration that says in full what runs without one. FILE is
gateway.yaml when it is not named, "-" is stdout. A file that exists is kept,
unless --force is given.`,
		Example: "  gateway config init\n  gateway config init -",
		Args:    atMostOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := "gateway.yaml"
			if len(args) > 0 {
				name = args[0]
			}
			if name == "-" {
				_, err := io.WriteString(p.stdout, example.Config())
				return err
			}
			if err := writeNew(name, example.Config(), force); err != nil {
				if errors.Is(err, os.ErrExist) {
					err = fmt.Errorf("%w; name another file, or overwrite it with --force", err)
				}
				return &usageError{err}
			}
			if out.json() {
				return printJSON(p.stdout, fileReport{File: name})
			}
			_, err := fmt.Fprintf(p.stdout, "wrote %s; start with: %s serve --config %s\n", name, p.program, name)
			return err
		},
	}
	out.addFlag(cmd, "text")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite a file that exists")
	return cmd
}

// writeNew creates a file that only its owner can write.
func writeNew(name, text string, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Clean(name), mode, 0o644)
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// secretKeys are the keys whose values are never printed. Credentials are
// configured as files, so that few are left; the values of an agent's
// environment hide themselves.
func secretKeys() []string { return []string{"password", "token", "secret", "seed"} }

// render is the configuration as it may be shown.
func (c *configuration) render() *yaml.Node {
	secret := func(key string) bool { return slices.Contains(secretKeys(), strings.ToLower(key)) }
	carriers := settings.Section()
	for _, section := range c.carriers {
		node := settings.Render(section.config, secret)
		typ := settings.Section(settings.Entry{Key: "type", Value: settings.Render(section.typ, secret)})
		node.Content = append(typ.Content, node.Content...)
		carriers.Content = append(carriers.Content, settings.Section(settings.Entry{Key: section.name, Value: node}).Content...)
	}
	shape := c.keys
	shape.Carriers = nil // They follow, read by their types.
	root := settings.Render(shape, secret)
	root.Content = append(root.Content, settings.Section(settings.Entry{Key: "carriers", Value: carriers}).Content...)
	return root
}
