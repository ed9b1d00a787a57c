//go:build ceph

// Command bench measures take-overs of volumes in use on a one-node Ceph cluster that it starts.
//
//	make bench-takeover
//	make bench-takeover ARGS=--footprint
//
// Progress goes to standard error, results to standard output; the last line is JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/test/takeover"
)

func main() {
	takeover.RunIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-takeover:", err)
		os.Exit(1)
	}
}

type options struct {
	runs, plain     int
	fs              string
	footprint, json bool
	progress        *show.Progress
}

func command() *cobra.Command {
	o := options{progress: show.To(os.Stderr)}
	cmd := &cobra.Command{
		Use: "bench-takeover", Short: "Measure how fast a volume in use is taken over",
		Long: "Starts a one-node Ceph cluster with Ceph's own time-outs, and machines as processes in network namespaces. Measures,\n" +
			"from the second machine's stage request to its first acknowledged write, take-overs of a volume on which the first\n" +
			"one writes without pause: alive, killed and paused; beside it plain RBD, which waits until the dead owner's watch has\n" +
			"lapsed (30 s); and what the hold adds to a stage that nobody contests. The time until a node is judged lost\n" +
			"(--silence of the node plugin) is in none of these figures. Needs root. Nothing else should run meanwhile.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.runs < 1 || o.plain < 1:
				return fmt.Errorf("--runs is %d and --plain-runs %d; give at least 1", o.runs, o.plain)
			case o.fs != "" && o.fs != "ext4" && o.fs != "xfs":
				return fmt.Errorf("--fs is %q; give ext4, xfs or \"\" for the device itself", o.fs)
			}
			return o.run(cmd)
		},
	}
	cmd.Flags().IntVar(&o.runs, "runs", 30, "take-overs for each: owner alive, killed, paused; and stages that nobody contests")
	cmd.Flags().IntVar(&o.plain, "plain-runs", 3, "take-overs by plain RBD, about 30 s, all at once")
	cmd.Flags().StringVar(&o.fs, "fs", "ext4", "file `system` on the volume, ext4 or xfs; \"\" for the device itself")
	cmd.Flags().BoolVar(&o.footprint, "footprint", false, "measure instead connections and memory of 1, 10 and 50 images that are open")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the line of JSON only")
	return cmd
}

// run starts the cluster, measures and writes what came of it.
func (o options) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	network, err := takeover.OpenNetwork()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	work := o.progress.Begin("Ceph")
	cluster, err := embedded.StartCeph(ctx, embedded.CephOptions{IP: network.IP(), Progress: o.progress.Out()})
	if work.End(err) != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fleet, err := takeover.NewFleet(ctx, cluster, network)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	if o.footprint {
		return o.measureFootprint(ctx, fleet, cmd.OutOrStdout())
	}
	f, err := o.measure(ctx, fleet)
	if err != nil {
		return err
	}
	return f.write(cmd.OutOrStdout(), o.json)
}
