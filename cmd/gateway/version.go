package main

import (
	"fmt"
	"runtime/debug"

	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) versionCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the protocol",
		Example: "  gateway version\n  gateway version -o json",
		Args:    noArguments(),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if out.json() {
				return printJSON(p.stdout, v)
			}
			_, err := fmt.Fprintln(p.stdout, versionLine(v))
			return err
		},
	}
	out.addFlag(cmd, "text")
	return cmd
}

func versionLine(v versionInfo) string {
	return fmt.Sprintf("gateway %s (%s, %s)", v.Version, v.Protocol, v.Go)
}

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
}

// buildVersion is what the Go toolchain recorded in the program.
func buildVersion() versionInfo {
	v := versionInfo{Version: "unknown", Protocol: core.Protocol}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
