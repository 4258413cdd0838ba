package main

import (
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/cmd/gateway/internal/mcpserver"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) mcpCommand() *cobra.Command {
	var (
		r      remote
		seat   client.Seat
		detach bool
	)
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Be a peer for an MCP host: tools over stdin and stdout",
		Long: `Serve the Model Context Protocol on stdin and stdout, so that an MCP host can send
and receive as one peer of a running gateway (docs/mcp.md). Hosts start this
command themselves. Stdout carries MCP frames alone; logs go to stderr.

The peer, its workspace and its channel are fixed here; no tool can choose them.
What other peers wrote is handed on as untrusted data.

The command ends when stdin does. The peer stays attached, and its inbox keeps
what comes, unless --detach is given. A gateway that is away makes calls fail;
the next call tries again.`,
		Example: "  gateway mcp --workspace demo --channel general --peer assistant",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSeat(seat); err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			server := mcpserver.New(mcpserver.Config{
				Client: c, Seat: seat, Detach: detach, Version: buildVersion().Version, Logger: p.logger(),
			})
			return server.Run(cmd.Context(), p.stdin, p.stdout)
		},
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&seat.Workspace, "workspace", "", "workspace `ID`")
	flags.StringVar(&seat.Channel, "channel", "", "`CHANNEL` to attach in")
	flags.StringVar(&seat.Peer, "peer", "", "`PEER` to be")
	flags.BoolVar(&detach, "detach", false, "end the attachment when stdin ends")
	requireFlags(cmd, "workspace", "channel", "peer")
	return cmd
}

// checkSeat refuses names that no gateway could know, while a person may still
// see why.
func checkSeat(seat client.Seat) error {
	switch {
	case !core.ValidWorkspaceID(seat.Workspace):
		return usagef("--workspace: %q is not a workspace id: %s", seat.Workspace, core.WorkspaceGrammar)
	case !core.ValidChannel(seat.Channel):
		return usagef("--channel: %q is not the name of a channel: %s", seat.Channel, core.ChannelGrammar)
	case !core.ValidPeerID(seat.Peer):
		return usagef("--peer: %q is not a peer id: %s", seat.Peer, core.PeerGrammar)
	}
	return nil
}
