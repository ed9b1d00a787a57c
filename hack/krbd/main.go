// Command krbd gets what the tests in QEMU guests need: QEMU and busybox, Debian's packages, as root, where they lack;
// and Debian's kernel, into the cache folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/custody-storage/custody/embedded/guest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := guest.Prepare(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "krbd:", err)
		os.Exit(1)
	}
}
