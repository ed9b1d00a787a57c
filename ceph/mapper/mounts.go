package mapper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one line of /proc/self/mountinfo (proc(5)).
type mount struct {
	number string // major:minor of the file system's device
	root   string // what of that file system is mounted
	point  string
	fs     string
	source string
}

const mountInfo = "/proc/self/mountinfo"

// mounts gives what is mounted for this process, in the kernel's order: what is mounted over something comes after it.
func mounts() ([]mount, error) {
	text, err := os.ReadFile(mountInfo)
	if err != nil {
		return nil, fmt.Errorf("read what is mounted: %w", err)
	}
	return parseMounts(string(text))
}

func parseMounts(text string) ([]mount, error) {
	all := []mount{}
	for line := range strings.Lines(text) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		head, tail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		h, t := strings.Split(head, " "), strings.Split(tail, " ")
		if !ok || len(h) < 6 || len(t) < 3 {
			return nil, fmt.Errorf("%s has a line of another form: %q", mountInfo, line)
		}
		all = append(all, mount{number: h[2], root: unescape(h[3]), point: unescape(h[4]), fs: t[0], source: unescape(t[1])})
	}
	return all, nil
}

// unescape reads \040 and the like, by which the kernel writes spaces and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// of gives the points where a block device is used: its file system is mounted, or the device itself is bound.
func of(all []mount, device string) ([]string, error) {
	number, err := deviceNumber(device)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	points := []string{}
	for _, m := range all {
		if m.number == number {
			points = append(points, m.point)
			continue
		}
		if filepath.Base(m.root) != filepath.Base(device) {
			continue
		}
		if bound, err := deviceNumber(m.point); err == nil && bound == number {
			points = append(points, m.point)
		}
	}
	return points, nil
}

// deviceNumber gives a block device's major:minor.
func deviceNumber(path string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if s.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", fmt.Errorf("%s is not a block device", path)
	}
	return fmt.Sprintf("%d:%d", unix.Major(s.Rdev), unix.Minor(s.Rdev)), nil
}

// unmountAll undoes mounts, the last first.
func unmountAll(ctx context.Context, points []string) error {
	for _, point := range slices.Backward(points) {
		if err := unmount(ctx, point); err != nil {
			return err
		}
	}
	return nil
}

func unmount(ctx context.Context, point string) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	err := bounded(ctx, func() error { return unix.Unmount(point, unix.UMOUNT_NOFOLLOW) })
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // no mount any more
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmount %s: %w: some process still uses it", point, err)
	case err != nil:
		return fmt.Errorf("unmount %s: %w", point, err)
	}
	return nil
}
