// Command sync copies into the chart what is made elsewhere. "go generate ./charts" runs it
// in the folder charts.
package main

import (
	"fmt"
	"os"

	"github.com/custody-storage/custody/charts"
)

func main() {
	if err := charts.Sync(".."); err != nil {
		fmt.Fprintln(os.Stderr, "sync:", err)
		os.Exit(1)
	}
}
