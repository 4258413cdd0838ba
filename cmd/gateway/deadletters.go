package main

import (
	"context"
	"errors"
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
		Args:    noArguments(),
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
	var (
		r   remote
		out output
	)
	cmd := &cobra.Command{
		Use:     name + " DELIVERY...",
		Short:   short,
		Example: "  gateway deadletters " + name + " 17-2",
		Args:    atLeastOne("DELIVERY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDeliveries(args); err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			failed := false
			for _, id := range args {
				err := act(cmd.Context(), c, id)
				report := letterReport{Delivery: id, Outcome: done}
				if err != nil {
					failed = true
					report.Outcome, report.Error = "failed", err.Error()
					fmt.Fprintf(p.stderr, "error: %s: %v%s\n", printable(id), err, p.advise(err))
				}
				if err := report.write(p.stdout, out.json()); err != nil {
					return err
				}
			}
			if failed {
				return errFailed
			}
			return nil
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	return cmd
}

// checkDeliveries refuses what cannot be the id of a delivery before anything is
// done to the others.
func checkDeliveries(ids []string) error {
	var problems []error
	for _, id := range ids {
		if _, err := core.ParseDeliveryID(id); err != nil {
			problems = append(problems, usagef("%s is not the id of a delivery; `deadletters list` shows them, in the form 17-2", printable(id)))
		}
	}
	return errors.Join(problems...)
}

// letterReport is what became of one dead letter.
type letterReport struct {
	Delivery string `json:"delivery"`
	// Outcome is replayed, discarded or failed.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// write leaves failures out of the text, for they are told on stderr.
func (l letterReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, l)
	}
	if l.Error != "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s %s\n", l.Outcome, printable(l.Delivery))
	return err
}
