package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/custody-storage/custody/cosi/wire"
)

// listener is the driver's socket together with the lock that says whose it is.
type listener struct {
	net.Listener
	lock *os.File
}

// release gives the socket up. The lock file stays: to remove it would let two hold locks on two files of
// one name.
func (l *listener) release() {
	_ = l.Close()
	if l.lock != nil {
		_ = l.lock.Close()
	}
}

// listen opens the endpoint. A socket file that a dead driver left is taken over; one that a living driver
// serves is an error. Which it is, a lock beside it tells, because a connection attempt cannot: two
// starting at once would each find nobody.
func listen(ctx context.Context, endpoint string, mode os.FileMode) (*listener, error) {
	network, address, err := wire.ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if network != "unix" {
		l, err := new(net.ListenConfig).Listen(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("driver endpoint %s: %w", endpoint, err)
		}
		return &listener{Listener: l}, nil
	}
	lock, err := lockFile(address + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := listenUnix(ctx, address, mode)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return &listener{Listener: l, lock: lock}, nil
}

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("driver socket: the folder %s is not there; create or mount it, or choose another endpoint", filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("driver socket: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("driver socket: another driver runs on it (%s is locked); stop that one, or choose another endpoint", path)
		}
		return nil, fmt.Errorf("driver socket: lock %s: %w", path, err)
	}
	return f, nil
}

func listenUnix(ctx context.Context, path string, mode os.FileMode) (net.Listener, error) {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("driver socket: %w", err)
	case st.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("driver socket: %s is there and is not a socket; it is left alone, choose another endpoint", path)
	default: // nobody holds the lock, so whoever made it is dead, or no driver of this kit
		if c, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("driver socket: another program serves on %s; stop it, or choose another endpoint", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("driver socket: remove the one that a dead driver left: %w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("driver socket: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("driver socket: %w", err), l.Close())
	}
	return l, nil
}
