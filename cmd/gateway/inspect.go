package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) inspectCommand() *cobra.Command {
	var (
		r         remote
		out       output
		v         viewer
		workspace string
	)
	cmd := &cobra.Command{
		Use:   "inspect ID",
		Short: "Show what became of one message",
		Long: `Show one message: who was to get it, how each delivery stands with the
acknowledgement of its carrier, and the receipts that peers sent for it. A
carrier's acknowledgement says that a carrier took the bytes; a receipt says
what a peer made of them. Neither stands for the other.`,
		Example: "  gateway inspect m-1 --workspace demo\n  gateway inspect m-1 --workspace demo -o json",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := client.Path("workspaces", workspace, "messages", args[0])
			err := show(cmd.Context(), &r, path, v.query(), p.stdout, out.json(), func(w io.Writer, in *core.Inspection) error {
				return printInspection(w, args[0], in)
			})
			return notFound(err, "message "+printable(args[0]), workspace, v.peer)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	v.addFlag(cmd)
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace `ID`")
	requireFlags(cmd, "workspace")
	return cmd
}

func printInspection(w io.Writer, id string, in *core.Inspection) error {
	position := "parked, waiting for the message that opens its work"
	if in.Seq != nil {
		position = "seq " + number(*in.Seq)
	}
	fmt.Fprintf(w, "Message %s: %s, committed %s, came in on %s (%s)\n",
		printable(id), position, stamp(&in.CommittedAt), printable(in.Carrier), printable(in.Arrival))
	if about := describeAddress(in.Envelope); about != "" {
		fmt.Fprintln(w, about)
	}
	fmt.Fprintln(w)

	decisions := newTable("RECIPIENT", "DECISION", "REASON")
	for _, d := range in.Decisions {
		decisions.add(d.Recipient, d.Decision, string(d.Reason))
	}
	deliveries := newTable("DELIVERY", "RECIPIENT", "STATE", "ATTEMPTS", "CARRIER ACK", "ACK TIME", "ACK DETAIL", "REASON", "LAST ERROR")
	for _, d := range in.Deliveries {
		var ack core.AckView
		if d.Ack != nil {
			ack = *d.Ack
		}
		deliveries.add(d.ID, d.Recipient, string(d.State), number(d.Attempts), string(ack.Kind), stamp(&ack.At), ack.Detail, d.Reason, d.LastError)
	}
	receipts := newTable("RECEIPT", "SEQ", "FROM", "STATUS", "REASON CODE", "DETAIL")
	for _, r := range in.Receipts {
		receipts.add(r.ID, number(r.Seq), r.From, string(r.Status), r.ReasonCode, r.Detail)
	}
	wakes := newTable("WAKE", "RECIPIENT", "STATE", "ROOT", "DEPTH", "MESSAGES", "HANDED OVER", "THIS MESSAGE", "ATTEMPTS", "USAGE", "DETAIL")
	for _, k := range in.Wakes {
		wakes.add(k.ID, k.Recipient, string(k.State), k.Root, number(k.Depth), number(k.Messages), number(k.HandedOver),
			strings.ReplaceAll(string(k.ThisMessage), "_", " "), number(k.Attempts), string(k.Usage), k.Detail)
	}
	skips := newTable("RECIPIENT", "NO WAKE OF ITS OWN BECAUSE")
	for _, s := range in.Skips {
		skips.add(s.Recipient, string(s.Reason))
	}
	participations := newTable("RECIPIENT", "MODE", "CHANNEL", "BOUNDS")
	for _, recipient := range slices.Sorted(maps.Keys(in.Participations)) {
		p := in.Participations[recipient]
		participations.add(recipient, string(p.Mode), p.ChannelID, describeBounds(p.Bounds))
	}
	for _, part := range []struct {
		title string
		table *table
	}{
		{"Decisions", decisions},
		{"Deliveries and carrier acknowledgements", deliveries},
		{"Receipts from peers", receipts},
		{"Wakes", wakes},
		{"Skipped wakes", skips},
		{"Participations", participations},
	} {
		if err := part.table.write(w, part.title); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

// describeBounds tells the bounds of a participation that decide about wakes.
func describeBounds(b *core.Bounds) string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("%d wakes, depth %d, %s in all", b.MaxWakes, b.MaxWakeDepth, b.MaxTotalWallTime)
}

// describeAddress tells the kind of a message, who said it to whom, and where.
// It is empty for a message that cannot be read.
func describeAddress(raw []byte) string {
	env, rejection := core.Parse(raw)
	if rejection != nil {
		return ""
	}
	text := fmt.Sprintf("%s from %s", env.Kind, printable(env.From))
	if env.To != "" {
		text += " to " + printable(env.To)
	}
	for _, mentioned := range env.Mentions {
		text += ", mentioning " + printable(mentioned)
	}
	switch env.Surface {
	case core.SurfaceThread:
		text += ", in thread " + printable(env.ThreadID)
	case core.SurfaceDirect:
		text += ", in direct room " + printable(env.DirectID)
	}
	text += fmt.Sprintf(", in channel %s of workspace %s", printable(env.Channel), printable(env.WorkspaceID))
	if env.WorkID != "" {
		text += ", for work " + printable(env.WorkID)
	}
	sent := time.Unix(env.TS, 0)
	text += ", sent " + stamp(&sent)
	if env.HasExpiry {
		expires := time.Unix(env.ExpiresAt, 0)
		text += ", expires " + stamp(&expires)
	}
	return text
}
