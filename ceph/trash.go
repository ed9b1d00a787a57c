//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"
)

// ErrUnderWay says that a long operation has not ended within the call. It goes on; ask again.
var ErrUnderWay = errors.New("it takes long and goes on: call again")

// Trash moves the image to the pool's trash: its name is free at once. Idempotent. An image with watchers is [ErrBusy].
func (v *Volumes) Trash(ctx context.Context, i Image) error {
	_, err := inPool(ctx, v.cluster, "move image "+i.Spec()+" to the trash", i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		err := rbd.GetImage(io, i.Name).Trash(0)
		return none{}, as(as(err, syscall.ENOENT, nil), syscall.EBUSY, ErrBusy)
	})
	return err
}

// RemoveCarcass removes what a create or a removal that died has left under the name of an image without a header.
func (v *Volumes) RemoveCarcass(ctx context.Context, i Image) error {
	_, err := inPool(ctx, v.cluster, "remove what is left of image "+i.Spec(), i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
		return none{}, as(rbd.RemoveImage(io, i.Name), syscall.ENOENT, nil)
	})
	return err
}

// Trashed lists the images in the trash of a pool's namespace, by the names that they had.
func (v *Volumes) Trashed(ctx context.Context, pool, namespace string) ([]Image, error) {
	what := fmt.Sprintf("list the trash of pool %s namespace %q", pool, namespace)
	return inPool(ctx, v.cluster, what, pool, namespace, func(io *rados.IOContext) ([]Image, error) {
		all, err := rbd.GetTrashList(io)
		if err != nil {
			return nil, err
		}
		images := []Image{}
		for _, t := range all {
			images = append(images, Image{Pool: pool, Namespace: namespace, Name: t.Name, ID: t.Id})
		}
		return images, nil
	})
}

// Purge removes an image that is in the trash, with its data. It may take long: see [ErrUnderWay]. Idempotent. An image
// with snapshots or watchers is [ErrBusy].
func (v *Volumes) Purge(ctx context.Context, i Image) error {
	return v.jobs.do(ctx, "purge "+i.String(), func() error {
		_, err := inPoolLong(v.cluster, "remove image "+i.Spec()+" from the trash", i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
			err := as(rbd.TrashRemove(io, i.ID, true), syscall.ENOENT, nil)
			return none{}, as(as(err, syscall.EBUSY, ErrBusy), syscall.ENOTEMPTY, ErrBusy)
		})
		return err
	})
}

// Flatten copies what the image shares with its parent. It may take long: see [ErrUnderWay]. Idempotent.
func (v *Volumes) Flatten(ctx context.Context, i Image) error {
	return v.jobs.do(ctx, "flatten "+i.String(), func() error {
		_, err := inPoolLong(v.cluster, "flatten image "+i.Spec(), i.Pool, i.Namespace, func(io *rados.IOContext) (none, error) {
			return none{}, opened(io, i, func(image *rbd.Image) error {
				return as(image.Flatten(), syscall.EINVAL, nil) // it has no parent any more
			})
		})
		return err
	})
}

// inPoolLong is inPool without a deadline of its own: each operation below it has Ceph's.
func inPoolLong[T any](c *Cluster, what, pool, namespace string, f func(*rados.IOContext) (T, error)) (T, error) {
	var none T
	cn, err := c.acquire(context.Background())
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	value, err := withPool(cn.rados, pool, namespace, func(_ *rados.Conn, io *rados.IOContext) (T, error) { return f(io) })
	c.release(cn, err)
	if err != nil {
		return value, fmt.Errorf("%s: Ceph cluster %q, user %s: %w", what, c.config.ID, c.config.User, explain(err))
	}
	return value, nil
}

// jobs are operations that outlive the call that has begun them. A second call waits for the first one's.
type jobs struct {
	mu      sync.Mutex
	running map[string]*job
}

type job struct {
	done chan struct{}
	err  error
}

func (j *jobs) do(ctx context.Context, key string, f func() error) error {
	j.mu.Lock()
	now := j.running[key]
	if now == nil {
		now = &job{done: make(chan struct{})}
		if j.running == nil {
			j.running = map[string]*job{}
		}
		j.running[key] = now
		go func() {
			now.err = f()
			j.mu.Lock()
			delete(j.running, key)
			j.mu.Unlock()
			close(now.done)
		}()
	}
	j.mu.Unlock()
	select {
	case <-now.done:
		return now.err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w (%w)", key, ErrUnderWay, context.Cause(ctx))
	}
}
