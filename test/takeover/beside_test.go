//go:build ceph

package takeover

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// TestBeside: snapshot, resize, flatten and rbd status by somebody else on a volume that is in use, with further
// watchers on it as a mirroring daemon is one. All work while the owner lives, and it writes on. With a hung owner
// it is printed what each does and how long it takes: each that needs the lock waits until the owner's watch has
// lapsed (osd_client_watch_timeout), and then librbd fences the owner, that client only.
func TestBeside(t *testing.T) {
	f := fleet(t)
	for _, hung := range []bool{false, true} {
		for _, what := range []string{"rbd status", "snapshot", "resize", "flatten"} {
			t.Run(fmt.Sprintf("hung=%v/%s", hung, what), func(t *testing.T) { beside(t, f, what, hung) })
		}
	}
}

func beside(t *testing.T, f *Fleet, what string, hung bool) {
	ctx := t.Context()
	a := machine(t, f, "a")
	volume := clone(t, f)
	other, err := f.Volume(ctx, Locked)
	must(t, err)
	task, quiet := Task{Volume: volume}, Task{Volume: other}
	writer, device, err := Begin(ctx, a, task, 1)
	must(t, err)
	elsewhere, _, err := Begin(ctx, a, quiet, 1)
	must(t, err)
	must(t, writer.Await(ctx, Blocks))
	watch(t, f, volume, 3)
	if hung {
		must(t, a.Signal(device, syscall.SIGSTOP))
	}
	i, err := ceph.ParseImage(volume)
	must(t, err)
	begin := time.Now()
	args := map[string][]string{
		"rbd status": {"status", i.Spec()},
		"snapshot":   {"snap", "create", i.Spec() + "@one", "--no-progress"},
		"resize":     {"resize", i.Spec(), "--size", "128M", "--no-progress"},
		"flatten":    {"flatten", i.Spec(), "--no-progress"},
	}[what]
	_, failed := f.Ceph.Run(ctx, "rbd", args...)
	took := time.Since(begin).Round(10 * time.Millisecond)
	if hung {
		must(t, a.Signal(device, syscall.SIGCONT))
	}
	list, err := f.cluster.Fencer().Blocklist(ctx)
	must(t, err)
	fenced := false
	for _, e := range list.Entries {
		fenced = fenced || e.Instance == device.Instance
	}
	t.Logf("owner hung %v, %s: %s, error %v, owner fenced by Ceph: %v", hung, what, took, failed, fenced)
	if failed != nil && !hung {
		t.Errorf("beside a live owner: %v", failed)
	}
	if fenced && (!hung || what == "rbd status") {
		t.Error("the owner was fenced")
	}
	must(t, elsewhere.Await(ctx, Blocks)) // the machine's other volume is unharmed
	must(t, End(ctx, a, quiet, elsewhere))
	if !fenced {
		must(t, writer.Await(ctx, Blocks))
		must(t, End(ctx, a, task, writer))
		return
	}
	// Its own fence: the workload fails at once, the node gives the device back and stages anew.
	how, err := writer.Ended(ctx)
	must(t, err)
	if how == nil {
		t.Error("fenced, and the writer ended without an error")
	}
	task.Verb = exclusive.Unstage
	_, err = a.Expect(ctx, task, exclusive.Done)
	must(t, err)
	again, _, err := Begin(ctx, a, task, 2)
	must(t, err)
	must(t, again.Await(ctx, Blocks))
	must(t, End(ctx, a, task, again))
}

// clone makes a volume that has a parent, so that it can be flattened.
func clone(t *testing.T, f *Fleet) string {
	t.Helper()
	parent, err := f.Volume(t.Context(), Locked)
	must(t, err)
	i, err := ceph.ParseImage(parent)
	must(t, err)
	name := i.Name + "-clone"
	for _, args := range [][]string{
		{"bench", i.Spec(), "--io-type", "write", "--io-size", "1M", "--io-total", "16M"},
		{"snap", "create", i.Spec() + "@base", "--no-progress"},
		{"snap", "protect", i.Spec() + "@base"},
		{"clone", i.Spec() + "@base", i.Pool + "/" + name, "--image-feature", "layering,exclusive-lock"},
	} {
		if _, err := f.Ceph.Run(t.Context(), "rbd", args...); err != nil {
			t.Fatal(err)
		}
	}
	made, err := f.cluster.Registry().Image(t.Context(), i.Pool, "", name)
	must(t, err)
	_, err = f.cluster.Registry().Swap(t.Context(), exclusive.Hold{Volume: made.String(), State: exclusive.Free, Formatted: true})
	must(t, err)
	return made.String()
}

// watch has clients watch an image for as long as the test runs.
func watch(t *testing.T, f *Fleet, volume string, clients int) {
	t.Helper()
	i, err := ceph.ParseImage(volume)
	must(t, err)
	stop, ready := make(chan struct{}), make(chan error, clients)
	done := make(chan error, clients)
	for range clients {
		go func() {
			done <- f.InPool(func(io *rados.IOContext) error {
				image, err := rbd.OpenImageById(io, i.ID, rbd.NoSnapshot)
				ready <- err
				if err != nil {
					return err
				}
				<-stop
				return image.Close()
			})
		}()
	}
	t.Cleanup(func() {
		close(stop)
		for range clients {
			if err := <-done; err != nil {
				t.Errorf("a further watcher: %v", err)
			}
		}
	})
	for range clients {
		must(t, <-ready)
	}
}

// TestManyWatchers: an image with further watchers, one of them the next owner's machine, is taken over, and only the
// recorded instance is fenced.
func TestManyWatchers(t *testing.T) {
	f, ctx := fleet(t), t.Context()
	a, b := machine(t, f, "a"), machine(t, f, "b")
	volume, err := f.Volume(ctx, Locked)
	must(t, err)
	task := Task{Volume: volume}
	writer, device, err := Begin(ctx, a, task, 1)
	must(t, err)
	watch(t, f, volume, 10)
	if n, err := f.Watchers(volume); err != nil || n != 11 {
		t.Fatalf("%d watchers, %v", n, err)
	}
	before, err := f.cluster.Fencer().Blocklist(ctx)
	must(t, err)
	p := &Play{Fleet: f, Owner: a, Taker: b, Task: task, Fate: Alive, Old: writer, Device: device}
	o, err := p.Run(ctx)
	must(t, err)
	if o.Lost+o.OldOver > 0 {
		t.Errorf("%+v", o)
	}
	after, err := f.cluster.Fencer().Blocklist(ctx)
	must(t, err)
	for _, e := range after.Entries {
		known := e.Instance == device.Instance
		for _, was := range before.Entries {
			known = known || was.Instance == e.Instance
		}
		if !known {
			t.Errorf("%s is fenced too", e.Instance)
		}
	}
	if n, err := f.Watchers(volume); err != nil || n != 11 { // the new owner and the ten
		t.Errorf("%d watchers, %v", n, err)
	}
	must(t, End(ctx, b, task, o.Writer))
}
