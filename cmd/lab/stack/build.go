package stack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/custody-storage/custody/cmd/lab/show"
)

// build makes bin/custody of the sources as they are, as "make build" does.
func (s *Stack) build(ctx context.Context, root string) (err error) {
	work := s.options.Progress.Begin("go build -o bin/custody ./cmd/custody")
	defer func() { _ = work.End(err) }()
	s.binary = filepath.Join(root, "bin", "custody")
	// With -v go prints the import path of each package that it compiles.
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-tags", "grpcnotrace", "-o", s.binary, "./cmd/custody")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go removes its temporary files
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	lines, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build bin/custody: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build bin/custody: %w", err)
	}
	said := compileOutput(lines, work)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("build bin/custody: %w\n%s", err, said)
	}
	return nil
}

// compileOutput shows how many packages are compiled, and returns what else is said.
func compileOutput(lines io.Reader, work *show.Work) string {
	var said []string
	packages := 0
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		if line := scan.Text(); strings.Contains(line, " ") || line == "" {
			said = append(said, line)
			continue
		}
		packages++
		work.Note("%d packages so far", packages)
	}
	return strings.Join(said, "\n")
}
