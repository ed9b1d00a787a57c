package rbd

import (
	"math"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// unit is what sizes are rounded up to: RBD's usual object.
	unit = 4 << 20
	// defaultSize is for a request without one.
	defaultSize = 1 << 30
)

// features are those that a request may name, with RBD's bits.
var features = map[string]uint64{
	"layering": 1 << 0, "exclusive-lock": 1 << 2, "object-map": 1 << 3, "fast-diff": 1 << 4, "deep-flatten": 1 << 5,
}

// needs are the features that one cannot be without.
var needs = map[string]string{"object-map": "exclusive-lock", "fast-diff": "object-map"}

// place is where a volume is asked for, and how.
type place struct {
	cluster, pool, namespace, dataPool, imageFeatures string
}

// parsePlace reads the parameters of a StorageClass. Those of the CO and of sidecars are left alone; an unknown one is a
// mistake that nobody would notice otherwise.
func parsePlace(parameters map[string]string) (place, error) {
	var p place
	for key, value := range parameters {
		switch {
		case key == "clusterID":
			p.cluster = value
		case key == "pool":
			p.pool = value
		case key == "namespace":
			p.namespace = value
		case key == "dataPool":
			p.dataPool = value
		case key == "imageFeatures":
			p.imageFeatures = value
		case strings.HasPrefix(key, "csi.storage.k8s.io/"):
		default:
			return p, invalid("parameter %q is not known; there are clusterID, pool, namespace, dataPool, imageFeatures", key)
		}
	}
	return p, nil
}

// bits gives RBD's feature bits. An image with one writer has the exclusive lock, for snapshots beside it; for others it
// would go from one to the other and back.
func (p place) bits(shared bool) (uint64, error) {
	if p.imageFeatures == "" {
		if shared {
			return features["layering"], nil
		}
		return features["layering"] | features["exclusive-lock"], nil
	}
	bits := uint64(0)
	for name := range strings.SplitSeq(p.imageFeatures, ",") {
		bit, ok := features[strings.TrimSpace(name)]
		if !ok {
			return 0, invalid("parameter imageFeatures: %q is not one of layering, exclusive-lock, object-map, fast-diff, deep-flatten", name)
		}
		bits |= bit
	}
	for name, other := range needs {
		if bits&features[name] != 0 && bits&features[other] == 0 {
			return 0, invalid("parameter imageFeatures: %s needs %s", name, other)
		}
	}
	if bits&features["layering"] == 0 {
		return 0, invalid("parameter imageFeatures: layering must be there, for snapshots and clones")
	}
	return bits, nil
}

// size chooses the bytes of a new volume: as required, rounded up, within the limit.
func size(r *csi.CapacityRange) (uint64, error) {
	required, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	switch {
	case required < 0 || limit < 0:
		return 0, invalid("capacity_range: %d to %d bytes: negative", required, limit)
	case limit > 0 && required > limit:
		return 0, invalid("capacity_range: %d bytes are required, and the limit is %d", required, limit)
	case required > math.MaxInt64-unit:
		return 0, status.Errorf(codes.OutOfRange, "capacity_range: %d bytes are more than an image can have", required)
	}
	if required == 0 {
		required = defaultSize
		if limit > 0 {
			required = min(required, limit/unit*unit)
		}
	}
	rounded := (required + unit - 1) / unit * unit
	if rounded == 0 || limit > 0 && rounded > limit {
		return 0, status.Errorf(codes.OutOfRange, "capacity_range: sizes are multiples of %d bytes, and none is within %d to %d", unit, required, limit)
	}
	return uint64(rounded), nil
}

// within tells whether an existing volume answers a request.
func within(have uint64, r *csi.CapacityRange) bool {
	return int64(have) >= r.GetRequiredBytes() && (r.GetLimitBytes() == 0 || int64(have) <= r.GetLimitBytes())
}

// Exclusive tells whether the mode is one for which the hold decides who may write.
func Exclusive(m csi.VolumeCapability_AccessMode_Mode) bool {
	switch m {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return true
	}
	return false
}

// checkCapabilities tells what the driver can't do, and whether any of them has writers on several nodes.
func checkCapabilities(all []*csi.VolumeCapability) (shared bool, err error) {
	if len(all) == 0 {
		return false, invalid("volume_capabilities is empty")
	}
	for _, c := range all {
		if err := checkCapability(c); err != nil {
			return false, err
		}
		shared = shared || !Exclusive(c.GetAccessMode().GetMode())
	}
	return shared, nil
}

func checkCapability(c *csi.VolumeCapability) error {
	if c == nil {
		return invalid("volume_capability is missing")
	}
	if c.GetBlock() == nil && c.GetMount() == nil {
		return invalid("volume_capability: neither block nor mount")
	}
	if fs := c.GetMount().GetFsType(); fs != "" && fs != "ext4" && fs != "xfs" {
		return invalid("volume_capability: file system %q: there are ext4 and xfs", fs)
	}
	mode := c.GetAccessMode().GetMode()
	switch mode {
	case csi.VolumeCapability_AccessMode_UNKNOWN, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:
		return invalid("volume_capability: access mode %s is not served", mode)
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		if c.GetMount() != nil {
			return invalid("volume_capability: a file system on RBD with writers on several nodes loses data; ask for a block volume")
		}
	}
	return nil
}
