package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience is how long the children of a start that died may take to follow.
const lockPatience = 5 * time.Second

// folder is the place of one server's data, held by one start at a time.
type folder struct {
	path string
	temp bool
	lock *os.File
}

// openFolder makes the folder if need be and locks it. Without a path it is a
// temporary one.
func openFolder(ctx context.Context, path, server string) (*folder, error) {
	f := &folder{path: path}
	var err error
	if path == "" {
		f.temp = true
		if f.path, err = os.MkdirTemp("", "custody-"+server+"-"); err != nil {
			return nil, fmt.Errorf("make a temporary folder for %s: %w", server, err)
		}
	} else if f.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("data folder of %s: %w", server, err)
	} else if err = os.MkdirAll(f.path, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder of %s: %w", server, err)
	}
	if err := f.take(ctx, server); err != nil {
		return nil, errors.Join(err, f.removeTemp())
	}
	return f, nil
}

// take locks the folder. The lock belongs to the open file, which the servers
// inherit: it is free once this process and they are all gone.
func (f *folder) take(ctx context.Context, server string) error {
	path := f.in("lock")
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the data folder of %s: %w", server, err)
	}
	give := time.Now().Add(lockPatience)
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			lock.Close()
			return fmt.Errorf("lock %s: %w", path, err)
		}
		holder := readLock(path)
		if holder == 0 || unix.Kill(holder, 0) != unix.ESRCH || time.Now().After(give) {
			lock.Close()
			return fmt.Errorf("data folder %s of %s is in use by process %d or what it started: stop that, or use another folder", f.path, server, holder)
		}
		select {
		case <-ctx.Done():
			lock.Close()
			return fmt.Errorf("wait for the data folder %s of %s: %w", f.path, server, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := errors.Join(lock.Truncate(0), writeAt(lock, fmt.Sprintln(os.Getpid()))); err != nil {
		lock.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	f.lock = lock
	return nil
}

// readLock returns the process that wrote the lock file, 0 if that can't be read.
func readLock(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func (f *folder) in(names ...string) string {
	return filepath.Join(append([]string{f.path}, names...)...)
}

// close unlocks the folder and removes a temporary one. The servers must be gone.
func (f *folder) close() error {
	return errors.Join(f.lock.Close(), f.removeTemp())
}

func (f *folder) removeTemp() error {
	if !f.temp {
		return nil
	}
	return os.RemoveAll(f.path)
}

// load reads a JSON file of the folder and says whether there is one.
func (f *folder) load(name string, into any) (bool, error) {
	text, err := os.ReadFile(f.in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s (remove the folder to begin anew): %w", f.in(name), err)
	}
	return true, nil
}

func (f *folder) save(name string, from any) error {
	text, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", f.in(name), err)
	}
	return writeFile(f.in(name), append(text, '\n'))
}

// writeFile replaces a file that only this user may read, in one step.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	half := path + ".half"
	if err := os.WriteFile(half, text, 0o600); err != nil {
		return err
	}
	return os.Rename(half, path)
}
