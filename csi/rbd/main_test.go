//go:build ceph

package rbd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ceph/go-ceph/rados"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/embedded/cephtest"
	"github.com/custody-storage/custody/exclusive"
)

var server cephtest.Cluster

func TestMain(m *testing.M) { os.Exit(server.Run(m)) }

var names atomic.Int64

// bench is a controller with just a controller's rights, in a pool of its own.
type bench struct {
	*Controller
	t    *testing.T
	ctx  context.Context
	pool string
	io   *rados.IOContext
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, ctx := server.Get(t), t.Context()
	n := names.Add(1)
	pool, user := fmt.Sprintf("pool%d", n), fmt.Sprintf("controller%d", n)
	if err := s.Pool(ctx, pool); err != nil {
		t.Fatal(err)
	}
	key, err := s.Auth(ctx, "client."+user, ceph.Caps(ceph.Controller, pool))
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/key"
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := ceph.Entry{ID: "test", Monitors: s.Monitors(), Pools: []string{pool}, Timeout: "10s", Controller: &ceph.Identity{User: user, KeyFile: file}}
	clusters := &Clusters{File: ceph.Clusters{Clusters: []ceph.Entry{entry}}, Role: ceph.Controller}
	t.Cleanup(clusters.Close)
	return &bench{Controller: &Controller{Clusters: clusters, Node: "controller"}, t: t, ctx: ctx, pool: pool}
}

// door is the cluster's without decoration.
func (b *bench) door() door {
	b.t.Helper()
	d, err := (&Controller{Clusters: b.Clusters}).door("test", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

func mounted(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

var single = mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)

func request(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{single},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 8 << 20},
	}
}

func fromSnapshot(name, id string) *csi.CreateVolumeRequest {
	r := request(name)
	r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
	return r
}

func fromVolume(name, id string) *csi.CreateVolumeRequest {
	r := request(name)
	r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
	return r
}

func (b *bench) create(r *csi.CreateVolumeRequest) string {
	b.t.Helper()
	v, err := b.CreateVolume(b.ctx, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return v.GetVolume().GetVolumeId()
}

func (b *bench) snap(name, of string) string {
	b.t.Helper()
	s, err := b.CreateSnapshot(b.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: of})
	if err != nil {
		b.t.Fatal(err)
	}
	return s.GetSnapshot().GetSnapshotId()
}

func (b *bench) erase(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		var err error
		if strings.Contains(id, snapshotPrefix) {
			_, err = b.DeleteSnapshot(b.ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
		} else {
			_, err = b.DeleteVolume(b.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		}
		if err != nil {
			b.t.Errorf("delete %s: %v", id, err)
		}
	}
}

// left is the oracle: the pool's own list of what it has, beside what RBD keeps once for all images. It has a client of
// its own.
func (b *bench) left() []string {
	b.t.Helper()
	if b.io == nil {
		b.connect()
	}
	left := []string{}
	list, err := b.io.Iter()
	if err != nil {
		b.t.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		switch name := list.Value(); name {
		case "rbd_directory", "rbd_info", "rbd_children", "rbd_trash", "rbd_mirroring", "rbd_task":
		default:
			left = append(left, name)
		}
	}
	if err := list.Err(); err != nil {
		b.t.Fatal(err)
	}
	for _, object := range []string{"rbd_directory", "rbd_trash", "rbd_children"} {
		keys, err := b.io.GetAllOmapValues(object, "", "", 100)
		if err == nil && len(keys) > 0 {
			left = append(left, fmt.Sprintf("%s: %q", object, slices.Collect(maps.Keys(keys))))
		}
	}
	return left
}

func (b *bench) connect() {
	b.t.Helper()
	c, err := b.Clusters.Get("test", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	config, err := c.Config()
	if err != nil {
		b.t.Fatal(err)
	}
	r, _, err := ceph.Dial(config, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(r.Shutdown)
	if b.io, err = r.OpenIOContext(b.pool); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(b.io.Destroy)
}

func (b *bench) empty(after string) {
	b.t.Helper()
	if left := b.left(); len(left) > 0 {
		b.t.Errorf("%s: left in the pool: %q", after, left)
	}
}

func wantCode(t *testing.T, err error, code codes.Code, words ...string) {
	t.Helper()
	if status.Code(coded(err)) != code {
		t.Errorf("%v; wanted is code %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// hold gives a volume's hold, and its image.
func (b *bench) hold(id string) exclusive.Hold {
	b.t.Helper()
	v, err := ParseVolumeID(id)
	if err != nil {
		b.t.Fatal(err)
	}
	d := b.door()
	i, err := d.Image(b.ctx, v.Pool, v.Namespace, v.Image)
	if err != nil {
		b.t.Fatal(err)
	}
	h, err := d.Load(b.ctx, i.String())
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bench) swap(h exclusive.Hold) exclusive.Hold {
	b.t.Helper()
	rev, err := b.door().Swap(b.ctx, h)
	if err != nil {
		b.t.Fatal(err)
	}
	h.Rev = rev
	return h
}

// beat makes a node known.
func (b *bench) beat(node string) {
	b.t.Helper()
	c, err := b.Clusters.Get("test", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.Heart(b.pool, "", exclusive.Who{Machine: "m-" + node, Node: node, Boot: "b"}).Beat(b.ctx); err != nil {
		b.t.Fatal(err)
	}
}
