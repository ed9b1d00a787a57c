//go:build ceph

package rbd

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// Controller is the CSI Controller service.
type Controller struct {
	csi.UnimplementedControllerServer
	Clusters *Clusters
	// Node is this controller's own name, which holds that it fences carry as their fencer.
	Node string
	// Decorate wraps the door to a cluster, for tests. nil: as it is.
	Decorate func(Images) Images
}

func init() {
	table = append(table, []row{
		{ceph.ErrUnderWay, codes.Aborted},
		{ceph.ErrMaker, codes.Aborted},
		{ceph.ErrExists, codes.Aborted}, // somebody else is making it now
		{ceph.ErrCarcass, codes.Aborted},
		{ceph.ErrBusy, codes.FailedPrecondition},
		{ceph.ErrNoImage, codes.NotFound},
		{ceph.ErrNoPool, codes.FailedPrecondition},
	}...)
}

// door is one cluster, its entry in the configuration, and the image that a call is about.
type door struct {
	Images
	cluster *ceph.Cluster
	entry   ceph.Entry
}

func (c *Controller) door(cluster string, secrets map[string]string) (door, error) {
	entry, err := c.Clusters.File.Entry(cluster)
	if err != nil {
		return door{}, notFound("%v", err)
	}
	conn, err := c.Clusters.get(cluster, secrets)
	if err != nil {
		return door{}, err
	}
	d := door{conn.images, conn.Cluster, entry}
	if c.Decorate != nil {
		d.Images = c.Decorate(d.Images)
	}
	return d, nil
}

// thing is an image of ours as it was found.
type thing struct {
	ceph.Image
	ceph.Facts
	mark Mark
}

// find gives an image that is ours and ready.
func (d door) find(ctx context.Context, id ID) (thing, error) {
	if !d.entry.Has(id.Pool, id.Namespace) {
		return thing{}, notFound("%s: pool %q, namespace %q is not in the configuration of cluster %q", id, id.Pool, id.Namespace, d.entry.ID)
	}
	image, err := d.Image(ctx, id.Pool, id.Namespace, id.Image)
	if errors.Is(err, ceph.ErrNoImage) || errors.Is(err, ceph.ErrNoPool) {
		return thing{}, notFound("%s: %v", id, err)
	}
	if err != nil {
		return thing{}, err
	}
	t, err := d.look(ctx, image)
	if errors.Is(err, ceph.ErrCarcass) || err == nil && t.mark.State != ready {
		return thing{}, notFound("%s: the image is not there, or not complete, or not of this driver (state %q)", id, t.mark.State)
	}
	return t, err
}

func (d door) look(ctx context.Context, image ceph.Image) (thing, error) {
	facts, err := d.Facts(ctx, image)
	if err != nil {
		return thing{Image: image}, err
	}
	m, err := readMark(image.Name, facts.Metadata)
	return thing{image, facts, m}, err
}

func (d door) mark(ctx context.Context, i ceph.Image, m Mark, state string) error {
	m.Image, m.State = i.Name, state
	return d.Label(ctx, i, markKey, m.text())
}

// volume opens the door to the cluster of a volume's id, and finds the volume.
func (c *Controller) volume(ctx context.Context, text string, secrets map[string]string) (door, ID, thing, error) {
	if text == "" {
		return door{}, ID{}, thing{}, invalid("volume_id is missing")
	}
	id, err := ParseVolumeID(text)
	if err != nil {
		return door{}, ID{}, thing{}, err
	}
	d, err := c.door(id.Cluster, secrets)
	if err != nil {
		return door{}, id, thing{}, err
	}
	t, err := d.find(ctx, id)
	return d, id, t, err
}

// ControllerGetCapabilities implements [csi.ControllerServer].
func (c *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return answer, nil
}

