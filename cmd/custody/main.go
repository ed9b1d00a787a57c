// Command custody is all that Custody ships: one subcommand for each program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal ends the program in order, the second at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "custody:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "custody",
		Short:         "Every bucket and volume has exactly one owner",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newCOSICommand(), newIntentsCommand(), newHoldsCommand(), newFenceCommand(), newUnfenceCommand(), newExploreCommand())
	return root
}

// newCOSICommand is "custody cosi".
func newCOSICommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cosi", Short: "Object storage: controller, sidecar and drivers of COSI"}
	cmd.AddCommand(newControllerCommand(), newSidecarCommand(), newDriverCommand())
	return cmd
}

// version is what the Go toolchain has recorded in the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v
}
