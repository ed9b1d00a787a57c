//go:build ceph

package rbd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/custody-storage/custody/ceph"
)

// CreateVolume implements [csi.ControllerServer].
func (c *Controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" {
		return nil, invalid("name is missing")
	}
	shared, err := checkCapabilities(r.GetVolumeCapabilities())
	if err != nil {
		return nil, err
	}
	at, err := parsePlace(r.GetParameters())
	if err != nil {
		return nil, err
	}
	bits, err := at.bits(shared)
	if err != nil {
		return nil, err
	}
	bytes, err := size(r.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	d, id, err := c.place(at, VolumeImage(r.GetName()), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	source := r.GetVolumeContentSource()
	p := plan{id: id, size: bytes, features: bits, dataPool: at.dataPool, hold: true, mark: Mark{Name: r.GetName(), Source: sourceID(source)}}
	if p.parent, p.snapshot, err = c.origin(ctx, d, source, r.GetSecrets()); err != nil {
		return nil, err
	}
	if p.parent != nil {
		if r.GetCapacityRange().GetRequiredBytes() == 0 {
			p.size = p.parent.Size
		}
		if p.size < p.parent.Size {
			return nil, status.Errorf(codes.OutOfRange, "the source has %d bytes, and %d are asked for", p.parent.Size, p.size)
		}
	}
	t, err := d.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	have := max(t.Size, p.size)
	if t.mark.State == ready {
		have = t.Size
	}
	if !within(have, r.GetCapacityRange()) || t.mark.State == ready && t.mark.Source != p.mark.Source {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is there with %d bytes and source %q", id, have, t.mark.Source)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id.String(), CapacityBytes: int64(have), ContentSource: source}}, nil
}

// place opens the door to where a new image is asked for.
func (c *Controller) place(at place, image string, secrets map[string]string) (door, ID, error) {
	entry, err := c.Clusters.File.Entry(at.cluster)
	if err != nil {
		return door{}, ID{}, invalid("parameter clusterID: %v", err)
	}
	if at.pool == "" {
		at.pool, at.namespace, _ = strings.Cut(entry.Pools[0], "/")
	}
	if !entry.Has(at.pool, at.namespace) {
		return door{}, ID{}, invalid("parameters pool and namespace: %q, %q are not in the configuration of cluster %q, which has %q", at.pool, at.namespace, entry.ID, entry.Pools)
	}
	id := ID{entry.ID, at.pool, at.namespace, image}
	if err := id.fits(); err != nil {
		return door{}, id, invalid("%v", err)
	}
	d, err := c.door(entry.ID, secrets)
	return d, id, err
}

func sourceID(s *csi.VolumeContentSource) string {
	if id := s.GetSnapshot().GetSnapshotId(); id != "" {
		return id
	}
	return s.GetVolume().GetVolumeId()
}

// origin finds what a volume is to be cloned from.
func (c *Controller) origin(ctx context.Context, d door, s *csi.VolumeContentSource, secrets map[string]string) (*thing, string, error) {
	if s == nil {
		return nil, "", nil
	}
	parse, snapshot := ParseVolumeID, ""
	if s.GetSnapshot() != nil {
		parse, snapshot = ParseSnapshotID, base
	}
	id, err := parse(sourceID(s))
	if err != nil {
		return nil, "", notFound("volume_content_source: %v", err)
	}
	if id.Cluster != d.entry.ID {
		return nil, "", invalid("volume_content_source: it is in Ceph cluster %q, and the volume is asked for in %q", id.Cluster, d.entry.ID)
	}
	t, err := d.find(ctx, id)
	return &t, snapshot, err
}

// DeleteVolume implements [csi.ControllerServer].
func (c *Controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume_id is missing")
	}
	id, err := ParseVolumeID(r.GetVolumeId())
	if err != nil {
		return &csi.DeleteVolumeResponse{}, nil // it can't exist
	}
	return &csi.DeleteVolumeResponse{}, c.delete(ctx, id, r.GetSecrets())
}

func (c *Controller) delete(ctx context.Context, id ID, secrets map[string]string) error {
	d, err := c.door(id.Cluster, secrets)
	if err != nil {
		return failedPrecondition("delete %s: %v", id, err) // not NOT_FOUND, which the CO may take for done
	}
	image, err := d.Image(ctx, id.Pool, id.Namespace, id.Image)
	if errors.Is(err, ceph.ErrNoImage) {
		return d.clear(ctx, id)
	}
	if errors.Is(err, ceph.ErrNoPool) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := d.look(ctx, image)
	switch {
	case errors.Is(err, ceph.ErrCarcass), err == nil && t.mark.State == "":
		if err := d.scrap(ctx, id, t, err); status.Code(err) == codes.AlreadyExists {
			return failedPrecondition("%s", status.Convert(err).Message())
		} else {
			return err
		}
	case err != nil:
		return err
	}
	return d.remove(ctx, id, t)
}

// CreateSnapshot implements [csi.ControllerServer].
func (c *Controller) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if r.GetName() == "" || r.GetSourceVolumeId() == "" {
		return nil, invalid("name or source_volume_id is missing")
	}
	for key := range r.GetParameters() {
		if !strings.HasPrefix(key, "csi.storage.k8s.io/") && key != "clusterID" {
			return nil, invalid("parameter %q is not known; a snapshot is where its source is", key)
		}
	}
	d, from, source, err := c.volume(ctx, r.GetSourceVolumeId(), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	id := ID{from.Cluster, from.Pool, from.Namespace, SnapshotImage(r.GetName())}
	if err := id.fits(); err != nil {
		return nil, invalid("%v", err)
	}
	p := plan{id: id, parent: &source, features: features["layering"], mark: Mark{Name: r.GetName(), Source: from.String(), Created: time.Now().UnixNano()}}
	t, err := d.ensure(ctx, p)
	if err != nil {
		return nil, err
	}
	if t.mark.Source != "" && t.mark.Source != from.String() {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is there, of volume %s", id, t.mark.Source)
	}
	return &csi.CreateSnapshotResponse{Snapshot: shown(id, t)}, nil
}

func shown(id ID, t thing) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: id.String(), SourceVolumeId: t.mark.Source, SizeBytes: int64(t.Size), ReadyToUse: true,
		CreationTime: timestamppb.New(time.Unix(0, t.mark.Created)),
	}
}

