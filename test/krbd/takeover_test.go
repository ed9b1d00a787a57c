//go:build ceph

package krbd

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/krbd/node"
)

// unstageWithin is how long a node may take to let go of what was taken from it.
const unstageWithin = 30 * time.Second

// TestTakeOver: the owner's machine is paused and wakes after the take-over. It writes no byte more, its other volume is
// unharmed, it gives back in bounded time, and only then its fence is lifted.
func TestTakeOver(t *testing.T) {
	a, b := machines(t)
	volume, other := a.image(t, locked).String(), a.image(t, locked).String()
	target, elsewhere := at(volume, "ext4"), at(other, "ext4")
	onA, onB, otherOnA := a.device(t, volume, target), b.device(t, volume, target), a.device(t, other, elsewhere)
	otherOnA.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done)
	owner := onA.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done).Map
	a.write(t, target.Path+"/before", true)
	_, err := a.sh(t, "echo dirty > "+target.Path+"/late") // in its memory only, when it is paused
	must(t, err)

	must(t, a.Pause())
	t.Cleanup(func() { _ = a.Resume() })
	onB.expect(t, exclusive.Stage, exclusive.Silent, exclusive.Done)
	b.write(t, target.Path+"/after", true)
	must(t, a.Resume())

	a.write(t, target.Path+"/again", false)
	a.write(t, elsewhere.Path+"/data", true)
	if !a.fenced(t, owner.Instance) {
		t.Error("the old owner is not fenced")
	}
	onA.expect(t, exclusive.Check, exclusive.Alive, exclusive.Gone)
	onB.expect(t, exclusive.Sweep, exclusive.Alive, exclusive.Done)
	if !a.fenced(t, owner.Instance) {
		t.Error("lifted by another machine")
	}
	begin := time.Now()
	onA.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
	if took := time.Since(begin); took > unstageWithin {
		t.Errorf("the old owner took %s to let go", took)
	}
	if a.fenced(t, owner.Instance) {
		t.Error("not lifted although the owner has unmapped")
	}
	if got := b.read(t, target.Path+"/before"); got != "a" {
		t.Errorf("an acknowledged write is lost: %q", got)
	}
	if out, err := b.sh(t, "cd "+target.Path+" && ls late again"); err == nil {
		t.Errorf("the old owner's files are there: %s", out)
	}
	otherOnA.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
	onB.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
}

// write writes a file with the node's name, down to the cluster, and says whether that works.
func (m *machine) write(t *testing.T, path string, works bool) {
	t.Helper()
	_, err := m.sh(t, fmt.Sprintf("echo %s > %s && sync -d %s", m.who.Node, path, path))
	if works != (err == nil) {
		t.Errorf("write %s: %v", path, err)
	}
}

func (m *machine) fenced(t *testing.T, i exclusive.Instance) bool {
	t.Helper()
	ok, err := m.cluster.Fencer().Fenced(t.Context(), i)
	must(t, err)
	return ok
}

// TestDataPath: a machine is paused while it writes without end, another takes over and writes all blocks, and the first
// is resumed. With the fence not one block of it lands; without, they do, so that this test can see them.
func TestDataPath(t *testing.T) {
	for _, fence := range []bool{true, false} {
		t.Run(fmt.Sprintf("fence=%v", fence), func(t *testing.T) {
			for range 3 {
				a, b := machines(t)
				image := a.image(t, plain)
				volume := image.String()
				target := mapper.Target{Path: "/run/at/" + image.Name, Block: true}
				onA, onB := a.device(t, volume, target), b.device(t, volume, target)
				old := onA.expect(t, exclusive.Stage, exclusive.Alive, exclusive.Done).Map
				call[struct{}](t, a, "Begin", node.Writing{Device: old.Device, Name: 1})
				a.writes(t, old.Device, node.Blocks/2)
				before := call[node.Wrote](t, a, "Acked", old.Device).Acked
				must(t, a.Pause())
				t.Cleanup(func() { _ = a.Resume() })

				var next exclusive.Mapping
				if fence {
					next = onB.expect(t, exclusive.Stage, exclusive.Silent, exclusive.Done).Map
				} else {
					next = b.mapped(t, volume)
				}
				_, numbers := b.blocks(t, image)
				for n := range before {
					if numbers[n] < before[n] {
						t.Errorf("block %d: the write %d was acknowledged, and %d is there", n, before[n], numbers[n])
					}
				}
				call[struct{}](t, b, "Begin", node.Writing{Device: next.Device, Name: 2, Count: node.Blocks})
				if wrote := call[node.Wrote](t, b, "End", next.Device); wrote.Error != "" {
					t.Fatal("the new owner: ", wrote.Error)
				}
				must(t, a.Resume())

				var ended node.Wrote
				if fence {
					if ended = call[node.Wrote](t, a, "End", old.Device); ended.Error == "" {
						t.Error("the old writer was never refused")
					}
				} else {
					a.writes(t, old.Device, 4*node.Blocks)
					ended = call[node.Wrote](t, a, "Stop", old.Device)
				}
				names, _ := b.blocks(t, image)
				landed := 0
				for _, name := range names {
					if name != 2 {
						landed++
					}
				}
				t.Logf("%d of %d blocks are the old writer's; it ended with %q", landed, node.Blocks, ended.Error)
				if fence != (landed == 0) {
					t.Errorf("fence %v, and %d blocks of the old writer landed", fence, landed)
				}
				onA.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
				if fence {
					onB.expect(t, exclusive.Unstage, exclusive.Alive, exclusive.Done)
				}
			}
		})
	}
}

