//go:build ceph

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Orders to the kernel's nbd (linux/nbd.h: _IO(0xab, n)), and what its device is to use.
const (
	setSocket     = 0xab00
	setBlockSize  = 0xab01
	doIt          = 0xab03
	clearSocket   = 0xab04
	setSizeBlocks = 0xab07
	disconnect    = 0xab08
	setTimeout    = 0xab09
	setFlags      = 0xab0a

	hasFlags  = 1 << 0
	readsOnly = 1 << 1
	sendFlush = 1 << 2
	sendTrim  = 1 << 5

	sector = 512
)

// connected is a network block device of the kernel, with this process at the other end.
type connected struct {
	file *os.File
	path string
	done chan struct{}
}

// connect takes a free device. The kernel lets one of those who want it have it.
func connect(dev string, d *disk, readOnly bool) (*connected, error) {
	size, errno := d.size()
	if errno != 0 {
		return nil, errno
	}
	all, err := filepath.Glob(filepath.Join(dev, "nbd*"))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p string) bool { // partitions: nbd0p1
		var n int
		_, err := fmt.Sscanf(filepath.Base(p), "nbd%d", &n)
		return err != nil || fmt.Sprintf("nbd%d", n) != filepath.Base(p)
	})
	flags := hasFlags | sendFlush | sendTrim
	if readOnly {
		flags |= readsOnly
	}
	for _, path := range all {
		c, err := take(path, size, d, flags)
		if !errors.Is(err, unix.EBUSY) {
			return c, err
		}
	}
	return nil, fmt.Errorf("no free device among %d in %s: load the module nbd with a larger nbds_max", len(all), dev)
}

func take(path string, size uint64, d *disk, flags int) (_ *connected, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ours := os.NewFile(uintptr(pair[0]), "nbd server")
	theirs := os.NewFile(uintptr(pair[1]), "nbd kernel") // the kernel keeps it
	defer theirs.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, ours.Close(), file.Close())
		}
	}()
	if err := order(file, setSocket, pair[1]); err != nil {
		return nil, err
	}
	for _, o := range [][2]int{
		{setBlockSize, sector}, {setSizeBlocks, int(size / sector)}, {setTimeout, 0}, {setFlags, flags},
	} {
		if err := order(file, o[0], o[1]); err != nil {
			return nil, errors.Join(err, order(file, clearSocket, 0))
		}
	}
	c := &connected{file: file, path: path, done: make(chan struct{})}
	go func() {
		if err := transmit(ours, d); err != nil {
			fmt.Fprintln(os.Stderr, "image server:", err)
		}
		_ = ours.Close() // the kernel fails what it still wants
	}()
	go func() {
		// The kernel names this thread as the one that serves.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		if err := order(file, doIt, 0); err != nil {
			fmt.Fprintln(os.Stderr, "image server:", err)
		}
		_ = file.Close() // nothing is written through it
	}()
	return c, nil
}

// order is an ioctl with a number.
func order(f *os.File, number, value int) error {
	if err := unix.IoctlSetInt(int(f.Fd()), uint(number), value); err != nil {
		return fmt.Errorf("order %#x to %s: %w", number, f.Name(), err)
	}
	return nil
}

func (c *connected) device() string { return c.path }

func (c *connected) refresh(size uint64) error { return order(c.file, setSizeBlocks, int(size/sector)) }

func (c *connected) stop() error { return order(c.file, disconnect, 0) }

func (c *connected) wait() { <-c.done }
