package mapper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	// DefaultTimeout is the deadline of one step in the kernel.
	DefaultTimeout = 30 * time.Second
	// formatWithin is how long a mkfs may take; it discards nothing.
	formatWithin = 5 * time.Minute
)

// run runs a program and gives its standard output. It returns at the deadline even if the program can't be killed,
// since the kernel holds on to it.
func run(ctx context.Context, within time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := bounded(ctx, cmd.Run)
	if errors.Is(err, errGivenUp) { // it may still write to the buffers
		return "", fmt.Errorf("run %s %s: %w", name, strings.Join(args, " "), err)
	}
	if err != nil {
		return out.String(), fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), errors.Join(err, context.Cause(ctx)), strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

var errGivenUp = errors.New("it has not come back by its deadline and may still be done")

// bounded returns when f does, or shortly after ctx ends. Then f goes on.
func bounded(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // a program that was killed comes back at once
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return fmt.Errorf("%w (%w)", errGivenUp, context.Cause(ctx))
	}
}
