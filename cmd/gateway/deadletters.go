package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) deadLettersCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "deadletters",
		Short: "List, replay or discard deliveries that were given up",
		Long: `A delivery is given up when its carrier refuses it for good, or when its
destination's queue is full. The message itself stays in the history.`,
		Example: "  gateway deadletters list\n  gateway deadletters replay 17-2\n  gateway deadletters discard 17-2",
	})
	cmd.AddCommand(p.deadLettersListCommand(),
		p.deadLetterActionCommand("replay", "Put dead letters back into their queues, with the same bytes", "replayed",
			func(ctx context.Context, c *client.Client, id string) error {
				return c.Call(ctx, http.MethodPost, client.Path("deadletters", id, "replay"))
			}),
		p.deadLetterActionCommand("discard", "Give dead letters up for good", "discarded",
			func(ctx context.Context, c *client.Client, id string) error {
				return c.Call(ctx, http.MethodDelete, client.Path("deadletters", id))
			}),
	)
	return cmd
}

func (p *process) deadLettersListCommand() *cobra.Command {
	var (
		r   remote
		out output
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the deliveries that were given up, each with its reason",
		Example: "  gateway deadletters list\n  gateway deadletters list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			letters, err := listDeadLetters(cmd.Context(), c)
			if err != nil {
				return err
			}
			if out.json() {
				return printJSON(p.stdout, deadLettersPage{DeadLetters: letters})
			}
			return printDeadLetters(p.stdout, letters)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	return cmd
}

type deadLettersPage struct {
	DeadLetters []core.DeadLetter `json:"deadletters"`
	// Next is where the next page starts, null on the last.
	Next *string `json:"next,omitempty"`
}

// listDeadLetters reads all pages.
func listDeadLetters(ctx context.Context, c *client.Client) ([]core.DeadLetter, error) {
	letters := []core.DeadLetter{}
	query := url.Values{"limit": {"1000"}}
	for {
		var page deadLettersPage
		if err := c.Get(ctx, client.Path("deadletters"), query, &page); err != nil {
			return nil, err
		}
		letters = append(letters, page.DeadLetters...)
		if page.Next == nil {
			return letters, nil
		}
		query.Set("after", *page.Next)
	}
}

func printDeadLetters(w io.Writer, letters []core.DeadLetter) error {
	t := newTable("DELIVERY", "RECIPIENT", "WORKSPACE", "ID", "ATTEMPTS", "REASON", "LAST ERROR")
	for _, d := range letters {
		t.add(d.Delivery, d.Recipient, d.WorkspaceID, d.ID, number(d.Attempts), d.Reason, d.LastError)
	}
	return t.write(w, "Dead letters")
}

// deadLetterActionCommand does one thing to each delivery that is named. One
// that fails does not keep the others from being tried.
func (p *process) deadLetterActionCommand(name, short, done string, act func(context.Context, *client.Client, string) error) *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:     name + " DELIVERY...",
		Short:   short,
		Example: "  gateway deadletters " + name + " 17-2",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			failed := false
			for _, id := range args {
				if err := act(cmd.Context(), c, id); err != nil {
					failed = true
					fmt.Fprintf(p.stderr, "error: %s: %v\n", printable(id), err)
					continue
				}
				fmt.Fprintf(p.stdout, "%s %s\n", done, printable(id))
			}
			if failed {
				return errFailed
			}
			return nil
		},
	}
	r.addFlags(cmd)
	return cmd
}
