//go:build ceph

package takeover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// Footprint is what a number of open images takes on a node.
type Footprint struct {
	Connections int     // TCP connections to the cluster
	MB          float64 // proportional set size (PSS) of the processes
}

// opening is the line that a process reads which has images open as a library's user does, without devices.
type opening struct {
	Config  mapper.OrderConfig
	Volumes []string
	Each    bool // a client for each image; otherwise one for all
}

// runOpen has images open until its standard input ends.
func runOpen(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var o opening
	if err := readLine(lines, &o); err != nil {
		return err
	}
	config := order{Config: o.Config}.config()
	var client *rados.Conn
	images := []*rbd.Image{}
	for n, volume := range o.Volumes {
		if n == 0 || o.Each {
			var err error
			if client, _, err = ceph.Dial(config, map[string]string{"rbd_cache": "false"}); err != nil {
				return err
			}
		}
		image, err := openAndWrite(client, volume)
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	if _, err := fmt.Fprintln(out, "{}"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, lines) // until whoever started it has measured
	var errs []error
	for _, image := range images { // or the next client would wait for the watch to lapse
		errs = append(errs, image.Close())
	}
	return errors.Join(errs...)
}

func openAndWrite(client *rados.Conn, volume string) (*rbd.Image, error) {
	i, err := ceph.ParseImage(volume)
	if err != nil {
		return nil, err
	}
	pool, err := client.OpenIOContext(i.Pool)
	if err != nil {
		return nil, err
	}
	image, err := rbd.OpenImageById(pool, i.ID, rbd.NoSnapshot)
	if err != nil {
		return nil, err
	}
	_, err = image.WriteAt(make([]byte, blockSize), 0)
	return image, err
}

// Opened measures images that are open in one process of the machine, over one client or one each. Nothing else of the
// machine is counted.
func (m *Machine) Opened(ctx context.Context, volumes []string, each bool) (_ Footprint, err error) {
	before, err := connections(m.cmd.Process.Pid)
	if err != nil {
		return Footprint{}, err
	}
	p := *m
	if err := p.launch(roleOpen); err != nil {
		return Footprint{}, err
	}
	defer func() { err = errors.Join(err, p.stdin.Close(), p.cmd.Wait()) }()
	config, err := m.fleet.orderConfig()
	if err != nil {
		return Footprint{}, err
	}
	if _, err := p.ask(ctx, opening{config, volumes, each}); err != nil {
		return Footprint{}, err
	}
	return footprint(before, p.cmd.Process.Pid)
}

// Mapped measures the image servers of images that are mapped on the machine, each by a client of its own.
func (m *Machine) Mapped(ctx context.Context, volumes []string) (f Footprint, err error) {
	before, err := connections(m.cmd.Process.Pid)
	if err != nil {
		return f, err
	}
	pids := []int{}
	for _, volume := range volumes {
		defer func() {
			_, undo := m.Expect(ctx, Task{Volume: volume, Bare: true, Unmap: true}, exclusive.Done)
			err = errors.Join(err, undo)
		}()
		reply, err := m.Expect(ctx, Task{Volume: volume, Bare: true}, exclusive.Done)
		if err != nil {
			return f, err
		}
		if err := WriteOnce(m.Path(volume, ""), Block{}); err != nil {
			return f, err
		}
		pid, err := m.fuse.Process(reply.Map)
		if err != nil {
			return f, err
		}
		pids = append(pids, pid)
	}
	return footprint(before, pids...)
}

func footprint(before int, pids ...int) (f Footprint, err error) {
	after, err := connections(pids[0])
	if err != nil {
		return f, err
	}
	f.Connections = after - before
	for _, pid := range pids {
		kb, err := pss(pid)
		if err != nil {
			return f, err
		}
		f.MB += float64(kb) / 1024
	}
	return f, nil
}

// connections counts the established ones in the network namespace of a process.
func connections(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0, err
	}
	const established = "01"
	n := 0
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == established {
			n++
		}
	}
	return n, nil
}

// pss is the memory of a process in kB, with its share of what it shares.
func pss(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("process %d has no line Pss", pid)
}
