package main

import (
	"flag"
	"os"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/manager"
)

// newDriverCommand is "custody cosi driver", with a command for each driver.
func newDriverCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "driver", Short: "COSI drivers", Args: cobra.NoArgs}
	cmd.AddCommand(newS3DriverCommand())
	return cmd
}

func newS3DriverCommand() *cobra.Command {
	var o s3.Options
	log := manager.Defaults()
	cmd := &cobra.Command{
		Use:   "s3",
		Short: "COSI driver for an S3 server with accounts (versitygw)",
		Long: "Serves COSI on a unix socket and makes buckets, accounts and policies in an S3 server. It needs no Kubernetes.\n\n" +
			"The keys of the S3 server come from " + s3.EnvAccessKey + " and " + s3.EnvSecretKey + ", or from the files that\n" +
			s3.EnvAccessKey + "_FILE and " + s3.EnvSecretKey + "_FILE name; " + s3.EnvSeed + " (or _FILE), if set, is what the keys of\n" +
			"accounts are derived from.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Log, err = log.Logger(os.Stderr); err != nil {
				return err
			}
			if err := o.LoadKeys(os.Getenv); err != nil {
				return err
			}
			return s3.Run(cmd.Context(), o)
		},
	}
	flags := flag.NewFlagSet("s3", flag.ContinueOnError)
	o.Bind(flags)
	cmd.Flags().AddGoFlagSet(flags)
	cmd.Flags().StringVar(&log.LogLevel, "log-level", log.LogLevel, "debug, info, warn or error")
	cmd.Flags().StringVar(&log.LogFormat, "log-format", log.LogFormat, "text or json")
	return cmd
}
