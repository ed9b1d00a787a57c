package mapper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// loops gives the loop devices by the file behind each, without a request to that file's server.
func loops() (map[string]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what a loop device has: %w", err)
		}
		found[strings.TrimSpace(string(text))] = "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(f)))
	}
	return found, nil
}

// attach makes a loop device of a file.
func attach(ctx context.Context, file string, readOnly bool) (string, error) {
	args := []string{"--find", "--show", file}
	if readOnly {
		args = append([]string{"--read-only"}, args...)
	}
	out, err := run(ctx, DefaultTimeout, "losetup", args...)
	return strings.TrimSpace(out), err
}

// detach ends a loop device, and fails if it is still there because somebody has it open.
func detach(ctx context.Context, device, file string) error {
	if _, err := run(ctx, DefaultTimeout, "losetup", "--detach", device); err != nil {
		return err
	}
	// The kernel answers success and keeps a device that is in use until its last user is gone.
	for end := time.Now().Add(2 * time.Second); ; {
		found, err := loops()
		if err != nil {
			return err
		}
		if found[file] != device {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is still in use and goes with its last user", device)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
