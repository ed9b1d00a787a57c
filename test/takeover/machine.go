//go:build ceph

package takeover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// ErrDied says that the machine's process has died while it was at a task. [Machine.Start] brings it back.
var ErrDied = errors.New("the machine's process has died")

// Machine is a node: a process with its own network, mapper and identity. One goroutine uses it.
type Machine struct {
	Who exclusive.Who

	fleet *Fleet
	space space
	dir   string
	fuse  *mapper.Fuse

	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// Start starts the machine's process, which must not run, and returns when it is connected.
func (m *Machine) Start(ctx context.Context) error {
	config, err := m.fleet.orderConfig()
	if err != nil {
		return err
	}
	if err := m.launch(roleNode); err != nil {
		return err
	}
	_, err = m.ask(ctx, order{Config: config, Who: m.Who, Dir: m.dir, Self: m.fleet.self})
	return err
}

// launch starts a process in the machine's network, and makes it the one that is asked.
func (m *Machine) launch(role string) (err error) {
	m.cmd = m.space.command(m.fleet.self)
	m.cmd.Env, m.cmd.Stderr = append(os.Environ(), envRole+"="+role), m.fleet.log
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	m.out = bufio.NewReader(out)
	if err := m.cmd.Start(); err != nil {
		return fmt.Errorf("start a process of machine %s: %w", m.Who.Node, err)
	}
	return nil
}

// Do has the machine do a task. The error is [ErrDied] if its process died.
func (m *Machine) Do(ctx context.Context, t Task) (Reply, error) {
	reply, err := m.ask(ctx, t)
	if err == nil && reply.Error != "" {
		err = fmt.Errorf("machine %s: %s", m.Who.Node, reply.Error)
	}
	return reply, err
}

// Expect does a task, which must come to this.
func (m *Machine) Expect(ctx context.Context, t Task, want exclusive.Kind) (Reply, error) {
	reply, err := m.Do(ctx, t)
	if err == nil && reply.Kind != want {
		err = fmt.Errorf("machine %s, verb %d on %s: it came to %d %s and not %d; hold %+v", m.Who.Node, t.Verb, t.Volume, reply.Kind, reply.Why, want, reply.Hold)
	}
	return reply, err
}

func (m *Machine) ask(ctx context.Context, what any) (Reply, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return Reply{}, err
	}
	type answer struct {
		reply Reply
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		if _, a.err = m.stdin.Write(append(text, '\n')); a.err == nil {
			a.err = readLine(m.out, &a.reply)
		}
		done <- a
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return a.reply, fmt.Errorf("%w: %s (%w)", ErrDied, m.Who.Node, errors.Join(a.err, m.cmd.Wait()))
		}
		return a.reply, nil
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("machine %s has not answered: %w", m.Who.Node, context.Cause(ctx))
	}
}

// Path is where the volume is exposed: the device, or a file on its file system.
func (m *Machine) Path(volume, fsType string) string {
	path := deviceIn(m.dir, m.fuse, volume, fsType).Target.Path
	if fsType != "" {
		path = filepath.Join(path, "data")
	}
	return path
}

// deviceIn is a volume on the machine of that folder.
func deviceIn(dir string, fuse *mapper.Fuse, volume, fsType string) *mapper.Device {
	target := filepath.Join(dir, "at-"+strings.ReplaceAll(volume, "/", "-"))
	return &mapper.Device{Mapper: fuse, Volume: volume, Target: mapper.Target{Path: target, Block: fsType == "", FSType: fsType}}
}

// Kill kills the machine's process alone, as a restart of a node plugin does. Devices stay.
func (m *Machine) Kill() error {
	if err := m.cmd.Process.Kill(); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	_ = m.cmd.Wait() // it was killed
	return nil
}

// Signal sends a signal to the machine's process and to the image server of a device.
func (m *Machine) Signal(device exclusive.Mapping, s syscall.Signal) error {
	server, err := m.fuse.Process(device)
	if err != nil {
		return err
	}
	if server == 0 {
		return fmt.Errorf("%s of %s has no server", device.Device, m.Who.Node)
	}
	if err := unix.Kill(server, s); err != nil {
		return fmt.Errorf("send %s to the server of %s: %w", s, device.Device, err)
	}
	if s == syscall.SIGKILL {
		return m.Kill()
	}
	return m.cmd.Process.Signal(s)
}

// Join puts the machine's network up or down.
func (m *Machine) Join(up bool) error { return m.space.set(up) }

// clean ends all that the machine has, in any state.
func (m *Machine) clean(ctx context.Context) error {
	var errs []error
	if m.cmd != nil && m.cmd.Process != nil {
		errs = append(errs, m.Kill())
	}
	all, err := m.fuse.All(ctx)
	if err != nil {
		return err
	}
	for _, found := range all {
		if pid, err := m.fuse.Process(found); err == nil && pid != 0 {
			_ = unix.Kill(pid, syscall.SIGKILL) // unless it ends by itself
		}
		d := deviceIn(m.dir, m.fuse, found.Volume, "")
		errs = append(errs, d.Withdraw(ctx, found.Volume), d.Unmap(ctx, found))
	}
	return errors.Join(errs...)
}
