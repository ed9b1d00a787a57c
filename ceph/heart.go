//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/exclusive"
)

// nodesObject has the heartbeats of all machines.
const nodesObject = "custody.nodes"

// ErrTwin says that another machine beats under this machine's id: two machines have the same system UUID, as copies of
// one virtual machine do. Each looks reborn to the other.
var ErrTwin = errors.New("another machine has the same system UUID")

// Heart is a machine's heartbeat in the cluster. One goroutine uses it.
type Heart struct {
	cluster         *Cluster
	pool, namespace string
	who             exclusive.Who
	last            Beat
}

// Heart makes the heartbeat of a machine, in the pool's namespace that all nodes of the cluster use. The first Beat must
// have succeeded before this boot's first hold is claimed: until then the machine looks reborn to others.
func (c *Cluster) Heart(pool, namespace string, who exclusive.Who) *Heart {
	return &Heart{cluster: c, pool: pool, namespace: namespace, who: who}
}

// Beat counts one further. The error is ErrTwin if another machine has written in between; it beats all the same.
func (h *Heart) Beat(ctx context.Context) error {
	next := Beat{Node: h.who.Node, Boot: h.who.Boot, Count: h.last.Count + 1}
	what := "beat for machine " + h.who.Machine
	was, err := inPool(ctx, h.cluster, what, h.pool, h.namespace, func(io *rados.IOContext) (Beat, error) {
		all, err := io.GetOmapValues(nodesObject, "", h.who.Machine, 1)
		if err != nil && errno(err) != syscall.ENOENT {
			return Beat{}, err
		}
		was, err := decodeBeat(all[h.who.Machine])
		if err != nil {
			was = Beat{} // garbage, or none: written anew
		}
		if was.Boot == next.Boot && was.Count >= next.Count {
			next.Count = was.Count + 1 // an earlier process of this boot
		}
		text, err := encodeBeat(next)
		if err != nil {
			return was, err
		}
		return was, io.SetOmap(nodesObject, map[string][]byte{h.who.Machine: text})
	})
	if err != nil {
		return err
	}
	twin := h.last.Boot != "" && was.Boot != "" && was.Boot != h.last.Boot
	h.last = Beat{Node: next.Node, Boot: next.Boot, Count: max(next.Count, was.Count+1)}
	if twin {
		return fmt.Errorf("%s: %w: node %q, boot %s", what, ErrTwin, was.Node, was.Boot)
	}
	return nil
}

// Run beats until ctx ends and hands each error to report.
func (h *Heart) Run(ctx context.Context, every time.Duration, report func(error)) {
	repeat(ctx, every, h.Beat, report)
}

// Beats reads the heartbeats of all machines, for [Evidence]. One that can't be read says nothing.
func (c *Cluster) Beats(pool, namespace string) func(context.Context) (map[string]Beat, error) {
	return func(ctx context.Context) (map[string]Beat, error) {
		return inPool(ctx, c, "read the heartbeats", pool, namespace, func(io *rados.IOContext) (map[string]Beat, error) {
			all, err := io.GetAllOmapValues(nodesObject, "", "", omapBatch)
			if err != nil && errno(err) != syscall.ENOENT {
				return nil, err
			}
			beats := map[string]Beat{}
			for machine, text := range all {
				if b, err := decodeBeat(text); err == nil {
					beats[machine] = b
				}
			}
			return beats, nil
		})
	}
}

// Forget removes the heartbeat of a machine that is gone for good. No hold must name it any more: without a heartbeat
// nothing is known against it.
func (c *Cluster) Forget(ctx context.Context, pool, namespace, machine string) error {
	_, err := inPool(ctx, c, "forget machine "+machine, pool, namespace, func(io *rados.IOContext) (none, error) {
		err := io.RmOmapKeys(nodesObject, []string{machine})
		if errno(err) == syscall.ENOENT {
			err = nil
		}
		return none{}, err
	})
	return err
}
