//go:build ceph

package rbd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

var errDied = errors.New("the process has died here")

// mortal is a door through which a process makes so many calls and dies: the last one is carried out and its answer
// lost, and none follows.
type mortal struct {
	in   Images
	left *int
}

func through[T any](m mortal, f func() (T, error)) (T, error) {
	var none T
	if *m.left <= 0 {
		return none, errDied
	}
	*m.left--
	value, err := f()
	if *m.left == 0 {
		return none, errDied
	}
	return value, err
}

func throughErr(m mortal, f func() error) error {
	_, err := through(m, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (m mortal) Image(ctx context.Context, pool, namespace, name string) (ceph.Image, error) {
	return through(m, func() (ceph.Image, error) { return m.in.Image(ctx, pool, namespace, name) })
}

func (m mortal) Load(ctx context.Context, volume string) (exclusive.Hold, error) {
	return through(m, func() (exclusive.Hold, error) { return m.in.Load(ctx, volume) })
}

func (m mortal) Swap(ctx context.Context, h exclusive.Hold) (string, error) {
	return through(m, func() (string, error) { return m.in.Swap(ctx, h) })
}

func (m mortal) Remove(ctx context.Context, h exclusive.Hold) error {
	return throughErr(m, func() error { return m.in.Remove(ctx, h) })
}

func (m mortal) Facts(ctx context.Context, i ceph.Image) (ceph.Facts, error) {
	return through(m, func() (ceph.Facts, error) { return m.in.Facts(ctx, i) })
}

func (m mortal) Create(ctx context.Context, n ceph.New) error {
	return throughErr(m, func() error { return m.in.Create(ctx, n) })
}

func (m mortal) Clone(ctx context.Context, parent ceph.Image, snapshot string, n ceph.New) error {
	return throughErr(m, func() error { return m.in.Clone(ctx, parent, snapshot, n) })
}

func (m mortal) Label(ctx context.Context, i ceph.Image, key, value string) error {
	return throughErr(m, func() error { return m.in.Label(ctx, i, key, value) })
}

func (m mortal) Resize(ctx context.Context, i ceph.Image, size uint64) error {
	return throughErr(m, func() error { return m.in.Resize(ctx, i, size) })
}

func (m mortal) Snapshot(ctx context.Context, i ceph.Image, name string) error {
	return throughErr(m, func() error { return m.in.Snapshot(ctx, i, name) })
}

func (m mortal) RemoveSnapshot(ctx context.Context, i ceph.Image, name string) error {
	return throughErr(m, func() error { return m.in.RemoveSnapshot(ctx, i, name) })
}

func (m mortal) RemoveTrashed(ctx context.Context, i ceph.Image, id uint64) error {
	return throughErr(m, func() error { return m.in.RemoveTrashed(ctx, i, id) })
}

func (m mortal) Flatten(ctx context.Context, i ceph.Image) error {
	return throughErr(m, func() error { return m.in.Flatten(ctx, i) })
}

func (m mortal) Trash(ctx context.Context, i ceph.Image) error {
	return throughErr(m, func() error { return m.in.Trash(ctx, i) })
}

func (m mortal) Trashed(ctx context.Context, pool, namespace string) ([]ceph.Image, error) {
	return through(m, func() ([]ceph.Image, error) { return m.in.Trashed(ctx, pool, namespace) })
}

func (m mortal) Purge(ctx context.Context, i ceph.Image) error {
	return throughErr(m, func() error { return m.in.Purge(ctx, i) })
}

func (m mortal) RemoveCarcass(ctx context.Context, i ceph.Image) error {
	return throughErr(m, func() error { return m.in.RemoveCarcass(ctx, i) })
}

func (m mortal) Maker(ctx context.Context) (ceph.Maker, error) {
	return through(m, func() (ceph.Maker, error) { return m.in.Maker(ctx) })
}

func (m mortal) Begun(ctx context.Context, pool, namespace, name string) (string, error) {
	return through(m, func() (string, error) { return m.in.Begun(ctx, pool, namespace, name) })
}

func (m mortal) Notes(ctx context.Context, pool, namespace, name string) ([]string, error) {
	return through(m, func() ([]string, error) { return m.in.Notes(ctx, pool, namespace, name) })
}

func (m mortal) Note(ctx context.Context, pool, namespace, name, note string) error {
	return throughErr(m, func() error { return m.in.Note(ctx, pool, namespace, name, note) })
}

func (m mortal) Forget(ctx context.Context, pool, namespace, name string) error {
	return throughErr(m, func() error { return m.in.Forget(ctx, pool, namespace, name) })
}

func (m mortal) Images(ctx context.Context, pool, namespace string) ([]ceph.Image, error) {
	return through(m, func() ([]ceph.Image, error) { return m.in.Images(ctx, pool, namespace) })
}

func (m mortal) List(ctx context.Context, volume string, f exclusive.Fence) error {
	return throughErr(m, func() error { return m.in.List(ctx, volume, f) })
}

func (m mortal) Listed(ctx context.Context, volume, machine string, after exclusive.Instance) (exclusive.Fence, error) {
	return through(m, func() (exclusive.Fence, error) { return m.in.Listed(ctx, volume, machine, after) })
}

func (m mortal) Unlist(ctx context.Context, volume string, f exclusive.Fence) error {
	return throughErr(m, func() error { return m.in.Unlist(ctx, volume, f) })
}

// deadAfter is a controller process that dies after so many calls.
func (b *bench) deadAfter(calls int) *Controller {
	return &Controller{Clusters: b.Clusters, Node: "mortal", Decorate: func(i Images) Images { return mortal{i, &calls} }}
}

// TestCrashAtEveryStep lets the controller die after each of its calls to the cluster, in each of its operations, and then
// either tries the operation again and deletes, or deletes at once. Nothing may be left.
func TestCrashAtEveryStep(t *testing.T) {
	b := newBench(t)
	volume := func(name string) string { return ID{"test", b.pool, "", VolumeImage(name)}.String() }
	snapshot := func(name string) string { return ID{"test", b.pool, "", SnapshotImage(name)}.String() }
	createVolume := func(r *csi.CreateVolumeRequest) func(*Controller) error {
		return func(c *Controller) error { _, err := c.CreateVolume(b.ctx, r); return err }
	}
	deleteVolume := func(name string) func(*Controller) error {
		return func(c *Controller) error {
			_, err := c.DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: volume(name)})
			return err
		}
	}
	for _, c := range []struct {
		name   string
		before func()
		do     func(*Controller) error
		after  []string // to delete
	}{
		{"create", func() {}, createVolume(request("v")), []string{volume("v")}},
		{"delete", func() { b.create(request("v")) }, deleteVolume("v"), []string{volume("v")}},
		{"snapshot", func() { b.create(request("v")) }, func(c *Controller) error {
			_, err := c.CreateSnapshot(b.ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: volume("v")})
			return err
		}, []string{snapshot("s"), volume("v")}},
		{"clone", func() { b.create(request("v")) }, createVolume(fromVolume("c", volume("v"))), []string{volume("c"), volume("v")}},
		{"clone, source first", func() { b.create(request("v")) }, createVolume(fromVolume("c", volume("v"))), []string{volume("v"), volume("c")}},
		{"restore", func() { b.create(request("v")); b.snap("s", volume("v")) }, createVolume(fromSnapshot("r", snapshot("s"))),
			[]string{snapshot("s"), volume("r"), volume("v")}},
		{"delete of the last child", func() {
			b.create(request("v"))
			b.create(fromVolume("c", volume("v")))
			b.erase(volume("v"))
		}, deleteVolume("c"), []string{volume("c")}},
	} {
		for _, again := range []bool{true, false} {
			died := true
			for calls := 1; died; calls++ {
				c.before()
				err := c.do(b.deadAfter(calls))
				if died = errors.Is(err, errDied); !died && err != nil {
					t.Fatalf("%s, %d calls: %v", c.name, calls, err)
				}
				if again && err != nil {
					if err := c.do(b.Controller); err != nil {
						t.Fatalf("%s, again after %d calls: %v", c.name, calls, err)
					}
				}
				b.erase(c.after...)
				b.empty(fmt.Sprintf("%s, dead after %d calls, again %v", c.name, calls, again))
				if t.Failed() {
					return
				}
			}
		}
	}
}

