//go:build ceph

package rbd

import (
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/exclusive"
)

func TestVolumeLife(t *testing.T) {
	b := newBench(t)
	id := b.create(request("pvc-1"))
	if again := b.create(request("pvc-1")); again != id {
		t.Errorf("a second create gave %s, the first %s", again, id)
	}
	h := b.hold(id)
	if h.State != exclusive.Free || h.Formatted {
		t.Errorf("the first hold is %+v", h)
	}
	if len(b.left()) == 0 {
		t.Error("the oracle does not see a volume")
	}
	bigger := request("pvc-1")
	bigger.CapacityRange.RequiredBytes = 64 << 20
	_, err := b.CreateVolume(b.ctx, bigger)
	wantCode(t, err, codes.AlreadyExists, "pvc-1")

	grown, err := b.ControllerExpandVolume(b.ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 9 << 20}})
	if err != nil || grown.GetCapacityBytes() != 12<<20 {
		t.Errorf("expanded: %v, %v", grown, err)
	}
	list, err := b.ListVolumes(b.ctx, &csi.ListVolumesRequest{})
	if err != nil || len(list.GetEntries()) != 1 || list.GetEntries()[0].GetVolume().GetVolumeId() != id {
		t.Errorf("list: %v, %v", list, err)
	}
	b.erase(id, id)
	b.empty("deleted")
}

func TestDeleteInUseAndPublish(t *testing.T) {
	b := newBench(t)
	id := b.create(request("pvc-1"))
	b.beat("node-a")
	b.beat("node-b")
	publish := func(node string) error {
		_, err := b.ControllerPublishVolume(b.ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: single})
		return err
	}
	wantCode(t, publish("node-c"), codes.NotFound, "node-c")
	wantCode(t, publish("node-a"), codes.OK)

	h := b.hold(id)
	h.State, h.Epoch, h.Instance = exclusive.Mapped, 1, "127.0.0.1:0/4242"
	h.Who = exclusive.Who{Machine: "m-node-a", Node: "node-a", Boot: "b"}
	b.swap(h)
	wantCode(t, publish("node-a"), codes.OK)
	wantCode(t, publish("node-b"), codes.FailedPrecondition, "node-a")
	_, err := b.DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	wantCode(t, err, codes.FailedPrecondition, "node-a")

	unpublish := func(node string) {
		t.Helper()
		_, err := b.ControllerUnpublishVolume(b.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
		wantCode(t, err, codes.OK)
	}
	unpublish("node-b")
	if h := b.hold(id); h.State != exclusive.Mapped {
		t.Errorf("unpublish of another node: %+v", h)
	}
	unpublish("node-a")
	unpublish("node-a")
	h = b.hold(id)
	if h.State != exclusive.Free {
		t.Errorf("after unpublish: %+v", h)
	}
	c, err := b.Clusters.Get("test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := c.Fencer().Fenced(b.ctx, "127.0.0.1:0/4242"); err != nil || !ok {
		t.Errorf("fenced: %v, %v", ok, err)
	}
	wantCode(t, publish("node-b"), codes.OK)
	b.erase(id)
	unpublish("node-a") // of a volume that is gone
}

// TestAnyOrder deletes a volume, its snapshot, what was restored from it and a clone in every order.
func TestAnyOrder(t *testing.T) {
	b := newBench(t)
	orders := [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 0, 1, 3}, {0, 3, 1, 2}, {1, 2, 0, 3}}
	for _, order := range orders {
		volume := b.create(request("v"))
		snapshot := b.snap("s", volume)
		if again := b.snap("s", volume); again != snapshot {
			t.Errorf("a second snapshot: %s", again)
		}
		ids := []string{volume, snapshot, b.create(fromSnapshot("restored", snapshot)), b.create(fromVolume("clone", volume))}
		if h := b.hold(ids[2]); !h.Formatted || h.State != exclusive.Free {
			t.Errorf("the hold of a restored volume: %+v", h)
		}
		for _, n := range order {
			b.erase(ids[n])
		}
		b.empty("deleted in another order")
		if t.Failed() {
			t.Fatalf("order %v", order)
		}
	}
}

func TestForeignImage(t *testing.T) {
	b := newBench(t)
	run := server.Get(t)
	if _, err := run.Run(b.ctx, "rbd", "create", "--size", "8M", b.pool+"/"+VolumeImage("theirs")); err != nil {
		t.Fatal(err)
	}
	_, err := b.CreateVolume(b.ctx, request("theirs"))
	wantCode(t, err, codes.AlreadyExists, "left alone")
	_, err = b.DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: ID{"test", b.pool, "", VolumeImage("theirs")}.String()})
	wantCode(t, err, codes.FailedPrecondition, "left alone")
	if _, err := run.Run(b.ctx, "rbd", "info", b.pool+"/"+VolumeImage("theirs")); err != nil {
		t.Errorf("the foreign image is gone: %v", err)
	}
	// A foreign clone of ours inherits our mark, and is foreign all the same.
	id := b.create(request("ours"))
	for _, args := range [][]string{
		{"snap", "create", b.pool + "/" + VolumeImage("ours") + "@x"},
		{"clone", "--rbd-default-clone-format=2", b.pool + "/" + VolumeImage("ours") + "@x", b.pool + "/" + VolumeImage("copied")},
		{"snap", "rm", b.pool + "/" + VolumeImage("ours") + "@x"},
	} {
		if out, err := run.Run(b.ctx, "rbd", args...); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	_, err = b.CreateVolume(b.ctx, request("copied"))
	wantCode(t, err, codes.AlreadyExists, "left alone")
	b.erase(id)
}

func TestRacingCreates(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for range 4 {
		other := &Controller{Clusters: b.Clusters, Node: "other"}
		wg.Go(func() {
			_, err := other.CreateVolume(b.ctx, request("race"))
			if err != nil {
				t.Logf("one of the racers: %v", err)
			}
		})
		wg.Go(func() {
			_, _ = other.DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: ID{"test", b.pool, "", VolumeImage("race")}.String()})
		})
	}
	wg.Wait()
	id := b.create(request("race"))
	if h := b.hold(id); h.State != exclusive.Free {
		t.Errorf("hold %+v", h)
	}
	b.erase(id)
	b.empty("raced")
}