// writes returns when a writer has had a write of that number acknowledged.
func (m *machine) writes(t *testing.T, device string, number uint64) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		for _, n := range call[node.Wrote](t, m, "Acked", device).Acked {
			if n >= number {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s has not written %d blocks to %s within 30 s", m.who.Node, number, device)
		}
	}
}

// blocks reads from the cluster itself who wrote each block, and its number.
func (m *machine) blocks(t *testing.T, i ceph.Image) (names, numbers [node.Blocks]uint64) {
	t.Helper()
	config, err := m.cluster.Config()
	must(t, err)
	r, _, err := ceph.Dial(config, nil)
	must(t, err)
	defer r.Shutdown()
	io, err := r.OpenIOContext(i.Pool)
	must(t, err)
	defer io.Destroy()
	image, err := rbd.OpenImageByIdReadOnly(io, i.ID, rbd.NoSnapshot)
	must(t, err)
	defer image.Close()
	all := make([]byte, node.Blocks*node.BlockSize)
	_, err = image.ReadAt(all, 0)
	must(t, err)
	for n := range node.Blocks {
		names[n] = binary.LittleEndian.Uint64(all[n*node.BlockSize:])
		numbers[n] = binary.LittleEndian.Uint64(all[n*node.BlockSize+8:])
	}
	return names, numbers
}

// TestUnmapInFlight: writes hang, since the cluster's disk does, and the client is fenced meanwhile. An unmap ends in
// bounded time: refused, as long as somebody uses the device; done, once the cluster has refused the writes.
func TestUnmapInFlight(t *testing.T) {
	a, _ := machines(t)
	a.spec.Within = 5 * time.Second
	volume := a.image(t, plain).String()
	d := a.device(t, volume, mapper.Target{})
	m, err := d.Map(t.Context(), volume)
	must(t, err)
	call[struct{}](t, a, "Begin", node.Writing{Device: m.Device, Name: 1})
	a.writes(t, m.Device, 10)
	disk := cluster.Get(t).OSDProcess()
	must(t, disk.Pause())
	t.Cleanup(func() { _ = disk.Resume() })
	_, err = a.cluster.Fencer().Fence(t.Context(), m.Instance)
	must(t, err)
	begin := time.Now()
	err = d.Unmap(t.Context(), m)
	if took := time.Since(begin); took > 2*a.spec.Within || err == nil {
		t.Errorf("unmapped while its writer hangs: %v, after %s", err, took)
	}
	t.Logf("while the disk hangs: %v", err)
	must(t, disk.Resume())
	if wrote := call[node.Wrote](t, a, "End", m.Device); wrote.Error == "" {
		t.Error("the writer goes on")
	}
	begin = time.Now()
	must(t, d.Unmap(t.Context(), m))
	if took := time.Since(begin); took > 2*a.spec.Within {
		t.Errorf("took %s", took)
	}
	if left := a.list(t, volume); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	must(t, a.cluster.Fencer().Lift(context.Background(), m.Instance, exclusive.Unmapped))
}