// TestOracleBites is the control: a create that dies leaves something before anybody tries again.
func TestOracleBites(t *testing.T) {
	b := newBench(t)
	seen := 0
	for calls := 1; calls < 12; calls++ {
		_, err := b.deadAfter(calls).CreateVolume(b.ctx, request("v"))
		if errors.Is(err, errDied) && len(b.left()) > 0 {
			seen++
		}
		b.erase(ID{"test", b.pool, "", VolumeImage("v")}.String())
	}
	if seen < 4 {
		t.Errorf("the oracle has seen what is left in %d of the crashes only", seen)
	}
}

// TestNoOldData: a create that follows a delete which died gives a new volume.
func TestNoOldData(t *testing.T) {
	b := newBench(t)
	for calls := 1; calls < 30; calls++ {
		id := b.create(request("v"))
		h := b.hold(id)
		h.Formatted = true // it may have data
		old := b.swap(h)
		_, err := b.deadAfter(calls).DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		b.create(request("v"))
		// Either the delete had not begun and this is the old volume with its hold, or all of it is new.
		if now := b.hold(id); now.Volume != old.Volume && now.Formatted || now.Volume == old.Volume && !now.Formatted {
			t.Errorf("dead after %d calls: the hold was %+v and is %+v", calls, old, now)
		}
		b.erase(id)
		b.empty("deleted")
		if err == nil {
			return
		}
	}
	t.Error("the delete has not ended")
}
