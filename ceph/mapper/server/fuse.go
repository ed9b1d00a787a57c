//go:build ceph

package server

import (
	"context"
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph/mapper"
)

// mounted is a FUSE file system with the image as its one file.
type mounted struct {
	point string
	fuse  *fuse.Server
}

func mount(point, source string, d *disk) (*mounted, error) {
	server, err := fs.Mount(point, &root{disk: d}, &fs.Options{MountOptions: fuse.MountOptions{
		FsName: source, Name: mapper.FuseType, DirectMountStrict: true, MaxWrite: 1 << 20, DisableXAttrs: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("mount at %s: %w", point, err)
	}
	return &mounted{point, server}, nil
}

func (m *mounted) device() string { return m.point }

// refresh: the size is asked for anew each time.
func (m *mounted) refresh(uint64) error { return nil }

func (m *mounted) stop() error { return m.fuse.Unmount() }
func (m *mounted) wait()       { m.fuse.Wait() }

// root is the folder with the one file.
type root struct {
	fs.Inode
	disk *disk
}

// OnAdd implements [fs.NodeOnAdder].
func (r *root) OnAdd(ctx context.Context) {
	f := r.NewPersistentInode(ctx, &file{disk: r.disk}, fs.StableAttr{Mode: syscall.S_IFREG})
	r.AddChild(mapper.FuseFile, f, false)
}

// file is the image.
type file struct {
	fs.Inode
	disk *disk
}

// Getattr implements [fs.NodeGetattrer].
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	size, errno := f.disk.size()
	out.Mode, out.Size, out.Blocks = 0o600, size, size/512
	return errno
}

// Setattr implements [fs.NodeSetattrer]: times may be set, the size not.
func (f *file) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if _, ok := in.GetSize(); ok {
		return syscall.EPERM
	}
	return f.Getattr(ctx, h, out)
}

// Open implements [fs.NodeOpener], without a cache.
func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, fs.OK
}

// Read implements [fs.NodeReader].
func (f *file) Read(_ context.Context, _ fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	n, errno := f.disk.read(into, at)
	return fuse.ReadResultData(into[:n]), errno
}

// Write implements [fs.NodeWriter].
func (f *file) Write(_ context.Context, _ fs.FileHandle, from []byte, at int64) (uint32, syscall.Errno) {
	n, errno := f.disk.write(from, at)
	return uint32(n), errno
}

// Fsync implements [fs.NodeFsyncer].
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return f.disk.flush() }

// Flush implements [fs.NodeFlusher]; nothing is kept back at a close.
func (f *file) Flush(context.Context, fs.FileHandle) syscall.Errno { return fs.OK }

// Allocate implements [fs.NodeAllocater]: holes only.
func (f *file) Allocate(_ context.Context, _ fs.FileHandle, at, length uint64, mode uint32) syscall.Errno {
	if mode != unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE {
		return syscall.ENOTSUP
	}
	return f.disk.zero(at, length)
}
