package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// noArguments refuses every argument.
func noArguments() cobra.PositionalArgs { return positional(0, 0) }

// exactly takes one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return positional(len(names), len(names), names...)
}

// atLeastOne takes any number of arguments of the name, but not none.
func atLeastOne(name string) cobra.PositionalArgs { return positional(1, -1, name) }

// atMostOne takes one argument or none.
func atMostOne(name string) cobra.PositionalArgs { return positional(0, 1, name) }

// positional refuses too few by the names of those that are missing, and too many
// by the first that is too much; most is -1 where there is no bound.
func positional(least, most int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("the argument %s is missing", strings.Join(names[len(args):], " "))
		case most >= 0 && len(args) > most:
			return fmt.Errorf("unexpected argument %q", args[most])
		}
		return nil
	}
}
