package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cmd/lab/job"
	"github.com/custody-storage/custody/cmd/lab/show"
)

func newRunCommand(progress *show.Progress) *cobra.Command {
	o := job.Options{Progress: progress}
	cmd := &cobra.Command{
		Use: "run", Short: "Play the main job, with the races on purpose, and compare backend and records",
		Long: "Starts everything, applies examples/, uses the buckets with the credentials from the Secrets, plays the races that\n" +
			"leave buckets behind elsewhere, deletes all, and compares what is in the backend with the records. The last line is\n" +
			"\"orphans=0 doubles=0 stuck=0\", and the exit status 0, if nothing is wrong. Nothing is left running or on the disk.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			report, err := job.Run(cmd.Context(), o)
			if cmd.Context().Err() != nil {
				return err
			}
			if err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "lab:", err)
			}
			fmt.Fprint(cmd.ErrOrStderr(), report.Details())
			if report.Intents != nil { // the comparison was made
				fmt.Fprintf(o.Out, "orphans=%d doubles=%d stuck=%d\n", report.Orphans, report.Doubles, report.Stuck)
			}
			if err != nil || !report.Clean() {
				return quietError{}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave the data and the logs for a look, and say where")
	return cmd
}
