package main

import (
	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/embedded/toolbox"
)

// newToolsCommand builds what the tests start. Without it the first test that needs
// a server builds it, in silence, because "go test" shows nothing of a package that
// still runs.
func newToolsCommand(progress *show.Progress) *cobra.Command {
	return &cobra.Command{
		Use: "tools", Short: "Build beforehand what the tests start, showing progress", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			box, err := toolbox.Open(progress.Out())
			if err != nil {
				return err
			}
			if _, err := box.Kube(cmd.Context()); err != nil {
				return err
			}
			for _, name := range []string{"versitygw", "charttemplate"} {
				if _, err := box.Path(cmd.Context(), name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
