package main

import (
	"io"
	"strings"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) peersCommand() *cobra.Command {
	var (
		r         remote
		out       output
		workspace string
	)
	cmd := &cobra.Command{
		Use:     "peers",
		Short:   "List the peers of a workspace and where each is",
		Example: "  gateway peers --workspace demo",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), &r, client.Path("workspaces", workspace, "peers"), nil, p.stdout, out.json(), printPeers)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace `ID`")
	requireFlags(cmd, "workspace")
	return cmd
}

type peersPage struct {
	Peers []core.PeerView `json:"peers"`
}

func printPeers(w io.Writer, page *peersPage) error {
	t := newTable("PEER", "ATTACHED IN", "LAST HEARD ON", "CHANNEL", "AT")
	for _, peer := range page.Peers {
		t.add(peer.Peer, strings.Join(peer.Attached, ","), peer.Carrier, peer.Channel, stamp(peer.LastHeard))
	}
	return t.write(w, "Peers")
}
