// Command lab is the laptop and test side of the project: it runs all of Custody on
// this machine, plays its main job and measures it. It must be run inside the
// repository, from whose sources it builds what it needs.
//
//	make run      bin/lab run      the main job, with the races on purpose
//	make up       bin/lab up       everything, until Ctrl-C
//	make bench    bin/lab bench    measure
//	make test     bin/lab tools    build beforehand what the tests start
//
// Progress goes to standard error, results to standard output.
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
)

// interrupted is the exit status of a program that Ctrl-C has ended, as shells
// count it.
const interrupted = 130

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the program at once; the kernel ends its children then.
	context.AfterFunc(ctx, stop)

	root := &cobra.Command{
		Use: "lab", Short: "Run, try and measure Custody on this machine",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	progress := show.To(os.Stderr)
	root.AddCommand(newRunCommand(progress), newUpCommand(progress), newBenchCommand(progress), newNullDriverCommand(), newToolsCommand(progress))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "lab: stopped:", err)
		return interrupted
	}
	var quiet quietError
	if !errors.As(err, &quiet) {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	return 1
}

// quietError is an error that has been shown already.
type quietError struct{}

func (quietError) Error() string { return "shown above" }
