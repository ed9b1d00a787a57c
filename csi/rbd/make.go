//go:build ceph

package rbd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

const (
	// base is the snapshot of a snapshot's image that volumes are restored from.
	base = "custody"
	// maxChain is how many parents an image may have in a row; the kernel's client takes 16.
	maxChain = 8
	// settle is how long an image that somebody has begun is left to them, in case they live.
	settle = 2 * time.Second

	firstWait, maxWait = 100 * time.Millisecond, 2 * time.Second

	noteMaker, noteSource, noteGone = "maker.", "source.", "gone."
)

var started = time.Now()

func monotonic() time.Duration { return time.Since(started) }

// plan is an image that is to be there.
type plan struct {
	id       ID
	mark     Mark
	size     uint64 // bytes; 0 leaves a clone at its source's
	features uint64
	dataPool string
	parent   *thing // what it is a clone of
	snapshot string // of the parent; "" makes one under the image's name, and removes it afterwards
	hold     bool   // a volume; else it is a snapshot's image and gets its base
}

// ensure gives the image of the plan, complete: the one that is there, or a new one. What an earlier try or a delete has
// left is put in order first.
func (d door) ensure(ctx context.Context, p plan) (thing, error) {
	t, err := d.existing(ctx, p)
	switch {
	case err != nil:
		return t, err
	case t.mark.State == ready:
		return t, nil
	case t.mark.State == making:
		return t, d.finish(ctx, p, t)
	}
	return d.make(ctx, p)
}

// existing gives what is there and can be used; its mark has no state if there is nothing (any more).
func (d door) existing(ctx context.Context, p plan) (thing, error) {
	image, err := d.Image(ctx, p.id.Pool, p.id.Namespace, p.id.Image)
	if errors.Is(err, ceph.ErrNoImage) {
		return thing{}, d.clear(ctx, p.id)
	}
	if err != nil {
		return thing{}, err
	}
	t, err := d.look(ctx, image)
	switch {
	case errors.Is(err, ceph.ErrCarcass), err == nil && t.mark.State == "":
		return thing{}, d.scrap(ctx, p.id, t, err)
	case err != nil:
		return t, err
	case t.mark.State == ready:
		return t, nil
	case t.mark.State == making && p.hold:
		h, err := d.Load(ctx, image.String())
		if err != nil || h.State != exclusive.None {
			return t, err
		}
	}
	return thing{}, d.remove(ctx, p.id, t)
}

// make makes the image in the order of doc.go.
func (d door) make(ctx context.Context, p plan) (thing, error) {
	id := p.id
	maker, err := d.Maker(ctx)
	if err != nil {
		return thing{}, err
	}
	if err := d.Note(ctx, id.Pool, id.Namespace, id.Image, noteMaker+string(maker)); err != nil {
		return thing{}, err
	}
	n := ceph.New{Pool: id.Pool, Namespace: id.Namespace, Name: id.Image, Maker: maker, Size: p.size, Features: p.features, DataPool: p.dataPool}
	if p.parent == nil {
		err = d.Create(ctx, n)
	} else {
		err = d.clone(ctx, p, n)
	}
	if err != nil {
		return thing{}, err
	}
	image, err := d.Image(ctx, id.Pool, id.Namespace, id.Image)
	if err != nil {
		return thing{}, err
	}
	if err := d.mark(ctx, image, p.mark, making); err != nil {
		return thing{}, err
	}
	t, err := d.look(ctx, image)
	if err != nil {
		return t, err
	}
	if err := d.complete(ctx, p, t); err != nil {
		return t, err
	}
	return t, d.finish(ctx, p, t)
}

func (d door) clone(ctx context.Context, p plan, n ceph.New) error {
	snapshot := p.snapshot
	if snapshot == "" {
		snapshot = p.id.Image
		if err := d.Note(ctx, n.Pool, n.Namespace, n.Name, noteSource+p.parent.Image.String()); err != nil {
			return err
		}
		if err := d.Snapshot(ctx, p.parent.Image, snapshot); err != nil && !errors.Is(err, ceph.ErrExists) {
			return err
		}
	}
	return d.Clone(ctx, p.parent.Image, snapshot, n)
}

