package mapper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/custody-storage/custody/exclusive"
)

// What the file system of a server is.
const (
	FuseType = "custody-rbd" // fuse.custody-rbd
	FuseFile = "image"       // the one file in it

	fuseSource = "custody-rbd:"
)

// Source is how a server's mount names its volume and its client; the kernel keeps it as long as the mount.
func (o Order) Source(i exclusive.Instance) string { return fuseSource + o.Volume + "@" + string(i) }

// Fuse maps by a FUSE file system with the image as its one file, and a loop device of that.
type Fuse struct{ Servers }

// served is a mount of a server, as the kernel has it.
type served struct {
	exclusive.Mapping // by its mount point if there is no loop device
	dir               string
}

func mappings(all []served) []exclusive.Mapping {
	found := []exclusive.Mapping{}
	for _, s := range all {
		found = append(found, s.Mapping)
	}
	return found
}

func (s served) point() string { return filepath.Join(s.dir, pointName) }

func (f *Fuse) all() ([]served, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	behind, err := loops()
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(f.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := []served{}
	for _, m := range all {
		volume, instance, ok := strings.Cut(strings.TrimPrefix(m.source, fuseSource), "@")
		if m.fs != "fuse."+FuseType || !ok || filepath.Dir(filepath.Dir(m.point)) != root {
			continue
		}
		s := served{exclusive.Mapping{Device: m.point, Volume: volume, Instance: exclusive.Instance(instance)}, filepath.Dir(m.point)}
		if device := behind[filepath.Join(m.point, FuseFile)]; device != "" {
			s.Device = device
		}
		found = append(found, s)
	}
	return found, nil
}

// List implements [Mapper]. A server without a loop device is listed by its mount point.
func (f *Fuse) List(_ context.Context, volume string) ([]exclusive.Mapping, error) {
	all, err := f.all()
	if err != nil {
		return nil, err
	}
	found := []exclusive.Mapping{}
	for _, s := range all {
		if s.Volume == volume {
			found = append(found, s.Mapping)
		}
	}
	return found, nil
}

// All implements [Mapper].
func (f *Fuse) All(context.Context) ([]exclusive.Mapping, error) {
	all, err := f.all()
	return mappings(all), err
}

// find gives the server that has this client.
func (f *Fuse) find(m exclusive.Mapping) (served, bool, error) {
	all, err := f.all()
	for _, s := range all {
		if s.Volume == m.Volume && s.Instance == m.Instance {
			return s, true, nil
		}
	}
	return served{}, false, err
}

// Map implements [Mapper].
func (f *Fuse) Map(ctx context.Context, volume string) (m exclusive.Mapping, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.within())
	defer cancel()
	server, err := f.start(ctx, ServeFuse, volume)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	point := filepath.Join(server.dir, pointName)
	m = exclusive.Mapping{Device: point, Volume: volume, Instance: server.Instance}
	device, err := attach(ctx, filepath.Join(point, FuseFile), f.ReadOnly)
	server.release(err == nil)
	if err != nil {
		return exclusive.Mapping{}, errors.Join(err, f.Unmap(context.WithoutCancel(ctx), m))
	}
	m.Device = device
	return m, nil
}

// Reach implements [Mapper]: the server asks for the latest map on the image's own connection.
func (f *Fuse) Reach(ctx context.Context, m exclusive.Mapping, epoch uint64) error {
	s, ok, err := f.find(m)
	if err != nil {
		return err
	}
	if !ok {
		return errNoDevice
	}
	return f.question(ctx, s.dir, m.Instance, Question{"reach", epoch})
}

var errNoDevice = errors.New("there is no such device any more")

// Unmap implements [Mapper]: the loop device, then the mount, then the server.
func (f *Fuse) Unmap(ctx context.Context, m exclusive.Mapping) error {
	s, ok, err := f.find(m)
	if err != nil || !ok {
		return err
	}
	if s.Device != s.point() {
		if err := detach(ctx, s.Device, filepath.Join(s.point(), FuseFile)); err != nil {
			return err
		}
	}
	// The image is not in use any more, so that a server which hangs may be killed; both waits are for its answers. One
	// that ends in order gives the image's lock back.
	short, cancel := context.WithTimeout(ctx, f.within()/4)
	defer cancel()
	if err := errors.Join(unmount(short, s.point()), f.ended(short, s.dir)); err != nil {
		if err := errors.Join(f.kill(s.dir), unmount(ctx, s.point())); err != nil {
			return err
		}
	}
	return removeDir(s.dir)
}

// Process gives the process that serves a device, 0 if it is gone. Where that dies, so does the device.
func (f *Fuse) Process(m exclusive.Mapping) (int, error) {
	s, ok, err := f.find(m)
	if err != nil || !ok {
		return 0, err
	}
	return f.process(s.dir)
}

// Refresh implements [Mapper].
func (f *Fuse) Refresh(ctx context.Context, m exclusive.Mapping) error {
	_, err := run(ctx, f.within(), "losetup", "--set-capacity", m.Device)
	return err
}
