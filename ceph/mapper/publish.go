package mapper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/exclusive"
)

// ErrNotThere says that something is not mounted where it should be.
var ErrNotThere = errors.New("it is not mounted there")

// Exposed tells whether the volume is at the target, through this very device.
func (d *Device) Exposed(_ context.Context, m exclusive.Mapping) error {
	return d.at(m, d.Target.Path)
}

// at fails with ErrNotThere unless what is on top at the path is the device or its file system.
func (d *Device) at(m exclusive.Mapping, path string) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	points, err := of(all, m.Device)
	if err != nil {
		return fmt.Errorf("look where %s is mounted: %w", m.Device, err)
	}
	if !slices.Contains(points, path) {
		return fmt.Errorf("%s at %s: %w", m.Device, path, ErrNotThere)
	}
	return nil
}

// Publish binds what is at the target to a further path, for reading only if so wanted. Idempotent. Nothing is bound if the
// volume is not at the target: that would be a folder of the node's own disk (ceph-csi#4762).
func (d *Device) Publish(ctx context.Context, m exclusive.Mapping, path string, readOnly bool) error {
	return d.through(ctx, m, func() error {
		if err := d.Exposed(ctx, m); err != nil {
			return err
		}
		switch err := d.at(m, path); {
		case err == nil:
			return remount(ctx, path, readOnly)
		case !errors.Is(err, ErrNotThere):
			return err
		}
		if err := d.point(path); err != nil {
			return fmt.Errorf("publish %s: %w", m.Device, err)
		}
		if err := bind(ctx, d.Target.Path, path, 0); err != nil {
			return err
		}
		if err := remount(ctx, path, readOnly); err != nil {
			return errors.Join(err, unmount(ctx, path))
		}
		return nil
	})
}

// point makes what is mounted upon: a folder, or a file for a device.
func (d *Device) point(path string) error {
	if !d.Target.Block {
		return os.MkdirAll(path, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// remount makes one bind mount read-only; the others of that file system stay as they are.
func remount(ctx context.Context, path string, readOnly bool) error {
	if !readOnly {
		return nil
	}
	return bind(ctx, "", path, unix.MS_REMOUNT|unix.MS_RDONLY)
}

func bind(ctx context.Context, from, path string, flags uintptr) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	err := bounded(ctx, func() error { return unix.Mount(from, path, "", unix.MS_BIND|flags, "") })
	if err != nil {
		return fmt.Errorf("bind %s to %s: %w", from, path, err)
	}
	return nil
}

// Unpublish takes away whatever is mounted at a path, and the path. Idempotent; what the folder holds, if it is not empty,
// is nobody's to remove.
func Unpublish(ctx context.Context, path string) error {
	for {
		all, err := mounts()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(m mount) bool { return m.point == path }) {
			break
		}
		if err := unmount(ctx, path); err != nil {
			return err
		}
	}
	if err := gone(os.Remove(path)); err != nil {
		return fmt.Errorf("remove what %s was mounted on: %w", path, err)
	}
	return nil
}

// Used tells whether something of a device is mounted or bound on this node.
func Used(m exclusive.Mapping) (bool, error) {
	all, err := mounts()
	if err != nil {
		return false, err
	}
	points, err := of(all, m.Device)
	return len(points) > 0, err
}