// complete gives a new image all but its hold.
func (d door) complete(ctx context.Context, p plan, t thing) error {
	if t.Size < p.size {
		if err := d.Resize(ctx, t.Image, p.size); err != nil {
			return err
		}
	}
	if p.parent != nil && p.snapshot == "" {
		if err := d.RemoveSnapshot(ctx, p.parent.Image, p.id.Image); err != nil {
			return err
		}
	}
	long, err := d.long(ctx, t)
	if err != nil {
		return err
	}
	if long {
		if err := d.Flatten(ctx, t.Image); err != nil {
			return err
		}
	}
	if !p.hold {
		return d.Snapshot(ctx, t.Image, base)
	}
	h := exclusive.Hold{Volume: t.Image.String(), State: exclusive.Free, Formatted: p.parent != nil}
	_, err = d.Swap(ctx, h)
	return err
}

// long tells whether the image has too many parents in a row.
func (d door) long(ctx context.Context, t thing) (bool, error) {
	for range maxChain {
		if t.Parent == nil {
			return false, nil
		}
		facts, err := d.Facts(ctx, *t.Parent)
		if err != nil {
			return false, err
		}
		t.Facts = facts
	}
	return t.Parent != nil, nil
}

// finish says that the image is complete.
func (d door) finish(ctx context.Context, p plan, t thing) error {
	if err := d.mark(ctx, t.Image, p.mark, ready); errors.Is(err, ceph.ErrCarcass) {
		// Somebody took it for abandoned and has removed it: no hold is left behind.
		h, e := d.Load(ctx, t.Image.String())
		if e == nil {
			e = d.Remove(ctx, h)
		}
		return errors.Join(err, e)
	} else if err != nil {
		return err
	}
	return d.Forget(ctx, p.id.Pool, p.id.Namespace, p.id.Image)
}

// remove takes away an image of ours. It may be called again at any point.
func (d door) remove(ctx context.Context, id ID, t thing) error {
	h, err := d.unused(ctx, id, t)
	if err != nil {
		return err
	}
	if t.mark.State != deleting {
		if err := d.mark(ctx, t.Image, t.mark, deleting); err != nil {
			return err
		}
	}
	if err := d.Remove(ctx, h); errors.Is(err, exclusive.ErrStale) {
		err = fmt.Errorf("volume %s was claimed while it was being deleted: %w", id, err)
		return errors.Join(err, d.mark(ctx, t.Image, t.mark, ready))
	} else if err != nil {
		return err
	}
	for _, s := range t.Snapshots {
		if err := d.RemoveSnapshot(ctx, t.Image, s); err != nil {
			return err
		}
	}
	if err := d.Note(ctx, id.Pool, id.Namespace, id.Image, noteGone+t.ID); err != nil {
		return err
	}
	if err := d.Trash(ctx, t.Image); err != nil {
		return err
	}
	return d.clear(ctx, id)
}

// unused gives the hold of an image that nobody uses; else an error that says who does.
func (d door) unused(ctx context.Context, id ID, t thing) (exclusive.Hold, error) {
	h, err := d.Load(ctx, t.Image.String())
	switch {
	case err != nil:
		return h, err
	case h.State != exclusive.None && h.State != exclusive.Free:
		return h, failedPrecondition("volume %s is in use on node %s (hold %s, epoch %d)", id, h.Who.Node, h.State, h.Epoch)
	case len(t.Watchers) > 0:
		return h, failedPrecondition("image %s is in use: it has watchers: %s", id, strings.Join(t.Watchers, " "))
	}
	for _, s := range t.Snapshots {
		if s != base && !strings.HasPrefix(s, "custody-") {
			return h, failedPrecondition("image %s has a snapshot %q that this driver has not made: remove it first", id, s)
		}
	}
	return h, nil
}

