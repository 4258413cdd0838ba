package main

import (
	"io"

	"github.com/compozy-gateway/gateway/cmd/gateway/internal/client"
	"github.com/compozy-gateway/gateway/core"
	"github.com/spf13/cobra"
)

func (p *process) workCommand() *cobra.Command {
	var (
		r         remote
		out       output
		v         viewer
		workspace string
	)
	cmd := &cobra.Command{
		Use:     "work ID",
		Short:   "Show how a unit of work stands",
		Example: "  gateway work w-1 --workspace demo",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := client.Path("workspaces", workspace, "work", args[0])
			err := show(cmd.Context(), &r, path, v.query(), p.stdout, out.json(), printWork)
			return notFound(err, "work "+printable(args[0]), workspace, v.peer)
		},
	}
	r.addFlags(cmd)
	out.addFlag(cmd, "text")
	v.addFlag(cmd)
	cmd.Flags().StringVar(&workspace, "workspace", "", "workspace `ID`")
	requireFlags(cmd, "workspace")
	return cmd
}

func printWork(w io.Writer, work *core.WorkView) error {
	t := newTable("WORK", "STATE", "INITIATOR", "TARGET", "CHANNEL", "CONTAINER", "OPENED SEQ", "UPDATED SEQ", "UPDATED")
	t.add(work.WorkID, string(work.State), work.Initiator, work.Target, work.Channel, work.ContainerID,
		number(work.OpenedSeq), number(work.UpdatedSeq), stamp(&work.UpdatedAt))
	return t.write(w, "")
}
