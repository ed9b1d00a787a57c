// Command tool runs a program of the toolbox, which it builds first if need be:
//
//	go run ./hack/tool controller-gen object paths=./api/...
//
// The program replaces this one and sees the same working folder, standard
// streams and environment. With -path it prints where programs are, for scripts
// that hand them on or want them built before something starts:
//
//	protoc --plugin=$(go run ./hack/tool -path protoc-gen-go) ...
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/custody-storage/custody/embedded/toolbox"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	onlyPaths := len(args) > 0 && args[0] == "-path"
	if onlyPaths {
		args = args[1:]
	}
	if len(args) == 0 {
		return fmt.Errorf("usage: tool NAME [ARGUMENT...], or tool -path NAME...; the names are\n%s", toolbox.List())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	box, err := toolbox.Open(os.Stderr)
	if err != nil {
		return err
	}
	if onlyPaths {
		for _, name := range args {
			path, err := box.Path(ctx, name)
			if err != nil {
				return err
			}
			fmt.Println(path)
		}
		return nil
	}
	path, err := box.Path(ctx, args[0])
	if err != nil {
		return err
	}
	stop()
	if err := syscall.Exec(path, args, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
