package main

import (
	"encoding/json"
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
		Short:   "List the peers of a workspace, where each is and what it claims of itself",
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
	t := newTable("PEER", "ATTACHED IN", "LAST HEARD ON", "CHANNEL", "AT", "CLAIMS TO BE", "CLAIMED ON", "AT")
	for _, peer := range page.Peers {
		t.add(peer.Peer, strings.Join(peer.Attached, ","), peer.Carrier, peer.Channel, stamp(peer.LastHeard),
			claims(peer.Card), peer.CardCarrier, stamp(peer.CardAt))
	}
	return t.write(w, "Peers")
}

// maxClaims is how many characters of a card the table has room for.
const maxClaims = 60

// claims is a card in a few words: its name, and what it says that it can do.
func claims(card []byte) string {
	var c struct {
		DisplayName  string   `json:"display_name"`
		Capabilities []string `json:"capabilities"`
	}
	if len(card) == 0 || json.Unmarshal(card, &c) != nil {
		return ""
	}
	said := []rune(strings.TrimSuffix(c.DisplayName+": "+strings.Join(c.Capabilities, ", "), ": "))
	if len(said) > maxClaims {
		said = append(said[:maxClaims-1], '…')
	}
	return strings.TrimPrefix(string(said), ": ")
}
