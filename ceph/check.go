//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/ceph/go-ceph/rados"
)

// Lack is a right that an identity does not have.
type Lack struct {
	Right string // what it can't do
	Cap   string // what would give it
	Err   error  // what the cluster has answered
}

// Check tries each right that a role needs, in each pool (POOL or POOL/NAMESPACE), and gives those that lack. Nothing is
// changed by it: fences are tried with an address that is refused for its form after the right was looked at, objects
// with one that isn't there. An error means that it could not be tried.
//
// Without it a missing right shows at the first fail-over (ceph-csi#5150).
func (c *Cluster) Check(ctx context.Context, role Role, pools ...string) ([]Lack, error) {
	lacks := []Lack{}
	try := func(right, cap string, allowed syscall.Errno, f func() error) error {
		err := f()
		if errors.Is(err, ErrNoPool) {
			return err
		}
		switch errno(err) {
		case syscall.EPERM, syscall.EACCES:
			lacks = append(lacks, Lack{right, cap, err})
			return nil
		case 0:
			return err
		case allowed:
			return nil
		}
		return fmt.Errorf("try whether %s may %s: %w", c.config.User, right, err)
	}
	mon := func(asked map[string]any) func() error {
		return func() error {
			_, err := call(ctx, c, "check the rights", func(r *rados.Conn) ([]byte, error) { return command(r, asked) })
			return err
		}
	}
	blocklist := func(op string) map[string]any {
		return map[string]any{"prefix": "osd blocklist", "blocklistop": op, "addr": "no-address/1"}
	}
	caps := Caps(role, pools...)
	errs := []error{
		try("read the osdmap's epoch (osd stat)", `mon "profile rbd"`, 0, mon(map[string]any{"prefix": "osd stat", "format": "json"})),
		try("read the blocklist (osd blocklist ls)", `mon "profile rbd"`, 0, mon(map[string]any{"prefix": "osd blocklist ls", "format": "json"})),
		try("fence a client (osd blocklist add)", `mon "profile rbd"`, syscall.EINVAL, mon(blocklist("add"))),
	}
	if role == Node {
		errs = append(errs, try("lift a fence (osd blocklist rm)", fmt.Sprintf("mon %q", caps["mon"]), syscall.EINVAL, mon(blocklist("rm"))))
	}
	for _, p := range pools {
		pool, namespace, _ := strings.Cut(p, "/")
		for right, change := range map[string]func(*rados.WriteOp){
			"write objects in " + p:          func(w *rados.WriteOp) { w.Remove() },
			"break a lock on images in " + p: func(w *rados.WriteOp) { w.Exec("lock", "break_lock", nil) },
		} {
			errs = append(errs, try(right, "osd \""+Caps(role, p)["osd"]+"\"", syscall.ENOENT, func() error {
				_, err := inPool(ctx, c, "check the rights", pool, namespace, func(io *rados.IOContext) (none, error) {
					w := rados.CreateWriteOp()
					defer w.Release()
					w.AssertExists()
					change(w)
					return none{}, w.Operate(io, "custody.check", rados.OperationNoFlag)
				})
				return err
			}))
		}
		errs = append(errs, try("read objects in "+p, "osd \""+Caps(role, p)["osd"]+"\"", syscall.ENOENT, func() error {
			_, err := inPool(ctx, c, "check the rights", pool, namespace, func(io *rados.IOContext) (rados.ObjectStat, error) {
				return io.Stat("custody.check")
			})
			return err
		}))
	}
	return lacks, errors.Join(errs...)
}