// ValidateVolumeCapabilities implements [csi.ControllerServer].
func (c *Controller) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume_capabilities is empty")
	}
	if _, _, _, err := c.volume(ctx, r.GetVolumeId(), r.GetSecrets()); err != nil {
		return nil, err
	}
	if _, err := checkCapabilities(r.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// ControllerPublishVolume implements [csi.ControllerServer]. It changes nothing: the node claims the hold when it stages.
func (c *Controller) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.GetNodeId() == "" {
		return nil, invalid("node_id is missing")
	}
	if err := checkCapability(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	d, id, t, err := c.volume(ctx, r.GetVolumeId(), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	if err := d.known(ctx, r.GetNodeId()); err != nil {
		return nil, err
	}
	if !Exclusive(r.GetVolumeCapability().GetAccessMode().GetMode()) {
		return &csi.ControllerPublishVolumeResponse{}, nil
	}
	h, err := d.Load(ctx, t.Image.String())
	if err != nil {
		return nil, err
	}
	switch {
	case h.State == exclusive.None:
		return nil, failedPrecondition("volume %s has lost its hold, so that nobody knows whether it is in use; an admin must look (custody holds)", id)
	case h.State != exclusive.Free && h.Who.Node != r.GetNodeId():
		return nil, failedPrecondition("volume %s is published on node %s (hold %s, epoch %d)", id, h.Who.Node, h.State, h.Epoch)
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// known tells whether a node of that name has ever had a heartbeat in the cluster.
func (d door) known(ctx context.Context, node string) error {
	beats, err := d.cluster.Beats(d.entry.HeartbeatPool(), "")(ctx)
	if err != nil {
		return err
	}
	for _, b := range beats {
		if b.Node == node {
			return nil
		}
	}
	return notFound("node %q has no heartbeat in pool %q of Ceph cluster %q: does the node plugin run there?", node, d.entry.HeartbeatPool(), d.entry.ID)
}

// ControllerUnpublishVolume implements [csi.ControllerServer]. A node that still has the volume mapped is fenced first:
// the CO does not say whether it was unstaged (forced detach, out-of-service taint).
func (c *Controller) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	d, id, t, err := c.volume(ctx, r.GetVolumeId(), r.GetSecrets())
	if status.Code(coded(err)) == codes.NotFound {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	h, err := d.Load(ctx, t.Image.String())
	if err != nil {
		return nil, err
	}
	from := r.GetNodeId()
	if from == "" { // the spec: from all nodes
		from = h.Who.Node
	}
	m := exclusive.Manager{Registry: d.Images, Fencer: d.cluster.Fencer(), Evidence: told{}, Now: monotonic, First: firstWait, Max: maxWait}
	me := exclusive.Who{Machine: "controller:" + c.Node, Node: c.Node}
	request := exclusive.Request{Verb: exclusive.Detach, Volume: t.Image.String(), Me: me, From: from, Policy: exclusive.Always}
	switch memo, next := m.Run(ctx, request, exclusive.Memo{}); next.Kind {
	case exclusive.Done:
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	case exclusive.Wait:
		return nil, aborted("volume %s: taking it from node %s goes on (%s): call again", id, from, next.Why)
	default:
		return nil, failedPrecondition("volume %s can't be taken from node %s: %s (hold %s)", id, from, next.Why, memo.Hold.State)
	}
}

// told is the CO's word: the volume is not used there any more. It is no proof that the machine has stopped.
type told struct{}

func (told) Judge(context.Context, exclusive.Hold) (exclusive.Verdict, error) {
	return exclusive.Lost, nil
}

// ControllerExpandVolume implements [csi.ControllerServer].
func (c *Controller) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if r.GetCapacityRange() == nil {
		return nil, invalid("capacity_range is missing")
	}
	want, err := size(r.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	d, _, t, err := c.volume(ctx, r.GetVolumeId(), r.GetSecrets())
	if err != nil {
		return nil, err
	}
	have := t.Size
	if have < want {
		if err := d.Resize(ctx, t.Image, want); err != nil {
			return nil, fmt.Errorf("expand volume %s: %w", r.GetVolumeId(), err)
		}
		have = want
	}
	if limit := r.GetCapacityRange().GetLimitBytes(); limit > 0 && int64(have) > limit {
		return nil, status.Errorf(codes.OutOfRange, "volume %s has %d bytes already, and the limit is %d", r.GetVolumeId(), have, limit)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(have), NodeExpansionRequired: true}, nil
}
