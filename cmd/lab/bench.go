package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cmd/lab/bench"
	"github.com/custody-storage/custody/cmd/lab/show"
)

func newBenchCommand(progress *show.Progress) *cobra.Command {
	o := bench.Options{Progress: progress}
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure claims against the API server's own ceiling",
		Long: "Measures how many claims a second become ready and go, against a driver that does nothing, and what the API server\n" +
			"takes of the same writes with nothing between them. Prints tables, and last one line of JSON. Nothing else should run\n" +
			"on the machine meanwhile.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Claims < 1 {
				return fmt.Errorf("--claims is %d; give at least 1", o.Claims)
			}
			if o.Lab, err = os.Executable(); err != nil {
				return err
			}
			figures, err := bench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return figures.Write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&o.Claims, "claims", 1000, "how many claims to make")
	cmd.Flags().StringVar(&o.Profiles, "profiles", "", "`folder` for profiles of controller, sidecar and API server, taken while claims become ready")
	return cmd
}

// newNullDriverCommand is the driver of the bench, in a process of its own.
func newNullDriverCommand() *cobra.Command {
	var endpoint string
	cmd := &cobra.Command{
		Use: "null-driver", Short: "The driver of the bench, which does nothing", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return bench.Driver(cmd.Context(), endpoint) },
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "where to listen, unix:///path")
	return cmd
}
