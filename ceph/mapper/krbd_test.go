package mapper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

const fsid = "6e8a0b5c-0000-4000-8000-000000000001"

// kernel is a sysfs of folders and named pipes, with a reader in the kernel's place.
type kernel struct {
	t      *testing.T
	sys    string
	orders chan string
}

var volume = ceph.Image{Pool: "rbd", Namespace: "tenant", Name: "vol", ID: "abc1"}

// newKernel takes the orders that are named; the others hang.
func newKernel(t *testing.T, taken ...string) (*kernel, *Krbd) {
	k := &kernel{t: t, sys: t.TempDir(), orders: make(chan string, 10)}
	must(t, os.MkdirAll(k.path("devices"), 0o700))
	krbd := &Krbd{
		Sys: k.sys, Dev: filepath.Join(k.sys, "dev"), Debug: filepath.Join(k.sys, "debug"), Dir: filepath.Join(k.sys, "notes"), FSID: fsid,
		Config: func() (ceph.Config, error) {
			return ceph.Config{Monitors: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]", User: "node", Key: "AQ=="}, nil
		},
		Epoch:   func(context.Context) (uint64, error) { return 70, nil },
		Timeout: 2 * time.Second,
	}
	for _, order := range []string{"add_single_major", "remove_single_major"} {
		must(t, syscall.Mkfifo(k.path(order), 0o600))
		if slices.Contains(taken, order) {
			k.serve(order)
		}
	}
	return k, krbd
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (k *kernel) path(names ...string) string {
	return filepath.Join(append([]string{k.sys, "bus", "rbd"}, names...)...)
}

// serve takes orders until the test ends. The pipe is open for both, so that a read ends with an order and not before.
func (k *kernel) serve(order string) {
	f, err := os.OpenFile(k.path(order), os.O_RDWR, 0)
	must(k.t, err)
	k.t.Cleanup(func() { f.Close() })
	go func() {
		text := make([]byte, 4096)
		for {
			n, err := f.Read(text)
			if err != nil {
				return
			}
			if order == "remove_single_major" {
				if err := os.RemoveAll(k.path("devices", string(text[:n]))); err != nil {
					k.t.Error(err)
				}
			}
			k.orders <- order + ": " + string(text[:n])
		}
	}()
}

// device puts a device into sysfs.
func (k *kernel) device(id string, i ceph.Image, address, cluster, snap string) {
	k.t.Helper()
	must(k.t, os.MkdirAll(k.path("devices", id), 0o700))
	for name, value := range map[string]string{
		"image_id": i.ID, "pool": i.Pool, "pool_ns": i.Namespace, "name": i.Name, "current_snap": snap,
		"client_addr": address, "client_id": "client4711", "cluster_fsid": cluster,
	} {
		must(k.t, os.WriteFile(k.path("devices", id, name), []byte(value+"\n"), 0o600))
	}
}

func TestKrbdList(t *testing.T) {
	k, krbd := newKernel(t)
	k.device("0", volume, "10.0.0.9:0/111", fsid, "-")
	k.device("1", volume, "10.0.0.9:0/222", fsid, "-")
	k.device("2", volume, "10.0.0.9:0/333", "another cluster", "-")
	k.device("3", volume, "10.0.0.9:0/444", fsid, "a-snapshot")
	other := volume
	other.ID = "abc2"
	k.device("4", other, "10.0.0.9:0/555", fsid, "-")
	other = volume
	other.Namespace = ""
	k.device("5", other, "10.0.0.9:0/666", fsid, "-")
	renamed := volume
	renamed.Name = "renamed"
	k.device("6", renamed, "10.0.0.9:0/777", fsid, "-")
	got, err := krbd.List(t.Context(), volume.String())
	must(t, err)
	var instances []string
	for _, m := range got {
		instances = append(instances, string(m.Instance))
	}
	slices.Sort(instances)
	if want := "[10.0.0.9:0/111 10.0.0.9:0/222 10.0.0.9:0/777]"; fmt.Sprint(instances) != want {
		t.Errorf("listed %v, wanted %s", got, want)
	}
	if got[0].Device != filepath.Join(krbd.Dev, "rbd0") {
		t.Errorf("device %s", got[0].Device)
	}
	must(t, os.RemoveAll(k.path()))
	if _, err := krbd.List(t.Context(), volume.String()); err == nil || !strings.Contains(err.Error(), "has no rbd") {
		t.Errorf("no rbd in the kernel: %v", err)
	}
}

func TestKrbdMapAndUnmap(t *testing.T) {
	k, krbd := newKernel(t, "add_single_major", "remove_single_major")
	k.device("0", volume, "10.0.0.9:0/111", fsid, "-")
	// The device is there before the kernel's answer: a pipe can't make a writer wait for its reader.
	krbd.Config = func() (ceph.Config, error) {
		k.device("7", volume, "10.0.0.9:0/222", fsid, "-")
		return ceph.Config{Monitors: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]", User: "node", Key: "AQ=="}, nil
	}
	m, err := krbd.Map(t.Context(), volume.String())
	must(t, err)
	if want := (exclusive.Mapping{Device: filepath.Join(krbd.Dev, "rbd7"), Volume: volume.String(), Instance: "10.0.0.9:0/222"}); m != want {
		t.Errorf("mapped %+v", m)
	}
	// The epoch was asked before the client was made.
	must(t, krbd.Reach(t.Context(), m, 70))
	if err := krbd.Reach(t.Context(), m, 71); err == nil || !strings.Contains(err.Error(), "stage anew") {
		t.Errorf("an epoch that nobody can vouch for: %v", err)
	}
	debug := filepath.Join(krbd.Debug, "ceph", fsid+".client4711")
	must(t, os.MkdirAll(debug, 0o700))
	must(t, os.WriteFile(filepath.Join(debug, "osdmap"), []byte("epoch 75 barrier 0 flags 0x188000\npool 1\n"), 0o600))
	must(t, krbd.Reach(t.Context(), m, 75))
	if err := krbd.Reach(t.Context(), m, 76); err == nil || !strings.Contains(err.Error(), "epoch 75 so far") {
		t.Errorf("an epoch ahead: %v", err)
	}
	must(t, os.Remove(krbd.noteFile(m.Instance)))
	must(t, krbd.Reach(t.Context(), m, 70)) // the note may be lost

	stranger := m
	stranger.Instance = "10.0.0.9:0/999"
	must(t, krbd.Unmap(t.Context(), stranger))
	if left, err := krbd.List(t.Context(), volume.String()); err != nil || len(left) != 2 {
		t.Errorf("a device whose number another has was removed: %v, %v", left, err)
	}
	added := <-k.orders
	for _, want := range []string{"add_single_major: 10.0.0.1:6789 ", "name=node,secret=AQ==,noshare,", ",_pool_ns=tenant", " rbd vol -"} {
		if !strings.Contains(added, want) {
			t.Errorf("order %q does not have %q", added, want)
		}
	}
	must(t, krbd.Unmap(t.Context(), m))
	if removed := <-k.orders; removed != "remove_single_major: 7" {
		t.Errorf("order %q", removed)
	}
	left, err := krbd.List(t.Context(), volume.String())
	must(t, err)
	if len(left) != 1 || left[0].Instance != "10.0.0.9:0/111" {
		t.Errorf("left: %v", left)
	}
	must(t, krbd.Unmap(t.Context(), m))
}

// TestKrbdHangs: an order that the kernel does not take ends at the deadline, and the key is in no error.
func TestKrbdHangs(t *testing.T) {
	k, krbd := newKernel(t)
	krbd.Timeout = 200 * time.Millisecond
	begin := time.Now()
	_, err := krbd.Map(t.Context(), volume.String())
	if !errors.Is(err, errGivenUp) {
		t.Errorf("mapped by a kernel that hangs: %v", err)
	}
	if strings.Contains(err.Error(), "AQ==") {
		t.Errorf("the key is in the error: %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	// So that the goroutine ends that the kernel would have held.
	f, err := os.OpenFile(k.path("add_single_major"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	must(t, f.Close())
}

func TestKernelMonitors(t *testing.T) {
	for _, c := range []struct{ host, option, want string }{
		{"10.0.0.1", "", "10.0.0.1:6789"},
		{"10.0.0.1:6790,10.0.0.2", "", "10.0.0.1:6790,10.0.0.2:6789"},
		{"[v2:10.0.0.1:3300,v1:10.0.0.1:6789]", "", "10.0.0.1:6789"},
		{"[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0],[v2:10.0.0.2:3300/0,v1:10.0.0.2:6789/0]", "ms_mode=prefer-crc", "10.0.0.1:3300,10.0.0.2:3300"},
		{"[v2:[fd00::1]:3300,v1:[fd00::1]:6789] [v2:[fd00::2]:3300,v1:[fd00::2]:6789]", "ms_mode=legacy", "[fd00::1]:6789,[fd00::2]:6789"},
		{"[fd00::1]:6789,[fd00::2]", "", "[fd00::1]:6789,[fd00::2]:6789"},
		{"v1:10.0.0.1:6789", "", "10.0.0.1:6789"},
		{"v2:10.0.0.1:3300", "", ""},
		{"mon.example.org", "", ""},
		{"", "", ""},
	} {
		got, err := kernelMonitors(c.host, []string{c.option})
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q with %q: %q, %v", c.host, c.option, got, err)
		}
	}
}

func TestParseMounts(t *testing.T) {
	all, err := parseMounts("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n40 35 0:50 / /s/fs rw - fuse.custody-rbd custody-rbd:rbd//a/1@10.0.0.1:0/5 rw\n")
	must(t, err)
	want := []mount{
		{"98:0", "/mnt1", "/mnt 2", "ext3", "/dev/root"},
		{"0:50", "/", "/s/fs", "fuse.custody-rbd", "custody-rbd:rbd//a/1@10.0.0.1:0/5"},
	}
	if !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
	if _, err := parseMounts("nonsense\n"); err == nil {
		t.Error("nonsense was read")
	}
}
