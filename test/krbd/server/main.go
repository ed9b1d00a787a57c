//go:build ceph

// Command server serves an image to the kernel's nbd in a guest, as `custody` does on a node.
package main

import (
	"fmt"
	"os"

	"github.com/custody-storage/custody/ceph/mapper/server"
)

func main() {
	if err := server.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}
