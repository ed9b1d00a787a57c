//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

// ErrNoPool says that a pool does not exist.
var ErrNoPool = errors.New("there is no pool")

// inPool runs f in a pool's namespace. The context is f's own: the version of the last operation is a property of it.
func inPool[T any](ctx context.Context, c *Cluster, what, pool, namespace string, f func(*rados.IOContext) (T, error)) (T, error) {
	return call(ctx, c, what, func(r *rados.Conn) (T, error) {
		return withPool(r, pool, namespace, func(_ *rados.Conn, io *rados.IOContext) (T, error) { return f(io) })
	})
}

func withPool[T any](r *rados.Conn, pool, namespace string, f func(*rados.Conn, *rados.IOContext) (T, error)) (T, error) {
	var none T
	io, err := r.OpenIOContext(pool)
	if errno(err) == syscall.ENOENT {
		return none, fmt.Errorf("%w %q (%w)", ErrNoPool, pool, err)
	}
	if err != nil {
		return none, fmt.Errorf("open pool %q: %w", pool, err)
	}
	defer io.Destroy()
	io.SetNamespace(namespace)
	// A full cluster is an error at once. Otherwise the call waits for space.
	if err := io.SetPoolFullTry(); err != nil {
		return none, fmt.Errorf("open pool %q: %w", pool, err)
	}
	return f(r, io)
}
