// Command ceph installs what the Ceph parts need to be built and tested: Debian's packages, as root, where they lack.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/custody-storage/custody/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := embedded.InstallCeph(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ceph:", err)
		os.Exit(1)
	}
}
