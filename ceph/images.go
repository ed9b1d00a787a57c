//go:build ceph

package ceph

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

const imageDirectory = "rbd_directory"

// ErrNoImage says that there is no image of that name.
var ErrNoImage = errors.New("there is no such image")

// Images lists the images of a pool's namespace with their ids.
func (r *Registry) Images(ctx context.Context, pool, namespace string) ([]Image, error) {
	what := fmt.Sprintf("list the images of pool %s namespace %q", pool, namespace)
	return inPool(ctx, r.cluster, what, pool, namespace, func(io *rados.IOContext) ([]Image, error) {
		return directory(io, pool, namespace)
	})
}

// Image finds an image by its name, with its id.
func (r *Registry) Image(ctx context.Context, pool, namespace, name string) (Image, error) {
	what := fmt.Sprintf("find image %s in pool %s namespace %q", name, pool, namespace)
	return inPool(ctx, r.cluster, what, pool, namespace, func(io *rados.IOContext) (Image, error) {
		key := "name_" + name
		found, err := io.GetOmapValues(imageDirectory, "", key, 1) // of the keys that begin so the shortest comes first
		if err != nil && errno(err) != syscall.ENOENT {
			return Image{}, fmt.Errorf("read %s: %w", imageDirectory, err)
		}
		value, ok := found[key]
		if !ok {
			return Image{}, ErrNoImage
		}
		id, err := counted(value)
		if err != nil {
			return Image{}, fmt.Errorf("%s: %s: %w", imageDirectory, key, err)
		}
		return Image{Pool: pool, Namespace: namespace, Name: name, ID: id}, nil
	})
}

// directory reads what librbd keeps beside the images: keys id_ID with the name and name_NAME with the id. (go-ceph lists
// names only, and to open each image would make this process a client of it.)
func directory(io *rados.IOContext, pool, namespace string) ([]Image, error) {
	const prefix = "id_"
	all, err := io.GetAllOmapValues(imageDirectory, "", prefix, omapBatch)
	if err != nil && errno(err) != syscall.ENOENT {
		return nil, fmt.Errorf("read %s: %w", imageDirectory, err)
	}
	images := []Image{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, err := counted(all[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", imageDirectory, key, err)
		}
		images = append(images, Image{Pool: pool, Namespace: namespace, Name: name, ID: strings.TrimPrefix(key, prefix)})
	}
	return images, nil
}

// counted reads a text as Ceph encodes it, with its length before it.
func counted(value []byte) (string, error) {
	if len(value) < 4 || int(binary.LittleEndian.Uint32(value)) != len(value)-4 {
		return "", errors.New("the value is not a text")
	}
	return string(value[4:]), nil
}
