//go:build ceph

package ceph

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

// Images lists the images of a pool's namespace with their ids.
func (r *Registry) Images(ctx context.Context, pool, namespace string) ([]Image, error) {
	what := fmt.Sprintf("list the images of pool %s namespace %q", pool, namespace)
	return inPool(ctx, r.cluster, what, pool, namespace, func(io *rados.IOContext) ([]Image, error) {
		return directory(io, pool, namespace)
	})
}

// directory reads what librbd keeps beside the images: a key id_ID for each, with the name as a counted string.
// (go-ceph lists names only, and to open each image would make this process a client of it.)
func directory(io *rados.IOContext, pool, namespace string) ([]Image, error) {
	const prefix = "id_"
	all, err := io.GetAllOmapValues("rbd_directory", "", prefix, omapBatch)
	if err != nil && errno(err) != syscall.ENOENT {
		return nil, fmt.Errorf("read rbd_directory: %w", err)
	}
	images := []Image{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		if len(value) < 4 || int(binary.LittleEndian.Uint32(value)) != len(value)-4 {
			return nil, fmt.Errorf("rbd_directory: the value of %s is not a name", key)
		}
		images = append(images, Image{Pool: pool, Namespace: namespace, Name: string(value[4:]), ID: strings.TrimPrefix(key, prefix)})
	}
	return images, nil
}
