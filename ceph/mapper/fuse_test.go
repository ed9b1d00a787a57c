//go:build ceph

package mapper_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
)

// TestFuseDevice goes through the life of a device: two of one volume at once, each found by its own client.
func TestFuseDevice(t *testing.T) {
	a, ctx := newMachine(t, "a"), t.Context()
	volume := a.image(t).String()
	d := a.device(volume)
	if m, err := d.Other(ctx, volume, ""); err != nil || m.Device != "" {
		t.Fatalf("nothing is mapped: %+v, %v", m, err)
	}
	one, err := d.Map(ctx, volume)
	must(t, err)
	two, err := d.Map(ctx, volume)
	must(t, err)
	if one.Instance == two.Instance || one.Device == two.Device || !strings.HasPrefix(one.Device, "/dev/loop") {
		t.Fatalf("mapped %+v and %+v", one, two)
	}
	for _, m := range []exclusive.Mapping{one, two} {
		if got, err := d.Find(ctx, volume, m.Instance); err != nil || got != m {
			t.Errorf("found %+v, %v; mapped %+v", got, err, m)
		}
	}
	if got, err := d.Other(ctx, volume, one.Instance); err != nil || got != two {
		t.Errorf("other than %+v: %+v, %v", one, got, err)
	}
	stranger := two
	stranger.Instance = "192.0.2.1:0/5"
	if err := d.Unmap(ctx, stranger); err != nil {
		t.Errorf("a device whose number another has: %v", err)
	}
	if got, err := d.Find(ctx, volume, two.Instance); err != nil || got != two {
		t.Errorf("it went with a stranger's: %+v, %v", got, err)
	}
	must(t, d.Unmap(ctx, two))
	must(t, d.Unmap(ctx, two))

	epoch, err := a.cluster.Epoch(ctx)
	must(t, err)
	must(t, d.Reach(ctx, one, epoch))
	if err := d.Reach(ctx, one, epoch+1000); err == nil {
		t.Error("an epoch that is not there yet was reached")
	}

	must(t, d.Format(ctx, one))
	must(t, d.Expose(ctx, one))
	must(t, d.Expose(ctx, one))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	file := filepath.Join(d.Target.Path, "data")
	must(t, os.WriteFile(file, data, 0o600))
	if err := d.Unmap(ctx, one); err == nil {
		t.Error("unmapped while it is mounted")
	}
	pod := filepath.Join(a.dir, "pod")
	must(t, os.Mkdir(pod, 0o700))
	sh(t, "mount", "--bind", d.Target.Path, pod)
	must(t, d.Withdraw(ctx, volume))
	must(t, d.Withdraw(ctx, volume))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("still exposed: %v", err)
	}
	if left, err := os.ReadDir(pod); err != nil || len(left) > 0 {
		t.Errorf("still bound elsewhere: %v, %v", left, err)
	}
	must(t, d.Unmap(ctx, one))
	if _, err := os.Stat(filepath.Join(a.dir, "s")); err == nil {
		if left, err := os.ReadDir(filepath.Join(a.dir, "s")); err != nil || len(left) > 0 {
			t.Errorf("left in the state folder: %v, %v", left, err)
		}
	}

	// The data are in the cluster.
	b := newMachine(t, "b").device(volume)
	again, err := b.Map(ctx, volume)
	must(t, err)
	must(t, b.Expose(ctx, again))
	if got, err := os.ReadFile(filepath.Join(b.Target.Path, "data")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	must(t, b.Withdraw(ctx, volume))
	must(t, b.Unmap(ctx, again))
}

