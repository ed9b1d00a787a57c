package mapper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// NBD maps by the kernel's network block device, with a server of ours behind it. (The program rbd-nbd does not tell
// which client it is; its log names two, one of which is gone by then.)
type NBD struct {
	Servers
	// Sys, Proc and Dev are /sys, /proc and /dev, but in a test.
	Sys, Proc, Dev string
}

// all gives the devices that servers of this folder have: the kernel names the process behind each, and its arguments
// name volume and folder.
func (n *NBD) all() ([]served, error) {
	files, err := filepath.Glob(filepath.Join(n.Sys, "block", "nbd*", "pid"))
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(n.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := []served{}
	for _, f := range files {
		pid, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // disconnected meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read who serves a device: %w", err)
		}
		args, err := os.ReadFile(filepath.Join(n.Proc, strings.TrimSpace(string(pid)), "cmdline"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has died, and the kernel is about to end the device
		}
		if err != nil {
			return nil, fmt.Errorf("read who serves a device: %w", err)
		}
		words := bytes.Split(bytes.TrimSuffix(args, []byte{0}), []byte{0})
		if len(words) < 3 || filepath.Dir(string(words[len(words)-1])) != root {
			continue
		}
		dir, volume := string(words[len(words)-1]), string(words[len(words)-2])
		device := filepath.Join(n.Dev, filepath.Base(filepath.Dir(f)))
		found = append(found, served{exclusive.Mapping{Device: device, Volume: volume, Instance: n.client(dir, device)}, dir})
	}
	return found, nil
}

// client reads which client a server is. One that can't be read is no client that a hold names.
func (n *NBD) client(dir, device string) exclusive.Instance {
	text, err := os.ReadFile(filepath.Join(dir, clientName))
	if err == nil {
		if i, err := ceph.ParseInstance(string(text)); err == nil {
			return i
		}
	}
	return exclusive.Instance("unknown client of " + device)
}

// List implements [Mapper].
func (n *NBD) List(_ context.Context, volume string) ([]exclusive.Mapping, error) {
	all, err := n.all()
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
func (n *NBD) All(context.Context) ([]exclusive.Mapping, error) {
	all, err := n.all()
	return mappings(all), err
}

func (n *NBD) find(m exclusive.Mapping) (served, bool, error) {
	all, err := n.all()
	for _, s := range all {
		if s.Mapping == m {
			return s, true, nil
		}
	}
	return served{}, false, err
}

// Map implements [Mapper].
func (n *NBD) Map(ctx context.Context, volume string) (exclusive.Mapping, error) {
	ctx, cancel := context.WithTimeout(ctx, n.within())
	defer cancel()
	if free, err := filepath.Glob(filepath.Join(n.Sys, "block", "nbd*")); err != nil || len(free) == 0 {
		return exclusive.Mapping{}, errors.Join(errors.New("this kernel has no nbd: load the module nbd, or use another mapper"), err)
	}
	server, err := n.start(ctx, ServeNBD, volume)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	server.release(true)
	return exclusive.Mapping{Device: server.Device, Volume: volume, Instance: server.Instance}, nil
}

// Reach implements [Mapper]: the server asks for the latest map on the image's own connection.
func (n *NBD) Reach(ctx context.Context, m exclusive.Mapping, epoch uint64) error {
	return n.tell(ctx, m, Question{"reach", epoch})
}

// Refresh implements [Mapper].
func (n *NBD) Refresh(ctx context.Context, m exclusive.Mapping) error {
	return n.tell(ctx, m, Question{Verb: "refresh"})
}

func (n *NBD) tell(ctx context.Context, m exclusive.Mapping, q Question) error {
	s, ok, err := n.find(m)
	if err != nil {
		return err
	}
	if !ok {
		return errNoDevice
	}
	return n.question(ctx, s.dir, m.Instance, q)
}

// Unmap implements [Mapper]. The kernel would disconnect a device that is mounted, so that it is asked first whether it
// is; the descriptor keeps others from mounting it meanwhile.
func (n *NBD) Unmap(ctx context.Context, m exclusive.Mapping) error {
	s, ok, err := n.find(m)
	if err != nil || !ok {
		return err
	}
	held, err := os.OpenFile(m.Device, os.O_RDONLY|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: it is mounted", err)
	}
	if err != nil {
		return err
	}
	defer held.Close()
	short, cancel := context.WithTimeout(ctx, n.within()/4)
	defer cancel()
	err = n.question(short, s.dir, m.Instance, Question{Verb: "stop"})
	if err := errors.Join(err, n.ended(short, s.dir)); err != nil { // it hangs, and nobody needs its answers
		if err := errors.Join(n.kill(s.dir), n.ended(ctx, s.dir)); err != nil {
			return err
		}
	}
	return removeDir(s.dir)
}
