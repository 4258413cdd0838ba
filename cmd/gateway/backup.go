package main

import (
	"fmt"

	"github.com/compozy-gateway/gateway/store"
	"github.com/spf13/cobra"
)

func (p *process) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database, while the gateway runs or while it does not",
		Long: `Write a consistent copy of the database in data_dir to FILE, which must not exist
yet. The gateway may go on running. Copying the files by other means loses what
stands in the write-ahead log.`,
		Example: "  gateway backup /backups/gateway-monday.db\n  gateway backup --data-dir /var/lib/gateway monday.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.load()
			if err != nil {
				return err
			}
			if err := store.Backup(cmd.Context(), c.DataDir, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.stdout, "wrote %s\n", args[0])
			return err
		},
	}
}