// TestFuseXFSAndBlock: the other file system, the device without one, and growth in use.
func TestFuseXFSAndBlock(t *testing.T) {
	a, ctx := newMachine(t, "a"), t.Context()
	i := a.image(t)
	d := a.device(i.String())
	d.Target.FSType = "xfs"
	resize := func(size string) {
		sh(t, "rbd", "--conf", cluster.Get(t).Conf(), "resize", i.Spec(), "--size", size, "--no-progress")
	}
	resize("400M") // the least that xfs takes is 300 MB
	m, err := d.Map(ctx, i.String())
	must(t, err)
	must(t, d.Format(ctx, m))
	must(t, d.Expose(ctx, m))
	size := func() int64 {
		var s syscall.Statfs_t
		must(t, syscall.Statfs(d.Target.Path, &s))
		return int64(s.Blocks) * s.Bsize
	}
	small := size()
	resize("600M")
	must(t, d.Grow(ctx, m))
	if large := size(); large < small+100<<20 {
		t.Errorf("the file system has %d bytes; it had %d", large, small)
	}
	must(t, d.Withdraw(ctx, i.String()))

	block := a.device(i.String())
	block.Target = mapper.Target{Path: filepath.Join(a.dir, "block", "dev"), Block: true}
	must(t, block.Expose(ctx, m))
	must(t, block.Expose(ctx, m))
	f, err := os.Open(block.Target.Path)
	must(t, err)
	head := make([]byte, 4)
	if _, err := f.Read(head); err != nil || string(head) != "XFSB" {
		t.Errorf("the device begins with %q, %v", head, err)
	}
	must(t, f.Close())
	must(t, block.Withdraw(ctx, i.String()))
	if info, err := os.Stat(block.Target.Path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("still bound: %v, %v", info, err)
	}
	must(t, block.Unmap(ctx, m))
}

// TestFuseServerDies: a device whose server was killed, or hangs, is found and removed, in bounded time.
func TestFuseServerDies(t *testing.T) {
	a, ctx := newMachine(t, "a"), t.Context()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			volume := a.image(t).String()
			d := a.device(volume)
			a.fuse.Timeout = 4 * time.Second
			m, err := d.Map(ctx, volume)
			must(t, err)
			pid, err := a.fuse.Process(m)
			must(t, err)
			must(t, syscall.Kill(pid, signal))
			begin := time.Now()
			got, err := d.Other(ctx, volume, "")
			if err != nil || got != m {
				t.Errorf("found %+v, %v", got, err)
			}
			if err := d.Reach(ctx, m, 1); err == nil {
				t.Error("its client has reached something")
			}
			must(t, d.Unmap(ctx, m))
			if got, err := d.Other(ctx, volume, ""); err != nil || got.Device != "" {
				t.Errorf("still there: %+v, %v", got, err)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestFuseErrors: what can't be made leaves nothing, and nothing is done through a device of another client.
func TestFuseErrors(t *testing.T) {
	a, ctx := newMachine(t, "a"), t.Context()
	i := a.image(t)
	i.ID = "0123456789ab"
	if _, err := a.device(i.String()).Map(ctx, i.String()); err == nil || !strings.Contains(err.Error(), "open image "+i.Spec()) {
		t.Errorf("an image that is not there: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	volume := a.image(t).String()
	if _, err := a.device(volume).Map(short, volume); err == nil {
		t.Error("mapped within a millisecond")
	}
	eventually(t, "nothing is left of a map that was given up", func() bool {
		left, err := a.device(volume).Other(ctx, volume, "")
		return err == nil && left.Device == ""
	})
	d := a.device(volume)
	m, err := d.Map(ctx, volume)
	must(t, err)
	d.Target.FSType = "ntfs"
	if err := d.Format(ctx, m); err == nil || !strings.Contains(err.Error(), "ntfs") {
		t.Error(err)
	}
	other := m
	other.Instance = "192.0.2.1:0/5"
	d.Target.FSType = "ext4"
	for what, f := range map[string]func(context.Context, exclusive.Mapping) error{"format": d.Format, "expose": d.Expose} {
		if err := f(ctx, other); err == nil || !strings.Contains(err.Error(), "its client is not") {
			t.Errorf("%s through a device of another client: %v", what, err)
		}
	}
	must(t, d.Unmap(ctx, m))
	for _, file := range []string{"/proc/self/mountinfo", "/proc/self/cmdline"} {
		text, err := os.ReadFile(file)
		must(t, err)
		config, err := a.cluster.Config()
		must(t, err)
		if strings.Contains(string(text), string(config.Key)) {
			t.Errorf("the key is in %s", file)
		}
	}
}
