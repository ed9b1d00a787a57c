//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/exclusive"
)

const (
	maxHold   = 64 << 10 // no hold is that long
	omapBatch = 256
)

// Registry keeps holds and lists of fences beside the images. It implements [exclusive.Registry]; a volume is an
// [Image].
type Registry struct{ cluster *Cluster }

// Registry gives the cluster's registry.
func (c *Cluster) Registry() *Registry { return &Registry{c} }

type none = struct{}

// Load implements [exclusive.Registry].
func (r *Registry) Load(ctx context.Context, volume string) (exclusive.Hold, error) {
	i, err := ParseImage(volume)
	if err != nil {
		return exclusive.Hold{}, err
	}
	what := "load the hold of " + volume
	return inPool(ctx, r.cluster, what, i.Pool, i.Namespace, func(io *rados.IOContext) (exclusive.Hold, error) {
		text := make([]byte, maxHold)
		n, err := io.Read(i.hold(), text, 0)
		if errno(err) == syscall.ENOENT {
			return exclusive.Hold{Volume: volume}, nil
		}
		if err != nil {
			return exclusive.Hold{}, err
		}
		version, err := io.GetLastVersion()
		if err != nil {
			return exclusive.Hold{}, err
		}
		h, err := decodeHold(volume, text[:n])
		if err != nil {
			return exclusive.Hold{}, fmt.Errorf("object %s: %w", i.hold(), err)
		}
		h.Rev = rev(version)
		return h, nil
	})
}

// Swap implements [exclusive.Registry]: one operation, which the OSD carries out whole or not at all.
func (r *Registry) Swap(ctx context.Context, h exclusive.Hold) (string, error) {
	i, err := ParseImage(h.Volume)
	if err != nil {
		return "", err
	}
	text, err := encodeHold(h)
	if err != nil {
		return "", fmt.Errorf("write down the hold of %s: %w", h.Volume, err)
	}
	op := func(w *rados.WriteOp) { w.WriteFull(text) }
	return r.conditional(ctx, fmt.Sprintf("swap the hold of %s to %s", h.Volume, h.State), i, h.Rev, op)
}

// Remove takes away the hold of an image that is about to be removed, if it still has version h.Rev, and the list of
// fences if it is empty. A fence that is not lifted stays, and so does its list: writes of that client would leave
// objects of an image that is gone.
func (r *Registry) Remove(ctx context.Context, h exclusive.Hold) error {
	i, err := ParseImage(h.Volume)
	if err != nil {
		return err
	}
	if h.Rev != "" {
		if _, err := r.conditional(ctx, "remove the hold of "+h.Volume, i, h.Rev, (*rados.WriteOp).Remove); err != nil {
			return err
		}
	}
	_, err = inPool(ctx, r.cluster, "remove the list of fences of "+h.Volume, i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		left, err := io.GetOmapValues(i.fences(), "", "", 1)
		if errno(err) == syscall.ENOENT {
			return none{}, nil
		}
		if err != nil || len(left) > 0 {
			return none{}, err
		}
		version, err := io.GetLastVersion()
		if err != nil {
			return none{}, err
		}
		w := rados.CreateWriteOp()
		defer w.Release()
		w.AssertVersion(version)
		w.Remove()
		if err := w.Operate(io, i.fences(), rados.OperationNoFlag); err != nil && !stale(err) && errno(err) != syscall.ENOENT {
			return none{}, err
		}
		return none{}, nil // where somebody has just listed a fence the list stays
	})
	return err
}

// conditional changes the hold's object if it still has that version, "" for there is none, and gives the new one.
func (r *Registry) conditional(ctx context.Context, what string, i Image, was string, change func(*rados.WriteOp)) (string, error) {
	var version uint64
	if was != "" {
		var err error
		if version, err = strconv.ParseUint(was, 10, 64); err != nil {
			return "", fmt.Errorf("%s: version %q is not of this registry", what, was)
		}
	}
	return inPool(ctx, r.cluster, what, i.Pool, i.Namespace, func(io *rados.IOContext) (string, error) {
		w := rados.CreateWriteOp()
		defer w.Release()
		if was == "" {
			w.Create(rados.CreateExclusive)
		} else {
			w.AssertVersion(version)
		}
		change(w)
		if err := w.Operate(io, i.hold(), rados.OperationNoFlag); stale(err) {
			return "", fmt.Errorf("%w (%w)", exclusive.ErrStale, err)
		} else if err != nil {
			return "", err
		}
		now, err := io.GetLastVersion()
		return rev(now), err
	})
}

