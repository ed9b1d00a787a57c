//go:build ceph

package takeover

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// Watchers counts who watches an image, as rbd status does.
func (f *Fleet) Watchers(volume string) (n int, err error) {
	i, err := ceph.ParseImage(volume)
	if err != nil {
		return 0, err
	}
	err = f.InPool(func(io *rados.IOContext) error {
		image, err := rbd.OpenImageByIdReadOnly(io, i.ID, rbd.NoSnapshot) // without a watch of its own
		if err != nil {
			return err
		}
		all, err := image.ListWatchers()
		n = len(all)
		return errors.Join(err, image.Close())
	})
	return n, err
}

// PlainKilled is a take-over as drivers do it today: no hold; the owner is killed; wait until the image has no watcher,
// then map and write. It gives the time from the request to the first acknowledged write.
func PlainKilled(ctx context.Context, f *Fleet, owner, taker *Machine, volume, fsType string) (took time.Duration, err error) {
	task := Task{Volume: volume, FSType: fsType, Bare: true}
	reply, err := owner.Expect(ctx, task, exclusive.Done)
	if err != nil {
		return 0, err
	}
	writer, err := StartWriter(owner.Path(volume, fsType), 1)
	if err != nil {
		return 0, err
	}
	if err := writer.Await(ctx, Blocks); err != nil {
		return 0, err
	}
	if err := owner.Signal(reply.Map, syscall.SIGKILL); err != nil {
		return 0, err
	}
	begin := time.Now()
	for {
		n, err := f.Watchers(volume)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("%s still has %d watchers: %w", volume, n, context.Cause(ctx))
		}
	}
	if _, err := taker.Expect(ctx, task, exclusive.Done); err != nil {
		return 0, err
	}
	if err := WriteOnce(taker.Path(volume, fsType), Block{Name: 2}); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	if err := owner.Start(ctx); err != nil {
		return 0, err
	}
	if _, err := writer.Ended(ctx); err != nil {
		return 0, err
	}
	task.Unmap = true
	for _, m := range []*Machine{owner, taker} {
		if _, err := m.Expect(ctx, task, exclusive.Done); err != nil {
			return 0, err
		}
	}
	return took, nil
}
