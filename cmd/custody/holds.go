package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/holds"
	"github.com/custody-storage/custody/intents"
)

// clustersFile is where the programs look for the configuration of the Ceph clusters.
const clustersFile = "/etc/custody/clusters.yaml"

// rbd says which clusters are meant.
type rbd struct{ config string }

func (c *rbd) flag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.config, "config", clustersFile, "`file` that names the Ceph clusters and who we are in them (docs/rbd.md)")
	_ = cmd.MarkPersistentFlagFilename("config", "yaml", "yml")
}

// with opens the clusters for as long as f runs.
func (c *rbd) with(f func(holds.Client) error) error {
	client, err := holds.Open(c.config)
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client)
}

// newHoldsCommand is "custody holds".
func newHoldsCommand() *cobra.Command {
	var (
		c            = &rbd{}
		f            holds.Filter
		wide, asJSON bool
	)
	cmd := &cobra.Command{
		Use: "holds", Short: "List who holds which RBD volume; explain why one can't be taken",
		Long: "A hold beside each image says which node may write it. This reads holds, fences that are not lifted and heartbeats\n" +
			"from the Ceph clusters, as they are now, and changes nothing.",
		Example: "  custody holds --node node-a\n  custody holds --held --listen 30s\n  custody holds --pool rbd/tenant-a --json\n  custody holds explain rbd/csi-vol-1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(func(client holds.Client) error {
				rows, err := client.List(cmd.Context(), f)
				switch {
				case asJSON:
					return errors.Join(intents.WriteJSON(cmd.OutOrStdout(), append([]holds.Row{}, rows...)), err)
				case len(rows) > 0:
					return errors.Join(holds.WriteTable(cmd.OutOrStdout(), rows, time.Now(), wide), err)
				case err == nil:
					fmt.Fprintln(cmd.ErrOrStderr(), "No such holds.")
				}
				return err
			})
		},
	}
	c.flag(cmd)
	c.filter(cmd, &f)
	cmd.AddCommand(newHoldsExplainCommand(c))
	flags := cmd.Flags()
	flags.StringVar(&f.Node, "node", "", "only what this node holds, or is fenced from")
	flags.StringVar(&f.State, "state", "", "only holds in this state: "+strings.Join(holds.States, ", ")+"; none lists images without a hold")
	flags.BoolVar(&f.Held, "held", false, "not those that nobody holds and nobody is fenced from")
	flags.DurationVar(&f.Listen, "listen", 0, "listen to the heartbeats for so long, and say whether they move")
	flags.BoolVar(&wide, "wide", false, "image id, machine, boot and fencer too")
	flags.BoolVar(&asJSON, "json", false, "one JSON array")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(holds.States, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("node", c.complete(func(r holds.Row) string { return r.Node }))
	return cmd
}

// filter adds the flags that say where to look.
func (c *rbd) filter(cmd *cobra.Command, f *holds.Filter) {
	cmd.Flags().StringVar(&f.Cluster, "cluster", "", "only this cluster of the configuration")
	cmd.Flags().StringVar(&f.Pool, "pool", "", "only this pool, as POOL or POOL/NAMESPACE")
	_ = cmd.RegisterFlagCompletionFunc("cluster", c.complete(func(r holds.Row) string { return r.Cluster }))
	_ = cmd.RegisterFlagCompletionFunc("pool", c.complete(func(r holds.Row) string { return r.Pool }))
}

