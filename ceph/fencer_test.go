//go:build ceph

package ceph

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

func write(r *rados.Conn, object string) error {
	io, err := r.OpenIOContext(embedded.CephPool)
	if err != nil {
		return err
	}
	defer io.Destroy()
	return io.WriteFull(object, []byte("x"))
}

// TestFenceHitsOneClient: of two clients of this process one is fenced, and only that one stops.
func TestFenceHitsOneClient(t *testing.T) {
	c, ctx := node(t), t.Context()
	f := c.Fencer()
	bad, badAt := client(t, c)
	good, goodAt := client(t, c)
	if badAt == goodAt {
		t.Fatalf("two clients at one address %s", badAt)
	}
	if err := errors.Join(write(bad, "a"), write(good, "a")); err != nil {
		t.Fatal(err)
	}
	fenced := func() bool {
		ok, err := f.Fenced(ctx, exclusive.Instance(badAt))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if fenced() {
		t.Error("fenced before it was")
	}
	before, err := c.Epoch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	barrier, err := f.Fence(ctx, exclusive.Instance(badAt))
	if err != nil || barrier <= before {
		t.Fatalf("barrier %d after epoch %d, %v", barrier, before, err)
	}
	if !fenced() {
		t.Error("the entry is not read back")
	}
	if err := Reach(good, barrier); err != nil {
		t.Error(err)
	}
	// The other client wrote behind the barrier, so the OSD has the map with the entry.
	if err := write(good, "a"); err != nil {
		t.Errorf("the other client: %v", err)
	}
	if err := write(bad, "a"); errno(err) != syscall.ESHUTDOWN {
		t.Errorf("the fenced client: %v", err)
	}
	if err := f.Lift(ctx, exclusive.Instance(badAt), exclusive.Unmapped); err != nil {
		t.Error(err)
	}
	if fenced() {
		t.Error("still fenced after the lift")
	}
	if err := f.Lift(ctx, exclusive.Instance(badAt), exclusive.Unmapped); err != nil {
		t.Errorf("a second lift: %v", err)
	}
}

// TestFenceStandsForYears: while an entry of Ceph's own stands, a fence has no effect and is not confirmed; after that
// it stands for years.
func TestFenceStandsForYears(t *testing.T) {
	c, ctx := node(t), t.Context()
	const at = "192.0.2.7:0/42"
	admin := func(op string) {
		t.Helper()
		if _, err := server.Get(t).Mon(ctx, map[string]any{"prefix": "osd blocklist", "blocklistop": op, "addr": at}); err != nil {
			t.Fatal(err)
		}
	}
	fence := func() (confirmed bool) {
		t.Helper()
		if _, err := c.Fencer().Fence(ctx, at); err != nil {
			t.Fatal(err)
		}
		confirmed, err := c.Fencer().Fenced(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		return confirmed
	}
	admin("add")
	if fence() {
		t.Error("confirmed although an entry of an hour stands")
	}
	// A clock that was reset does not make years of an hour.
	behind := c.Fencer()
	behind.now = func() time.Time { return time.Unix(0, 0) }
	if ok, err := behind.Fenced(ctx, at); err != nil || ok {
		t.Errorf("with a clock of 1970: %v, %v", ok, err)
	}
	admin("rm")
	if !fence() {
		t.Error("not confirmed after that entry is gone")
	}
	admin("add")
	list, err := c.Fencer().Blocklist(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := list.Fence(at)
	if left := time.Until(e.Until); !ok || left < 9*365*24*time.Hour {
		t.Errorf("the entry stands for %s, among %v", left, list)
	}
	if err := c.Fencer().Lift(ctx, at, exclusive.Rebooted); err != nil {
		t.Error(err)
	}
}

// TestFenceIsExact: nothing wider than one client.
func TestFenceIsExact(t *testing.T) {
	c, ctx := node(t), t.Context()
	before, err := c.Epoch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []exclusive.Instance{
		"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:0/0", "10.0.0.1:0/", "0.0.0.0:0/5", "10.0.0.0/24", "node-1:0/5",
		"v2:10.0.0.1:0/5", "10.0.0.1:0/5 10.0.0.2:0/5", "10.0.0.1:0/4294967296",
	} {
		if _, err := c.Fencer().Fence(ctx, i); err == nil {
			t.Errorf("%q was fenced", i)
		}
		if err := c.Fencer().Lift(ctx, i, exclusive.Unmapped); err == nil {
			t.Errorf("%q was lifted", i)
		}
	}
	if after, err := c.Epoch(ctx); err != nil || after != before {
		t.Errorf("the cluster was touched: epoch %d, then %d, %v", before, after, err)
	}
}

// TestOpenerLeavesTheFence: whoever opens the image of a fenced owner breaks its lock and fences it for an hour, and
// our entry stands all the same.
func TestOpenerLeavesTheFence(t *testing.T) {
	c, ctx := node(t), t.Context()
	i := image(t, c)
	old, oldAt := client(t, c)
	writeBlock := func(r *rados.Conn, then func(*rbd.Image) error) error {
		io, err := r.OpenIOContext(i.Pool)
		if err != nil {
			return err
		}
		defer io.Destroy()
		img, err := rbd.OpenImageById(io, i.ID, rbd.NoSnapshot)
		if err != nil {
			return err
		}
		if _, err := img.WriteAt(make([]byte, 4096), 0); err != nil {
			return errors.Join(err, img.Close())
		}
		return then(img)
	}
	var orphan *rbd.Image
	if err := writeBlock(old, func(i *rbd.Image) error { orphan = i; return nil }); err != nil {
		t.Fatal(err)
	}
	// A fenced client closes with an error, which is no concern of this test.
	t.Cleanup(func() { _ = orphan.Close() })
	if _, err := c.Fencer().Fence(ctx, exclusive.Instance(oldAt)); err != nil {
		t.Fatal(err)
	}
	next, _ := client(t, c)
	if err := writeBlock(next, (*rbd.Image).Close); err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Fencer().Fenced(ctx, exclusive.Instance(oldAt)); err != nil || !ok {
		t.Errorf("the fence stands: %v, %v", ok, err)
	}
}
