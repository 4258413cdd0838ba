package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) agentsCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "agents",
		Short: "List hosted agents and their wakes, or renew their budgets",
		Long: `A live agent is woken when a say names it, within the bounds of its
participation. The bounds count until the participation is renewed; a restart of
the gateway keeps them.`,
		Example: "  gateway agents list\n  gateway agents renew echo",
	})
	cmd.AddCommand(p.agentsListCommand(), p.agentsRenewCommand())
	return cmd
}

func (p *process) agentsListCommand() *cobra.Command {
	var (
		r   remote
		out output
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the hosted agents: what they have used of their bounds, and their latest wakes",
		Example: "  gateway agents list\n  gateway agents list -o json",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), &r, client.Path("agents"), nil, p.stdout, out.json(), printAgents)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	return cmd
}

type agentsPage struct {
	Agents []core.AgentView `json:"agents"`
}

func printAgents(w io.Writer, page *agentsPage) error {
	agents := newTable("AGENT", "CARRIER", "PEER", "STATE", "MODE", "WAKES", "WALL TIME", "INPUT TOKENS", "OUTPUT TOKENS", "UNREAD", "WHY", "NOTE")
	wakes := newTable("AGENT", "WAKE", "STATE", "ROOT", "DEPTH", "MESSAGES", "ATTEMPTS", "USAGE", "WALL TIME", "ENDED", "DETAIL")
	for i := range page.Agents {
		a := &page.Agents[i]
		row := []string{a.Name, a.Carrier, a.Peer, a.State, "-", "", "", "", "", "", a.Why, a.Note}
		if rp := a.ResolvedNetworkParticipation; rp != nil {
			row[4] = string(rp.Mode)
			if u, b := a.Used, rp.Bounds; u != nil && b != nil {
				row[5] = fmt.Sprintf("%d of %d", u.Wakes, b.MaxWakes)
				row[6] = fmt.Sprintf("%s of %s", u.WallTime, b.MaxTotalWallTime)
				row[7] = fmt.Sprintf("%d of %d", u.InputTokens, b.MaxInputTokens)
				row[8] = fmt.Sprintf("%d of %d", u.OutputTokens, b.MaxOutputTokens)
				row[9] = number(a.Unread)
			}
		}
		agents.add(row...)
		for _, k := range a.Wakes {
			wakes.add(a.Name, k.ID, string(k.State), k.Root, number(k.Depth), number(k.Messages), number(k.Attempts),
				string(k.Usage), k.Charged.WallTime, stamp(k.EndedAt), k.Detail)
		}
	}
	if err := agents.write(w, "Agents"); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return wakes.write(w, "Wakes")
}

func (p *process) agentsRenewCommand() *cobra.Command {
	var (
		r   remote
		out output
	)
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Give a live agent a new participation with the configured bounds and an unused budget",
		Long: `Give a live agent a new participation: the bounds that the configuration of the
running gateway asks for, with nothing used of them. A wake that is open stays on
the account of the old one. Where two carriers host an agent of that name, say
CARRIER.NAME.`,
		Example: "  gateway agents renew echo",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.Call(cmd.Context(), http.MethodPost, client.Path("agents", args[0], "renew")); err != nil {
				return renewFailure(args[0], err)
			}
			if out.json() {
				return printJSON(p.stdout, map[string]string{"renewed": args[0]})
			}
			fmt.Fprintf(p.stdout, "renewed %s\n", printable(args[0]))
			return nil
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	return cmd
}

// renewFailure says where the names are when an agent is not known.
func renewFailure(name string, err error) error {
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusNotFound {
		return fmt.Errorf("renew agent %s: no agent has that name; gateway agents list shows those that there are: %w", printable(name), err)
	}
	return fmt.Errorf("renew agent %s: %w", printable(name), err)
}
