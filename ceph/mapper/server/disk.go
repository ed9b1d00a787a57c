//go:build ceph

package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/ceph/go-ceph/rbd"
)

// disk is the image as the kernel sees it: an error is an I/O error, whatever it was.
type disk struct {
	image *rbd.Image

	mu   sync.Mutex
	last string // what was logged last
}

// said gives the error number for a failed call of librbd, and logs it, once in a row: a client that was fenced fails
// each of thousands of writes.
func (d *disk) said(what string, err error) syscall.Errno {
	if err == nil {
		return 0
	}
	text := fmt.Sprintf("%s: %v", what, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if text != d.last {
		d.last = text
		fmt.Fprintln(os.Stderr, "image server:", text)
	}
	return syscall.EIO
}

func (d *disk) size() (uint64, syscall.Errno) {
	size, err := d.image.GetSize()
	return size, d.said("size", err)
}

// read fills as much as there is.
func (d *disk) read(into []byte, at int64) (int, syscall.Errno) {
	n, err := d.image.ReadAt(into, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return max(n, 0), d.said("read", err)
}

func (d *disk) write(from []byte, at int64) (int, syscall.Errno) {
	n, err := d.image.WriteAt(from, at)
	return max(n, 0), d.said("write", err)
}

func (d *disk) flush() syscall.Errno { return d.said("flush", d.image.Flush()) }

// zero makes a hole, which reads as zeros.
func (d *disk) zero(at, length uint64) syscall.Errno {
	const most = 1 << 30 // librbd's result is an int
	for length > 0 {
		n := min(length, most)
		if _, err := d.image.Discard(at, n); err != nil {
			return d.said("discard", err)
		}
		at, length = at+n, length-n
	}
	return 0
}