// DeleteSnapshot implements [csi.ControllerServer].
func (c *Controller) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if r.GetSnapshotId() == "" {
		return nil, invalid("snapshot_id is missing")
	}
	id, err := ParseSnapshotID(r.GetSnapshotId())
	if err != nil {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	return &csi.DeleteSnapshotResponse{}, c.delete(ctx, id, r.GetSecrets())
}

// ListVolumes implements [csi.ControllerServer].
func (c *Controller) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	answer := &csi.ListVolumesResponse{}
	next, err := c.list(ctx, volumePrefix, nil, "", r.GetStartingToken(), r.GetMaxEntries(), func(id ID, t thing) {
		answer.Entries = append(answer.Entries, &csi.ListVolumesResponse_Entry{Volume: &csi.Volume{VolumeId: id.String(), CapacityBytes: int64(t.Size)}})
	})
	answer.NextToken = next
	return answer, err
}

// ListSnapshots implements [csi.ControllerServer].
func (c *Controller) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	answer := &csi.ListSnapshotsResponse{}
	next, err := c.list(ctx, snapshotPrefix, r.GetSecrets(), r.GetSnapshotId(), r.GetStartingToken(), r.GetMaxEntries(), func(id ID, t thing) {
		if of := r.GetSourceVolumeId(); of == "" || of == t.mark.Source {
			answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: shown(id, t)})
		}
	})
	answer.NextToken = next
	return answer, err
}

// list hands out the images of ours that are ready, in the order of their ids, a page at a time. A page may have fewer
// entries than asked for. The token is the last id looked at, so that what is made or removed meanwhile shifts nothing.
func (c *Controller) list(ctx context.Context, prefix string, secrets map[string]string, only, token string, most int32, hand func(ID, thing)) (string, error) {
	if most < 0 {
		return "", invalid("max_entries is negative")
	}
	if _, err := ParseID(token); token != "" && err != nil {
		return "", aborted("starting_token %q is none of this driver's: begin anew", token)
	}
	all := map[string]thing{}
	doors := map[string]door{}
	for _, entry := range c.Clusters.File.Clusters {
		d, err := c.door(entry.ID, secrets)
		if err != nil {
			return "", err
		}
		doors[entry.ID] = d
		for _, at := range entry.Pools {
			pool, namespace, _ := strings.Cut(at, "/")
			images, err := d.Images.Images(ctx, pool, namespace)
			if err != nil {
				return "", err
			}
			for _, i := range images {
				id := ID{entry.ID, pool, namespace, i.Name}.String()
				if strings.HasPrefix(i.Name, prefix) && id > token && (only == "" || id == only) {
					all[id] = thing{Image: i}
				}
			}
		}
	}
	ids, count := []string{}, int32(0)
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for n, text := range ids {
		id, err := ParseID(text)
		if err != nil {
			return "", err
		}
		t, err := doors[id.Cluster].look(ctx, all[text].Image)
		if err != nil && !errors.Is(err, ceph.ErrCarcass) {
			continue // one that can't be read hides no other
		}
		if err == nil && t.mark.State == ready {
			hand(id, t)
			count++
		}
		if most > 0 && count == most && n < len(ids)-1 {
			return text, nil
		}
	}
	return "", nil
}