// scrap removes what a create or a removal that died has left without a mark, if the notes say that it is ours.
func (d door) scrap(ctx context.Context, id ID, t thing, why error) error {
	notes, err := d.Notes(ctx, id.Pool, id.Namespace, id.Image)
	if err != nil {
		return err
	}
	if !ours(notes, t.ID) {
		return status.Errorf(codes.AlreadyExists, "image %s is there and this driver has not made it; it is left alone: rename it, or use another pool", id)
	}
	if why != nil {
		// A living maker is at it for milliseconds.
		if err := pause(ctx, settle); err != nil {
			return err
		}
		if again, err := d.look(ctx, t.Image); !errors.Is(err, ceph.ErrCarcass) {
			return errors.Join(err, aborted("image %s is being made (state %q): call again", id, again.mark.State))
		}
		if err := d.RemoveCarcass(ctx, t.Image); err != nil {
			return err
		}
		return d.clear(ctx, id)
	}
	t.mark = Mark{State: making}
	return d.remove(ctx, id, t)
}

func ours(notes []string, image string) bool {
	return slices.ContainsFunc(notes, func(note string) bool {
		if maker, ok := strings.CutPrefix(note, noteMaker); ok {
			return ceph.Maker(maker).Made(image)
		}
		return note == noteGone+image
	})
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clear ends what is left of a name whose image is gone: the file that names it, the snapshot on its source, the trash,
// the notes.
func (d door) clear(ctx context.Context, id ID) error {
	notes, err := d.Notes(ctx, id.Pool, id.Namespace, id.Image)
	if err != nil {
		return err
	}
	if left, err := d.Begun(ctx, id.Pool, id.Namespace, id.Image); err != nil {
		return err
	} else if left != "" && ours(notes, left) {
		if err := pause(ctx, settle); err != nil {
			return err
		}
		if _, err := d.Image(ctx, id.Pool, id.Namespace, id.Image); !errors.Is(err, ceph.ErrNoImage) {
			return errors.Join(err, aborted("image %s is being made: call again", id))
		}
		if err := d.RemoveCarcass(ctx, ceph.Image{Pool: id.Pool, Namespace: id.Namespace, Name: id.Image, ID: left}); err != nil {
			return err
		}
	}
	for _, note := range notes {
		if source, ok := strings.CutPrefix(note, noteSource); ok {
			parent, err := ceph.ParseImage(source)
			if err != nil {
				return err
			}
			if err := d.RemoveSnapshot(ctx, parent, id.Image); err != nil && !errors.Is(err, ceph.ErrCarcass) {
				return err
			}
		}
	}
	if err := d.reap(ctx, id, notes); err != nil {
		return err
	}
	return d.Forget(ctx, id.Pool, id.Namespace, id.Image)
}

// reap removes images of ours from the trash that have no children any more. It goes on while that frees parents.
func (d door) reap(ctx context.Context, id ID, notes []string) error {
	for {
		some := false
		for _, at := range d.entry.Pools {
			pool, namespace, _ := strings.Cut(at, "/")
			all, err := d.Trashed(ctx, pool, namespace)
			if errors.Is(err, ceph.ErrNoPool) {
				continue
			}
			if err != nil {
				return err
			}
			for _, image := range all {
				gone, err := d.purge(ctx, id, image, notes)
				if err != nil {
					return err
				}
				some = some || gone
			}
		}
		if !some {
			return nil
		}
	}
}

func (d door) purge(ctx context.Context, id ID, image ceph.Image, notes []string) (bool, error) {
	if !strings.HasPrefix(image.Name, volumePrefix) && !strings.HasPrefix(image.Name, snapshotPrefix) {
		return false, nil
	}
	t, err := d.look(ctx, image)
	carcass := errors.Is(err, ceph.ErrCarcass)
	switch {
	case carcass && !slices.Contains(notes, noteGone+image.ID), errors.Is(err, exclusive.ErrForeign):
		return false, nil
	case !carcass && err != nil:
		return false, err
	case !carcass && (t.mark.State != deleting || t.Children > 0 || len(t.Snapshots) > 0):
		return false, nil
	}
	for _, s := range t.Trashed {
		if err := d.RemoveTrashed(ctx, image, s); err != nil {
			return false, err
		}
	}
	if err := d.Note(ctx, id.Pool, id.Namespace, id.Image, noteGone+image.ID); err != nil {
		return false, err
	}
	err = d.Purge(ctx, image)
	if errors.Is(err, ceph.ErrBusy) {
		return false, nil // a child that was made since, or an opener that will be gone at the next delete
	}
	return err == nil, err
}
