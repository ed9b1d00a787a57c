//go:build ceph

package krbd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/cephtest"
	"github.com/custody-storage/custody/embedded/guest"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/krbd/node"
)

// The cluster holds a dead client to be alive for 5 s instead of 30.
var cluster = cephtest.Cluster{Options: embedded.CephOptions{Settings: map[string]string{"osd_client_watch_timeout": "5"}}}

var (
	names atomic.Int64
	lab   guests
)

func TestMain(m *testing.M) {
	code := cluster.Run(m)
	if err := lab.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// guests are the two machines that the tests share: a start takes longer than a test.
type guests struct {
	once sync.Once
	err  error
	dir  string
	all  [2]*guest.Guest
}

func (l *guests) stop() error {
	var errs []error
	for _, g := range l.all {
		if g != nil {
			errs = append(errs, g.Stop())
		}
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	return errors.Join(errs...)
}

// start boots both machines at once.
func (l *guests) start(ctx context.Context) error {
	system, err := guest.Prepare(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "krbd"); err != nil {
		return err
	}
	agent := filepath.Join(l.dir, "agent")
	if err := build(ctx, agent, "../krbd/agent", "CGO_ENABLED=0"); err != nil {
		return err
	}
	files := map[string]string{}
	for _, program := range []string{"mount", "mkfs.ext4", "resize2fs", "mkfs.xfs", "xfs_growfs"} {
		path, err := exec.LookPath(program)
		if err != nil {
			return err
		}
		files["/usr/bin/"+program] = path
	}
	errs := make(chan error)
	for n := range l.all {
		go func() {
			var err error
			l.all[n], err = guest.Start(ctx, system, guest.Options{
				Name: string('a' + rune(n)), Init: agent, Modules: []string{"rbd", "ext4", "xfs"}, Files: files,
			})
			errs <- err
		}()
	}
	return errors.Join(<-errs, <-errs)
}

// build builds a program of this module.
func build(ctx context.Context, file, pkg, env string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", file}, flags...), pkg)...)
	cmd.Env = append(os.Environ(), env)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}

// machine is a node: a guest, an identity, and the way it maps.
type machine struct {
	*guest.Guest
	who     exclusive.Who
	cluster *ceph.Cluster
	spec    node.Spec
}

// machines gives both nodes with identities of this test's own.
func machines(t *testing.T) (a, b *machine) {
	t.Helper()
	cluster.Get(t)
	lab.once.Do(func() {
		begin := time.Now()
		if lab.err = lab.start(context.Background()); lab.err == nil {
			t.Logf("two guests up after %s", time.Since(begin).Round(100*time.Millisecond))
		}
	})
	if errors.Is(lab.err, guest.ErrNone) && os.Getenv("CI") != "true" {
		t.Skip(lab.err)
	}
	must(t, lab.err)
	return newMachine(t, lab.all[0], "a"), newMachine(t, lab.all[1], "b")
}

func newMachine(t *testing.T, g *guest.Guest, name string) *machine {
	t.Helper()
	s := cluster.Get(t)
	user := fmt.Sprintf("%s%d", name, names.Add(1))
	key, err := s.Auth(t.Context(), "client."+user, ceph.Caps(ceph.Node, embedded.CephPool))
	must(t, err)
	c, err := ceph.Open(ceph.Config{ID: "test", Monitors: s.Monitors(), User: user, Key: ceph.Secret(key), Timeout: 20 * time.Second})
	must(t, err)
	t.Cleanup(c.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of %s:\n%s", name, g.Console())
		}
	})
	return &machine{
		Guest: g, cluster: c, who: exclusive.Who{Machine: "machine-" + user, Node: name, Boot: "boot-1"},
		spec: node.Spec{
			FSID: s.FSID(), Within: 20 * time.Second,
			Config: mapper.OrderConfig{ID: "test", Monitors: s.Monitors(), User: user, Key: key, Timeout: 20 * time.Second},
		},
	}
}

// image makes an image with a blank hold. With the feature exclusive-lock Ceph too keeps a second writer waiting; without
// only the fence does.
func (m *machine) image(t *testing.T, features string) ceph.Image {
	t.Helper()
	name := fmt.Sprintf("image%d", names.Add(1))
	tool(t, "create", embedded.CephPool+"/"+name, "--size", "64M", "--image-feature", features)
	i, err := m.cluster.Registry().Image(t.Context(), embedded.CephPool, "", name)
	must(t, err)
	_, err = m.cluster.Registry().Swap(t.Context(), exclusive.Hold{Volume: i.String(), State: exclusive.Free})
	must(t, err)
	return i
}

const (
	locked = "layering,exclusive-lock"
	plain  = "layering"
)

func tool(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "rbd", append([]string{"--conf", cluster.Get(t).Conf()}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("rbd %q: %v: %s", args, err, bytes.TrimSpace(out))
	}
	return string(out)
}

// sh runs a line of shell in the guest.
func (m *machine) sh(t *testing.T, line string) (string, error) {
	t.Helper()
	return m.Run(context.Background(), 30*time.Second, "/bin/busybox", "sh", "-c", line)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