// complete offers what the holds have.
func (c *rbd) complete(what func(holds.Row) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		err := c.with(func(client holds.Client) error {
			rows, _ := client.List(cmd.Context(), holds.Filter{}) // what was read is better than nothing
			for _, r := range rows {
				if s := what(r); s != "" && strings.HasPrefix(s, typed) {
					found = append(found, s)
				}
			}
			return nil
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

// volume completes the first argument.
func (c *rbd) volume(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.complete(func(r holds.Row) string { return r.Image })(cmd, args, typed)
}

func newHoldsExplainCommand(c *rbd) *cobra.Command {
	var (
		f      holds.Filter
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "explain VOLUME", Short: "Say who holds a volume, why it can't be taken and what to do",
		Long: "VOLUME is an image: NAME, POOL/NAME, POOL/NAMESPACE/NAME, any of the last two with CLUSTER: before it, the\n" +
			"image's id, or a PersistentVolume's name or volume handle.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.volume,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(func(client holds.Client) error {
				row, err := client.Find(cmd.Context(), args[0], f)
				if err != nil {
					return err
				}
				e := row.Explain(time.Now())
				if asJSON {
					return intents.WriteJSON(cmd.OutOrStdout(), e)
				}
				return e.WriteText(cmd.OutOrStdout())
			})
		},
	}
	c.filter(cmd, &f)
	cmd.Flags().DurationVar(&f.Listen, "listen", 0, "listen to the owner's heartbeat for so long, and say whether it moves")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// within gives up on what lasts too long.
func within(cmd *cobra.Command, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(cmd.Context(), limit, fmt.Errorf("not done within %s (--timeout)", limit))
}

// newFenceCommand is "custody fence".
func newFenceCommand() *cobra.Command {
	var (
		c           = &rbd{}
		f           holds.Filter
		yes, asJSON bool
		limit       time.Duration
	)
	cmd := &cobra.Command{
		Use: "fence {VOLUME | --node NODE}", Short: "Fence whoever holds a volume, so that another node can have it",
		Long: "Makes Ceph refuse every further request of the one client that the hold names, for years, and lets go of the hold.\n" +
			"What runs on the volume there gets I/O errors; other volumes of that node go on. Nothing that was acknowledged is lost.\n" +
			"The node lifts the fence by itself when it has unmapped the device, or has booted again.",
		Example:           "  custody fence rbd/csi-vol-1\n  custody fence --node node-a --yes --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.volume,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (f.Node != "") {
				return errors.New("say what is to be fenced: VOLUME, or --node NODE")
			}
			return c.with(func(client holds.Client) error {
				ctx, done := within(cmd, limit)
				defer done()
				rows, err := toFence(ctx, client, args, f)
				if err != nil {
					return err
				}
				errOut := cmd.ErrOrStderr()
				for _, r := range rows {
					fmt.Fprintf(errOut, "%s: node %s will be shut out (%s, client %s)\n", r.Spec(), r.Node, r.State, cmp.Or(r.Instance, "none yet"))
				}
				if !yes {
					if err := confirm(cmd.Context(), cmd.InOrStdin(), errOut, "fence"); err != nil {
						return err
					}
				}
				return fenceAll(ctx, cmd, client, rows, asJSON)
			})
		},
	}
	c.flag(cmd)
	c.filter(cmd, &f)
	flags := cmd.Flags()
	flags.StringVar(&f.Node, "node", "", "all that this node holds, by the name that its holds have")
	flags.BoolVarP(&yes, "yes", "y", false, "don't ask")
	flags.BoolVar(&asJSON, "json", false, "one JSON array, with a line for each volume")
	flags.DurationVar(&limit, "timeout", 2*time.Minute, "give up after so long; what was begun is carried on by whoever wants the volume next")
	_ = cmd.RegisterFlagCompletionFunc("node", c.complete(func(r holds.Row) string { return r.Node }))
	return cmd
}

// toFence gives what is held of what was asked for.
func toFence(ctx context.Context, client holds.Client, args []string, f holds.Filter) ([]holds.Row, error) {
	if len(args) == 1 {
		row, err := client.Find(ctx, args[0], f)
		if err != nil {
			return nil, err
		}
		if row.Node == "" {
			return nil, fmt.Errorf("%s is %s: nobody holds it, so there is nobody to fence", row.Spec(), row.State)
		}
		return []holds.Row{row}, nil
	}
	rows, err := client.List(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("not all holds could be read, and nobody was fenced (--cluster and --pool leave out what does not answer): %w", err)
	}
	rows = slices.DeleteFunc(rows, func(r holds.Row) bool { return r.Node != f.Node })
	if len(rows) == 0 {
		return nil, fmt.Errorf("node %q holds nothing, so there is nobody to fence", f.Node)
	}
	return rows, nil
}

func fenceAll(ctx context.Context, cmd *cobra.Command, client holds.Client, rows []holds.Row, asJSON bool) error {
	all, errs := []holds.Fenced{}, []error{}
	for _, r := range rows {
		done, err := client.Fence(ctx, r)
		switch {
		case err != nil:
			done.Error = err.Error()
			errs = append(errs, err)
		case asJSON:
		case done.Instance == "":
			fmt.Fprintf(cmd.OutOrStdout(), "%s: taken from node %s, which had not mapped it; nobody holds it now\n", done.Volume, done.Node)
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%s: client %s of node %s is fenced as of osdmap epoch %d; nobody holds it now\n", done.Volume, done.Instance, done.Node, done.Barrier)
		}
		all = append(all, done)
	}
	if asJSON {
		errs = append(errs, intents.WriteJSON(cmd.OutOrStdout(), all))
	}
	return errors.Join(errs...)
}
