package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

// mostPerPage is how many entries the gateway gives in one answer.
const mostPerPage = 1000

func (p *process) rejectionsCommand() *cobra.Command {
	var (
		r     remote
		out   output
		limit int
	)
	cmd := &cobra.Command{
		Use:   "rejections",
		Short: "List what was refused, on any carrier, with the reason",
		Long: `List the log of refused envelopes, the latest first. The log keeps no content, only
what the envelope claimed of itself, its hash and size, and why it was refused.
The same bytes refused again on the same carrier count on one entry.`,
		Example: "  gateway rejections\n  gateway rejections --limit 5 -o json",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usagef("--limit: %d is not a positive number", limit)
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := listRejections(cmd.Context(), c, limit)
			if err != nil {
				return err
			}
			if out.json() {
				return printJSON(p.stdout, rejectionsPage{Rejections: list})
			}
			return printRejections(p.stdout, list)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most this `NUMBER`")
	return cmd
}

type rejectionsPage struct {
	Rejections []core.RejectionView `json:"rejections"`
	// Next is where the next page starts, null on the last.
	Next *int64 `json:"next,omitempty"`
}

// listRejections reads as many pages as it takes.
func listRejections(ctx context.Context, c *client.Client, limit int) ([]core.RejectionView, error) {
	list := []core.RejectionView{}
	query := url.Values{}
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(list), mostPerPage)))
		var page rejectionsPage
		if err := c.Get(ctx, client.Path("rejections"), query, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Rejections...)
		if page.Next == nil || len(list) >= limit {
			return list, nil
		}
		query.Set("after", strconv.FormatInt(*page.Next, 10))
	}
}

func printRejections(w io.Writer, list []core.RejectionView) error {
	t := newTable("LAST", "COUNT", "CARRIER", "REASON", "DETAIL", "WORKSPACE", "ID", "FROM", "BYTES", "SHA256")
	for i := range list {
		r := &list[i]
		t.add(stamp(&r.LastAt), number(r.Count), r.Carrier, string(r.Reason), r.Detail,
			r.ClaimedWorkspaceID, r.ClaimedID, r.ClaimedFrom, number(r.Bytes), fmt.Sprintf("%.12s", r.SHA256))
	}
	return t.write(w, "Rejections")
}
