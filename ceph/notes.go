//go:build ceph

package ceph

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

// notesPrefix is followed by the name of the image that is being made or removed.
const notesPrefix = "custody.work."

// Notes reads what is noted under the name of an image that is being made or removed.
func (v *Volumes) Notes(ctx context.Context, pool, namespace, name string) ([]string, error) {
	return inPool(ctx, v.cluster, "read the notes on "+name, pool, namespace, func(io *rados.IOContext) ([]string, error) {
		all, err := io.GetAllOmapValues(notesPrefix+name, "", "", omapBatch)
		if err != nil && errno(err) != syscall.ENOENT {
			return nil, err
		}
		return slices.Sorted(maps.Keys(all)), nil
	})
}

// Note adds a note. Idempotent; durable when it has answered.
func (v *Volumes) Note(ctx context.Context, pool, namespace, name, note string) error {
	_, err := inPool(ctx, v.cluster, "note "+note+" on "+name, pool, namespace, func(io *rados.IOContext) (none, error) {
		return none{}, io.SetOmap(notesPrefix+name, map[string][]byte{note: {}})
	})
	return err
}

// Forget removes all notes. Idempotent.
func (v *Volumes) Forget(ctx context.Context, pool, namespace, name string) error {
	_, err := inPool(ctx, v.cluster, "remove the notes on "+name, pool, namespace, func(io *rados.IOContext) (none, error) {
		return none{}, as(io.Delete(notesPrefix+name), syscall.ENOENT, nil)
	})
	return err
}

// Begun gives the id of the image for which a name is taken, "" for none. RBD takes the name before it lists the image.
func (v *Volumes) Begun(ctx context.Context, pool, namespace, name string) (string, error) {
	return inPool(ctx, v.cluster, "look who has the name "+name, pool, namespace, func(io *rados.IOContext) (string, error) {
		text := make([]byte, 256)
		n, err := io.Read("rbd_id."+name, text, 0)
		if errno(err) == syscall.ENOENT || err == nil && n == 0 {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return counted(text[:n])
	})
}
