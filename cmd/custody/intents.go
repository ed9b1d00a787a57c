package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/intents"
	"github.com/custody-storage/custody/manager"
)

// cluster says which cluster is meant.
type cluster struct{ kubeconfig, context string }

func (c cluster) open() (*intents.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (--kubeconfig, --context, $KUBECONFIG): %w", err)
	}
	manager.SetLogger(logr.Discard()) // what went wrong is in the error
	return intents.Open(config)
}

// newIntentsCommand is "custody intents".
func newIntentsCommand() *cobra.Command {
	c := &cluster{}
	cmd := &cobra.Command{
		Use:   "intents",
		Short: "List, explain and resolve the records of what was made in backends",
		Long: "An Intent is the record of one bucket, account, volume or snapshot that a driver was asked for. Most need nobody.\n" +
			"These commands show those that do, say why, and take a decision.",
		Args: cobra.NoArgs,
	}
	cmd.PersistentFlags().StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says where the API server is and who we are (default: $KUBECONFIG, then ~/.kube/config)")
	cmd.PersistentFlags().StringVar(&c.context, "context", "", "`name` of the kubeconfig's context (default: its current one)")
	cmd.AddCommand(newIntentsListCommand(c), newIntentsExplainCommand(c), newIntentsResolveCommand(c))
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = c.kubeconfig
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func newIntentsListCommand(c *cluster) *cobra.Command {
	var (
		f      intents.Filter
		output string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List intents, those that want a person first",
		Example: "  custody intents list --stuck\n  custody intents list --driver s3.custody.dev --phase deleting -o wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "wide" && output != "json" {
				return fmt.Errorf("-o is %q; it is wide or json", output)
			}
			client, err := c.open()
			if err != nil {
				return err
			}
			rows, err := client.List(cmd.Context(), f)
			switch {
			case err != nil:
				return err
			case asJSON || output == "json":
				return intents.WriteJSON(cmd.OutOrStdout(), rows)
			case len(rows) == 0:
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "No such intents.")
				return err
			}
			return intents.WriteTable(cmd.OutOrStdout(), rows, time.Now(), output == "wide")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Driver, "driver", "", "only those of this driver")
	flags.StringVar(&f.Phase, "phase", "", "only those in this phase: "+strings.Join(intents.Phases, ", "))
	flags.StringVar(&f.Kind, "kind", "", "only those of this kind: "+strings.Join(intents.Kinds, ", "))
	flags.BoolVar(&f.Stuck, "stuck", false, "only those that wait for a person, or have not come to rest for too long")
	flags.BoolVar(&f.Doubt, "doubt", false, "only those of which a create was never heard of")
	flags.StringVarP(&output, "output", "o", "", "wide or json")
	flags.BoolVar(&asJSON, "json", false, "the same as -o json")
	for flag, values := range map[string][]string{"phase": intents.Phases, "kind": intents.Kinds, "output": {"wide", "json"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("driver", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		client, err := c.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rows, err := client.List(cmd.Context(), intents.Filter{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var drivers []string
		for _, r := range rows {
			if strings.HasPrefix(r.Driver, typed) {
				drivers = append(drivers, r.Driver)
			}
		}
		slices.Sort(drivers)
		return slices.Compact(drivers), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func newIntentsExplainCommand(c *cluster) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Say what happened, what is waited for and what to do",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.open()
			if err != nil {
				return err
			}
			e, err := client.Explain(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case asJSON:
				return intents.WriteJSON(cmd.OutOrStdout(), e)
			}
			return e.WriteText(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newIntentsResolveCommand(c *cluster) *cobra.Command {
	var (
		remove, release, retry, yes, asJSON bool
		reason                              string
	)
	cmd := &cobra.Command{
		Use: "resolve NAME {--delete | --release | --retry} --reason TEXT", Short: "Decide about an intent that can't go on by itself",
		Long: "Writes a decision into an Intent; the driver's sidecar acts on it. A decision that makes no sense is refused, with the\n" +
			"reason. What it will do is shown first, and asked about on a terminal.\n\n" +
			"  --delete   it is ours, and it shall go: delete it in the backend\n" +
			"  --release  I have looked: what is left in the backend is not Custody's business; forget it\n" +
			"  --retry    I have looked: nothing was made; create it without a look",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return errors.New("--reason is empty: say what you have looked at and what you saw; it is kept with the record")
			}
			word := v1alpha1.WordRetry
			switch {
			case remove:
				word = v1alpha1.WordDelete
			case release:
				word = v1alpha1.WordRelease
			}
			client, err := c.open()
			if err != nil {
				return err
			}
			plan, err := client.Plan(cmd.Context(), args[0], word)
			if err != nil {
				return err
			}
			errOut := cmd.ErrOrStderr()
			fmt.Fprintf(errOut, "%s: %s\n", plan.Name, plan.Does)
			for _, w := range plan.Warns {
				fmt.Fprintln(errOut, "Note:", w+".")
			}
			if !yes {
				if err := confirm(cmd.Context(), cmd.InOrStdin(), errOut, string(plan.Word)); err != nil {
					return err
				}
			}
			done, err := plan.Do(cmd.Context(), reason)
			if !done {
				return err
			}
			if err != nil {
				fmt.Fprintf(errOut, "Note: it is decided, but %v\n", err)
			}
			if asJSON {
				return intents.WriteJSON(cmd.OutOrStdout(), plan)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "intent %s: decided %s; see what becomes of it with \"custody intents explain %s\"\n", plan.Name, plan.Word, plan.Name)
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&remove, "delete", false, "delete it in the backend")
	flags.BoolVar(&release, "release", false, "forget it; what is in the backend stays there")
	flags.BoolVar(&retry, "retry", false, "create it without a look")
	flags.StringVar(&reason, "reason", "", "`text`: what you have looked at, and what you saw; kept with the record and in an event")
	flags.BoolVarP(&yes, "yes", "y", false, "don't ask")
	flags.BoolVar(&asJSON, "json", false, "as JSON")
	cmd.MarkFlagsMutuallyExclusive("delete", "release", "retry")
	cmd.MarkFlagsOneRequired("delete", "release", "retry")
	_ = cmd.MarkFlagRequired("reason")
	return cmd
}

// confirm asks on a terminal. Where there is none it refuses, so that no script decides by
// accident.
func confirm(ctx context.Context, in io.Reader, out io.Writer, word string) error {
	terminal := false
	if file, ok := in.(*os.File); ok {
		stat, err := file.Stat()
		terminal = err == nil && stat.Mode()&os.ModeCharDevice != 0
	}
	if !terminal {
		return errors.New("nothing was decided: there is no terminal to ask on; give --yes if you mean it")
	}
	fmt.Fprintf(out, "Type the word %s to go on: ", strings.ToLower(word))
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // nothing typed is a no
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
	case line := <-typed:
		if strings.EqualFold(line, word) {
			return nil
		}
	}
	return errors.New("nothing was decided")
}

// complete lists names of Intents for the shell.
func (c *cluster) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := c.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := client.Names(cmd.Context(), typed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
