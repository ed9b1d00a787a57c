package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/manager"
)

// newSidecarCommand is "custody cosi sidecar".
func newSidecarCommand() *cobra.Command {
	o := sidecar.Defaults()
	cmd := &cobra.Command{
		Use:   "sidecar",
		Short: "COSI sidecar: Buckets and BucketAccesses to one driver",
		Long: "Brings the Buckets and BucketAccesses of one COSI driver to it, and what was made in its backend to an end.\n" +
			"One beside each driver; of several, the one that holds the driver's lease acts.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := o.Logger(os.Stderr)
			if err != nil {
				return err
			}
			manager.SetLogger(log)
			return sidecar.Run(cmd.Context(), o, log)
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}