// stale tells whether a write was refused since the object is not what was asserted: it exists, or is newer (ERANGE) or
// older or gone (EOVERFLOW), as PrimaryLogPG::do_osd_ops has it for CEPH_OSD_OP_ASSERT_VER.
func stale(err error) bool {
	switch errno(err) {
	case syscall.EEXIST, syscall.ERANGE, syscall.EOVERFLOW:
		return true
	}
	return false
}

func rev(version uint64) string { return strconv.FormatUint(version, 10) }

// Since tells when the hold was last swapped, by the clock of whoever did, for people.
func (r *Registry) Since(ctx context.Context, volume string) (time.Time, error) {
	i, err := ParseImage(volume)
	if err != nil {
		return time.Time{}, err
	}
	return inPool(ctx, r.cluster, "look at the hold of "+volume, i.Pool, i.Namespace, func(io *rados.IOContext) (time.Time, error) {
		stat, err := io.Stat(i.hold())
		return stat.ModTime, err
	})
}

// List implements [exclusive.Registry].
func (r *Registry) List(ctx context.Context, volume string, f exclusive.Fence) error {
	i, err := ParseImage(volume)
	if err != nil {
		return err
	}
	text, err := encodeFence(f)
	if err != nil {
		return fmt.Errorf("write down the fence of %s: %w", f.Instance, err)
	}
	what := fmt.Sprintf("list the fence of %s on %s", f.Instance, volume)
	_, err = inPool(ctx, r.cluster, what, i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		return none{}, io.SetOmap(i.fences(), map[string][]byte{string(f.Instance): text})
	})
	return err
}

// Unlist implements [exclusive.Registry].
func (r *Registry) Unlist(ctx context.Context, volume string, f exclusive.Fence) error {
	i, err := ParseImage(volume)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("take the fence of %s off the list of %s", f.Instance, volume)
	_, err = inPool(ctx, r.cluster, what, i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		err := io.RmOmapKeys(i.fences(), []string{string(f.Instance)})
		if errno(err) == syscall.ENOENT {
			err = nil
		}
		return none{}, err
	})
	return err
}

// Listed implements [exclusive.Registry], in the order of the instances as texts. An entry that can't be read is
// nobody's, and stays: what is not lifted does no harm.
func (r *Registry) Listed(ctx context.Context, volume, machine string, after exclusive.Instance) (exclusive.Fence, error) {
	fences, err := r.Fences(ctx, volume)
	if err != nil {
		return exclusive.Fence{}, err
	}
	for _, f := range fences {
		if f.Who.Machine == machine && f.Instance > after {
			return f, nil
		}
	}
	return exclusive.Fence{}, nil
}

// Fences gives all fences of a volume that are listed and readable, in the order of their instances.
func (r *Registry) Fences(ctx context.Context, volume string) ([]exclusive.Fence, error) {
	i, err := ParseImage(volume)
	if err != nil {
		return nil, err
	}
	return inPool(ctx, r.cluster, "read the fences of "+volume, i.Pool, i.Namespace, func(io *rados.IOContext) ([]exclusive.Fence, error) {
		all, err := io.GetAllOmapValues(i.fences(), "", "", omapBatch)
		if err != nil && errno(err) != syscall.ENOENT {
			return nil, err
		}
		fences := []exclusive.Fence{}
		for _, instance := range slices.Sorted(maps.Keys(all)) {
			f, err := decodeFence(instance, all[instance])
			if errors.Is(err, exclusive.ErrForeign) {
				continue
			}
			if err != nil {
				return nil, err
			}
			fences = append(fences, f)
		}
		return fences, nil
	})
}
