//go:build ceph

package rbdfuse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/ceph/go-ceph/rbd"
	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph/mapper"
)

// root is the folder with the one file.
type root struct {
	fs.Inode
	image *rbd.Image
}

// OnAdd implements [fs.NodeOnAdder].
func (r *root) OnAdd(ctx context.Context) {
	f := r.NewPersistentInode(ctx, &file{image: r.image}, fs.StableAttr{Mode: syscall.S_IFREG})
	r.AddChild(mapper.FuseFile, f, false)
}

// file is the image.
type file struct {
	fs.Inode
	image *rbd.Image

	mu   sync.Mutex
	last string // what was logged last
}

// said gives the error number for a failed call of librbd, an I/O error whatever it was, and logs it, once in a row: a
// client that was fenced fails each of thousands of writes.
func (f *file) said(what string, err error) syscall.Errno {
	if err == nil {
		return fs.OK
	}
	text := fmt.Sprintf("%s: %v", what, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if text != f.last {
		f.last = text
		fmt.Fprintln(os.Stderr, "custody rbd-fuse:", text)
	}
	return syscall.EIO
}

// Getattr implements [fs.NodeGetattrer].
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	size, err := f.image.GetSize()
	out.Mode, out.Size, out.Blocks = 0o600, size, size/512
	return f.said("size", err)
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
	n, err := f.image.ReadAt(into, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return fuse.ReadResultData(into[:max(n, 0)]), f.said("read", err)
}

// Write implements [fs.NodeWriter].
func (f *file) Write(_ context.Context, _ fs.FileHandle, from []byte, at int64) (uint32, syscall.Errno) {
	n, err := f.image.WriteAt(from, at)
	return uint32(max(n, 0)), f.said("write", err)
}

// Fsync implements [fs.NodeFsyncer].
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return f.said("flush", f.image.Flush())
}

// Flush implements [fs.NodeFlusher]; nothing is kept back at a close.
func (f *file) Flush(context.Context, fs.FileHandle) syscall.Errno { return fs.OK }

// Allocate implements [fs.NodeAllocater]: holes only.
func (f *file) Allocate(_ context.Context, _ fs.FileHandle, at, length uint64, mode uint32) syscall.Errno {
	if mode != unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE {
		return syscall.ENOTSUP
	}
	const most = 1 << 30 // librbd's result is an int
	for length > 0 {
		n := min(length, most)
		if _, err := f.image.Discard(at, n); err != nil {
			return f.said("discard", err)
		}
		at, length = at+n, length-n
	}
	return fs.OK
}
