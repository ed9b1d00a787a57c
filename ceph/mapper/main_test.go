//go:build ceph

package mapper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/ceph/mapper/server"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/cephtest"
	"github.com/custody-storage/custody/exclusive"
)

const serveEnv = "CUSTODY_TEST_SERVE"

// The cluster holds a dead client to be alive for 5 s instead of 30.
var cluster = cephtest.Cluster{Options: embedded.CephOptions{Settings: map[string]string{"osd_client_watch_timeout": "5"}}}

// TestMain serves an image instead where it is told to: the server processes are this binary.
func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		if err := server.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(cluster.Run(m))
}

var names atomic.Int64

// machine is a node: an identity, a mapper with a state folder, and a boot id.
type machine struct {
	who     exclusive.Who
	cluster *ceph.Cluster
	fuse    *mapper.Fuse
	dir     string
}

// newMachine needs root, FUSE and loop devices.
func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	s := cluster.Get(t)
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root and /dev/fuse")
		}
		t.Skip("needs root and /dev/fuse to map images")
	}
	user := fmt.Sprintf("%s%d", name, names.Add(1))
	key, err := s.Auth(t.Context(), "client."+user, ceph.Caps(ceph.Node, embedded.CephPool))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ceph.Open(ceph.Config{ID: "test", Monitors: s.Monitors(), User: user, Key: ceph.Secret(key), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	dir, err := os.MkdirTemp("", "cm") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{
		who: exclusive.Who{Machine: "machine-" + user, Node: name, Boot: "boot-1"}, cluster: c, dir: dir,
		fuse: &mapper.Fuse{Servers: mapper.Servers{
			Dir: filepath.Join(dir, "s"), Command: []string{"/proc/self/exe"}, Env: []string{serveEnv + "=1"}, Config: c.Config,
		}},
	}
	t.Cleanup(func() { m.clean(t) })
	return m
}

// clean removes whatever a test has left, so that a failed one leaves no mount on the machine.
func (m *machine) clean(t *testing.T) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if !strings.HasPrefix(f[4], m.dir+"/") || !strings.Contains(line, mapper.FuseType) {
			continue
		}
		_, source, _ := strings.Cut(line, "custody-rbd:")
		source, _, _ = strings.Cut(source, " ")
		volume, instance, _ := strings.Cut(source, "@")
		d := m.device(volume)
		found, err := d.Find(context.Background(), volume, exclusive.Instance(instance))
		if err == nil {
			if pid, err := m.fuse.Process(found); err == nil && pid != 0 {
				_ = syscall.Kill(pid, syscall.SIGCONT)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			err = errors.Join(d.Withdraw(context.Background(), volume), d.Unmap(context.Background(), found))
		}
		if err != nil {
			t.Errorf("clean up %s: %v", volume, err)
		}
	}
	if err := os.RemoveAll(m.dir); err != nil {
		t.Error(err)
	}
}

// device is a volume on this machine, exposed under a folder of its own.
func (m *machine) device(volume string) *mapper.Device {
	target := filepath.Join(m.dir, "at-"+strings.ReplaceAll(volume, "/", "-"))
	return &mapper.Device{Mapper: m.fuse, Volume: volume, Target: mapper.Target{Path: target, FSType: "ext4"}}
}

// image makes an image as a single-node volume has it, with a blank hold.
func (m *machine) image(t *testing.T) ceph.Image {
	t.Helper()
	name := fmt.Sprintf("image%d", names.Add(1))
	r := m.dial(t)
	io, err := r.OpenIOContext(embedded.CephPool)
	if err != nil {
		t.Fatal(err)
	}
	defer io.Destroy()
	options := rbd.NewRbdImageOptions()
	defer options.Destroy()
	if err := options.SetUint64(rbd.ImageOptionFeatures, rbd.FeatureLayering|rbd.FeatureExclusiveLock); err != nil {
		t.Fatal(err)
	}
	if err := rbd.CreateImage(io, name, 64<<20, options); err != nil {
		t.Fatal(err)
	}
	i, err := m.cluster.Registry().Image(t.Context(), embedded.CephPool, "", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.cluster.Registry().Swap(t.Context(), exclusive.Hold{Volume: i.String(), State: exclusive.Free}); err != nil {
		t.Fatal(err)
	}
	return i
}

// dial gives a client of the test's own.
func (m *machine) dial(t *testing.T) *rados.Conn {
	t.Helper()
	config, err := m.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := ceph.Dial(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Shutdown)
	return r
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sh runs a program and fails the test if it fails.
func sh(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, bytes.TrimSpace(out))
	}
	return string(out)
}
