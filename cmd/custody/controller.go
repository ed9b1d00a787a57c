package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/custody-storage/custody/cosi/controller"
	"github.com/custody-storage/custody/manager"
)

// newControllerCommand is "custody cosi controller".
func newControllerCommand() *cobra.Command {
	options, o := manager.Defaults(), controller.Defaults()
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "COSI controller: BucketClaims to Buckets, BucketAccesses to sidecars",
		Long: "Gives each BucketClaim its Bucket and prepares each BucketAccess for the sidecar of its driver.\n" +
			"One for the cluster; of several, the one that holds the lease acts. It calls no driver.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			started := time.Now()
			if err := options.Validate(); err != nil {
				return err
			}
			log, err := options.Logger(os.Stderr)
			if err != nil {
				return err
			}
			manager.SetLogger(log)
			config, err := options.Config()
			if err != nil {
				return err
			}
			scheme, err := controller.Scheme()
			if err != nil {
				return err
			}
			program := manager.Program{Lease: controller.Name, Scheme: scheme, Cache: controller.Cache(started)}
			mgr, err := manager.New(config, options, program, log)
			if err != nil {
				return err
			}
			o.Workers, o.Metrics = options.Workers, metrics.Registry
			if err := controller.New(cmd.Context(), mgr, o); err != nil {
				return err
			}
			return mgr.Start(cmd.Context())
		},
	}
	options.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&o.Patience, "patience", o.Patience, "how long a wait that mostly passes by itself is not spoken of in status.error")
	cmd.Flags().DurationVar(&o.Deadline, "reconcile-timeout", o.Deadline, "how long one look at an object may take, all requests to the API server included")
	return cmd
}
