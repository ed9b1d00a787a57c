package rbd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	volumePrefix   = "custody-vol-"
	snapshotPrefix = "custody-snap-"
	// maxID is the most that CSI promises to carry (spec, Size Limits).
	maxID = 128
	// maxPlain is the longest name that is kept as it is: pvc- and a UUID are 40.
	maxPlain = 48
)

// plain is what a name must look like to be kept. It can't begin as a hashed one does.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ErrBadID says that an id is not one of this driver's. To CSI such a volume or snapshot does not exist.
var ErrBadID = errors.New("not an id of this driver")

// ID names an image across clusters. Volumes and snapshots are both images; the name says which.
type ID struct {
	Cluster   string // its id in the configuration
	Pool      string
	Namespace string // "" is the pool's own
	Image     string
}

// String gives CLUSTER/POOL/NAMESPACE/IMAGE, which [ParseID] reads.
func (v ID) String() string {
	return strings.Join([]string{v.Cluster, v.Pool, v.Namespace, v.Image}, "/")
}

// ParseID reads what [ID.String] gives. Its error is an [ErrBadID].
func ParseID(text string) (ID, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return ID{}, fmt.Errorf("%q: %w: wanted is CLUSTER/POOL/NAMESPACE/IMAGE", text, ErrBadID)
	}
	v := ID{parts[0], parts[1], parts[2], parts[3]}
	if v.Cluster == "" || v.Pool == "" || v.Image == "" {
		return ID{}, fmt.Errorf("%q: %w: cluster, pool and image must not be empty", text, ErrBadID)
	}
	return v, nil
}

// ParseVolumeID reads the id of a volume. Its error is an [ErrBadID].
func ParseVolumeID(text string) (ID, error) { return parseKind(text, volumePrefix, "volume") }

// ParseSnapshotID reads the id of a snapshot. Its error is an [ErrBadID].
func ParseSnapshotID(text string) (ID, error) { return parseKind(text, snapshotPrefix, "snapshot") }

func parseKind(text, prefix, kind string) (ID, error) {
	v, err := ParseID(text)
	if err == nil && !strings.HasPrefix(v.Image, prefix) {
		err = fmt.Errorf("%q: %w: the name of the image of a %s begins with %q", text, ErrBadID, kind, prefix)
	}
	return v, err
}

// fits refuses an id that the CO may cut.
func (v ID) fits() error {
	if n := len(v.String()); n > maxID {
		return fmt.Errorf("volume id %s would have %d bytes, and CSI carries %d: use a shorter cluster id, pool or namespace", v, n, maxID)
	}
	return nil
}

// VolumeImage is the name of the image of a volume that was asked for by this name.
func VolumeImage(name string) string { return derived(volumePrefix, name) }

// SnapshotImage is the name of the image of a snapshot that was asked for by this name. It is also the name of the
// snapshot on the source for as long as the image is in the making.
func SnapshotImage(name string) string { return derived(snapshotPrefix, name) }

// derived keeps a plain name, for people, and hashes any other. Two names never share an image (external-provisioner can
// be told to cut names: that is its admin's choice).
func derived(prefix, name string) string {
	if len(name) <= maxPlain && plain.MatchString(name) {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + "_" + hex.EncodeToString(sum[:])[:40]
}
