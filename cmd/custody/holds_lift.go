package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/holds"
	"github.com/custody-storage/custody/intents"
)

// lifting is what was asked of "custody unfence".
type lifting struct {
	holds.Lift
	force, yes, asJSON bool
	reason             string
	limit              time.Duration
}

// newUnfenceCommand is "custody unfence".
func newUnfenceCommand() *cobra.Command {
	c, l := &rbd{}, &lifting{}
	cmd := &cobra.Command{
		Use: "unfence {VOLUME | --instance ADDR:PORT/NONCE}", Short: "Lift fences whose client is proved to be gone",
		Long: "Nodes lift the fences of their own clients by themselves. This is for those that can't. A fence is lifted only on\n" +
			"proof: the machine's heartbeat moves in another boot than the one that was fenced. Writes that the old client has\n" +
			"queued land if it is lifted while that client lives. Without proof it takes --force and a written reason, which is\n" +
			"kept in the cluster (custody holds explain shows it).",
		Example:           "  custody unfence rbd/csi-vol-1\n  custody unfence --instance 10.0.0.7:0/271828 --force --reason 'node scrapped, disk shredded, ticket 42'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.volume,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (l.Instance != "") {
				return errors.New("say what is to be lifted: VOLUME, or --instance")
			}
			if l.force != (strings.TrimSpace(l.reason) != "") {
				return errors.New("--force and --reason go together: say what makes sure that the client does not write any more; it is kept")
			}
			if len(args) == 1 {
				l.Volume = args[0]
			}
			return c.with(func(client holds.Client) error {
				ctx, done := within(cmd, l.limit+l.Listen)
				defer done()
				return l.run(ctx, cmd, client)
			})
		},
	}
	c.flag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&l.Cluster, "cluster", "", "only in this cluster of the configuration")
	flags.StringVar(&l.Instance, "instance", "", "the fence of this `client`, as custody holds shows it")
	flags.DurationVar(&l.Listen, "listen", 45*time.Second, "listen to the machine's heartbeat for so long at most")
	flags.BoolVar(&l.force, "force", false, "lift without proof, on the word of --reason")
	flags.StringVar(&l.reason, "reason", "", "`text`: what makes sure that the client does not write any more")
	flags.BoolVarP(&l.yes, "yes", "y", false, "don't ask")
	flags.BoolVar(&l.asJSON, "json", false, "one JSON array, with a line for each fence")
	flags.DurationVar(&l.limit, "timeout", 2*time.Minute, "give up after so long, beside the time of --listen")
	return cmd
}

func (l *lifting) run(ctx context.Context, cmd *cobra.Command, client holds.Client) error {
	all, err := client.Plan(ctx, l.Lift)
	if err != nil {
		return err
	}
	errOut, able := cmd.ErrOrStderr(), 0
	for _, f := range all {
		switch {
		case f.Refused != "":
			fmt.Fprintf(errOut, "%s: not to be lifted: %s\n", f.Instance, f.Refused)
		case f.Proof != "":
			able++
			fmt.Fprintf(errOut, "%s: to be lifted: node %s has booted again since, and its heartbeat moves\n", f.Instance, f.Node)
		case l.force:
			able++
			fmt.Fprintf(errOut, "%s: to be lifted WITHOUT PROOF: %s. What that client still has queued will be written\n", f.Instance, f.Lacks)
		default:
			fmt.Fprintf(errOut, "%s: not to be lifted: %s\n", f.Instance, f.Lacks)
		}
	}
	if able > 0 && !l.yes {
		if err := confirm(ctx, cmd.InOrStdin(), errOut, "unfence"); err != nil {
			return err
		}
	}
	errs := []error{}
	for n := range all {
		f := &all[n]
		if err := client.Lift(ctx, *f, l.reason); err != nil {
			f.Error = err.Error()
			errs = append(errs, err)
			continue
		}
		f.Lifted, f.Standing = true, false
		if !l.asJSON {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: lifted\n", f.Instance)
		}
	}
	if l.asJSON {
		errs = append(errs, intents.WriteJSON(cmd.OutOrStdout(), all))
	}
	return errors.Join(errs...)
}
