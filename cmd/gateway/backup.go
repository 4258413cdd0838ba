package main

import (
	"fmt"

	"github.com/compozy-gateway/gateway/store"
	"github.com/spf13/cobra"
)

func (p *process) backupCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database, while the gateway runs or while it does not",
		Long: `Write a consistent copy of the database in data_dir to FILE, which must not exist
yet. The gateway may go on running. Copying the files by other means loses what
stands in the write-ahead log.`,
		Example: "  gateway backup /backups/gateway-monday.db\n  gateway backup --data-dir /var/lib/gateway monday.db",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.load()
			if err != nil {
				return err
			}
			if err := store.Backup(cmd.Context(), c.DataDir, args[0]); err != nil {
				return err
			}
			if out.json() {
				return printJSON(p.stdout, fileReport{File: args[0]})
			}
			_, err = fmt.Fprintf(p.stdout, "wrote %s\n", args[0])
			return err
		},
	}
	out.addFlag(cmd, "text")
	return cmd
}

// fileReport is what a program is told of a file that was written.
type fileReport struct {
	File string `json:"file"`
}
