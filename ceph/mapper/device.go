package mapper

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/custody-storage/custody/exclusive"
)

// Target is where a workload is to find the volume.
type Target struct {
	Path    string   // mount point; for a block device the file that it is bound to
	Block   bool     // the device itself, and no file system
	FSType  string   // ext4 or xfs
	Options []string // further mount options
}

// Device is a volume on this node. It implements [exclusive.Device] over a mapper; Target is needed to Format and to
// Expose only.
type Device struct {
	Mapper Mapper
	Volume string
	Target Target
}

// Find implements [exclusive.Device].
func (d *Device) Find(ctx context.Context, volume string, i exclusive.Instance) (exclusive.Mapping, error) {
	return d.first(ctx, volume, func(m exclusive.Mapping) bool { return m.Instance == i })
}

// Other implements [exclusive.Device].
func (d *Device) Other(ctx context.Context, volume string, than exclusive.Instance) (exclusive.Mapping, error) {
	return d.first(ctx, volume, func(m exclusive.Mapping) bool { return m.Instance != than })
}

func (d *Device) first(ctx context.Context, volume string, wanted func(exclusive.Mapping) bool) (exclusive.Mapping, error) {
	all, err := d.Mapper.List(ctx, volume)
	if err != nil {
		return exclusive.Mapping{}, fmt.Errorf("look for devices of %s: %w", volume, err)
	}
	if n := slices.IndexFunc(all, wanted); n >= 0 {
		return all[n], nil
	}
	return exclusive.Mapping{}, nil
}

// Map implements [exclusive.Device].
func (d *Device) Map(ctx context.Context, volume string) (exclusive.Mapping, error) {
	m, err := d.Mapper.Map(ctx, volume)
	if err != nil {
		return exclusive.Mapping{}, fmt.Errorf("map %s: %w", volume, err)
	}
	return m, nil
}

// Unmap implements [exclusive.Device].
func (d *Device) Unmap(ctx context.Context, m exclusive.Mapping) error {
	if err := d.Mapper.Unmap(ctx, m); err != nil {
		return fmt.Errorf("unmap %s (%s, client %s): %w", m.Device, m.Volume, m.Instance, err)
	}
	return nil
}

// Reach implements [exclusive.Device].
func (d *Device) Reach(ctx context.Context, m exclusive.Mapping, barrier uint64) error {
	if barrier == 0 {
		return nil // nobody was ever fenced from this volume
	}
	if err := d.Mapper.Reach(ctx, m, barrier); err != nil {
		return fmt.Errorf("wait until client %s of %s has seen osdmap epoch %d: %w", m.Instance, m.Device, barrier, err)
	}
	return nil
}

// Format implements [exclusive.Device]. It does not ask what is on the device: that the hold says blank is all that
// counts (an empty answer of blkid has cost data, ceph-csi#1820).
func (d *Device) Format(ctx context.Context, m exclusive.Mapping) error {
	args, ok := map[string][]string{
		// Nothing is discarded: the image is new and takes no space yet.
		"ext4": {"mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"},
		"xfs":  {"mkfs.xfs", "-q", "-f", "-K"},
	}[d.Target.FSType]
	if !ok {
		return fmt.Errorf("format %s: no file system %q, only ext4 and xfs", m.Device, d.Target.FSType)
	}
	return d.through(ctx, m, func() error {
		_, err := run(ctx, formatWithin, args[0], append(args[1:], m.Device)...)
		return err
	})
}

// Expose implements [exclusive.Device].
func (d *Device) Expose(ctx context.Context, m exclusive.Mapping) error {
	t := d.Target
	return d.through(ctx, m, func() error {
		all, err := mounts()
		if err != nil {
			return err
		}
		points, err := of(all, m.Device)
		if err != nil {
			return err
		}
		if slices.Contains(points, t.Path) {
			return nil
		}
		if n := slices.IndexFunc(all, func(m mount) bool { return m.point == t.Path }); n >= 0 {
			return fmt.Errorf("expose %s at %s: %s is mounted there", m.Device, t.Path, all[n].source)
		}
		if t.Block {
			return d.bind(ctx, m)
		}
		if err := os.MkdirAll(t.Path, 0o750); err != nil {
			return fmt.Errorf("expose %s: %w", m.Device, err)
		}
		options := t.Options
		if t.FSType == "xfs" && !slices.Contains(options, "nouuid") {
			options = append(slices.Clone(options), "nouuid") // a clone has its source's UUID
		}
		args := []string{"-t", t.FSType}
		if len(options) > 0 {
			args = append(args, "-o", strings.Join(options, ","))
		}
		_, err = run(ctx, DefaultTimeout, "mount", append(args, m.Device, t.Path)...)
		return err
	})
}

// bind puts the device itself at the target.
func (d *Device) bind(ctx context.Context, m exclusive.Mapping) error {
	if err := d.point(d.Target.Path); err != nil {
		return fmt.Errorf("expose %s: %w", m.Device, err)
	}
	_, err := run(ctx, DefaultTimeout, "mount", "--bind", m.Device, d.Target.Path)
	return err
}

// Withdraw implements [exclusive.Device]: staged, published and bound, of all devices of the volume.
func (d *Device) Withdraw(ctx context.Context, volume string) error {
	devices, err := d.Mapper.List(ctx, volume)
	if err != nil {
		return fmt.Errorf("look for devices of %s: %w", volume, err)
	}
	all, err := mounts()
	if err != nil {
		return err
	}
	for _, m := range devices {
		if !strings.HasPrefix(m.Device, "/dev/") {
			continue // half made: nothing is exposed of it
		}
		points, err := of(all, m.Device)
		if err != nil {
			return fmt.Errorf("look where %s is mounted: %w", m.Device, err)
		}
		if err := unmountAll(ctx, points); err != nil {
			return err
		}
	}
	return nil
}

// Grow makes device and file system as large as the image, in use.
func (d *Device) Grow(ctx context.Context, m exclusive.Mapping) error {
	if err := d.Mapper.Refresh(ctx, m); err != nil {
		return fmt.Errorf("grow %s: %w", m.Device, err)
	}
	if d.Target.Block {
		return nil
	}
	return d.through(ctx, m, func() error {
		var err error
		if d.Target.FSType == "xfs" {
			_, err = run(ctx, formatWithin, "xfs_growfs", d.Target.Path)
		} else {
			_, err = run(ctx, formatWithin, "resize2fs", m.Device)
		}
		return err
	})
}

// through runs f while the device is held open, after its client was compared with m's. A device that is open keeps its
// number, so that what f finds under the name is what was compared.
func (d *Device) through(ctx context.Context, m exclusive.Mapping, f func() error) error {
	var held *os.File
	opening, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	err := bounded(opening, func() (err error) {
		held, err = os.OpenFile(m.Device, os.O_RDONLY, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("use %s: %w", m.Device, err)
	}
	defer held.Close()
	found, err := d.Find(ctx, m.Volume, m.Instance)
	if err != nil {
		return err
	}
	if !same(found, m) {
		return fmt.Errorf("use %s: its client is not %s any more", m.Device, m.Instance)
	}
	return f()
}
