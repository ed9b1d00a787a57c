//go:build ceph

package holds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

const (
	// fencedByHand is who the hold names as the fencer.
	fencedByHand = "custody fence"
	firstWait    = 100 * time.Millisecond
	maxWait      = 2 * time.Second
)

func (c *client) Fence(ctx context.Context, r Row) (Fenced, error) {
	done := Fenced{Cluster: r.Cluster, Volume: r.Spec(), Node: r.Node, Instance: r.Instance}
	if r.Node == "" {
		return done, fmt.Errorf("%s is %s: nobody holds it, so there is nobody to fence", r.Spec(), r.State)
	}
	cluster, err := c.connect(r.Cluster, ceph.Controller)
	if err != nil {
		return done, err
	}
	doors := &doors{Registry: cluster.Registry(), Fencer: cluster.Fencer()}
	start := time.Now()
	m := exclusive.Manager{
		Registry: doors, Fencer: doors, Evidence: doors, First: firstWait, Max: maxWait,
		Now: func() time.Duration { return time.Since(start) },
	} // Detach uses no device
	ask := exclusive.Request{Verb: exclusive.Detach, Volume: r.volume, From: r.Node, Policy: exclusive.Always, Me: exclusive.Who{Node: fencedByHand}}
	memo, next := m.Run(ctx, ask, exclusive.Memo{})
	for next.Kind == exclusive.Wait {
		if err := pause(ctx, next.After); err != nil {
			return done, fmt.Errorf("fence %s of %s: not finished (%s); run it again, or whoever wants the volume goes on: %w", r.Instance, r.Spec(), next.Why, errors.Join(doors.failed, err))
		}
		memo, next = m.Run(ctx, ask, memo)
	}
	done.Epoch = memo.Hold.Epoch
	switch {
	case next.Kind == exclusive.Refused && next.Why == exclusive.WhyOpaque:
		return done, fmt.Errorf("%s may be in use by a client that nobody knows: only a new boot of node %s, or a fence of its whole machine, makes it free", r.Spec(), r.Node)
	case next.Kind != exclusive.Done:
		return done, fmt.Errorf("fence %s of %s: %s: %w", r.Instance, r.Spec(), next.Why, doors.failed)
	}
	return doors.done(done, memo.Hold)
}

// doors are the cluster's, and remember what went through them.
type doors struct {
	exclusive.Registry
	exclusive.Fencer
	fenced  exclusive.Instance
	barrier uint64
	freed   bool
	failed  error // of the last call
}

// Judge says nothing against the owner: whoever fences by hand has judged.
func (d *doors) Judge(context.Context, exclusive.Hold) (exclusive.Verdict, error) {
	return exclusive.Alive, nil
}

func (d *doors) Load(ctx context.Context, volume string) (h exclusive.Hold, err error) {
	h, err = d.Registry.Load(ctx, volume)
	d.failed = err
	return h, err
}

func (d *doors) Swap(ctx context.Context, h exclusive.Hold) (rev string, err error) {
	rev, err = d.Registry.Swap(ctx, h)
	d.failed, d.freed = err, err == nil && h.State == exclusive.Free
	return rev, err
}

func (d *doors) List(ctx context.Context, volume string, f exclusive.Fence) error {
	d.failed = d.Registry.List(ctx, volume, f)
	return d.failed
}

func (d *doors) Fence(ctx context.Context, i exclusive.Instance) (barrier uint64, err error) {
	barrier, err = d.Fencer.Fence(ctx, i)
	if d.failed = err; err == nil {
		d.fenced, d.barrier = i, max(d.barrier, barrier)
	}
	return barrier, err
}

func (d *doors) Fenced(ctx context.Context, i exclusive.Instance) (stands bool, err error) {
	stands, err = d.Fencer.Fenced(ctx, i)
	if d.failed = err; err == nil && !stands {
		d.failed = errShort
	}
	return stands, err
}

// errShort: see package ceph on the blocklist's own hour.
var errShort = errors.New("the blocklist has an entry for this client that ends within the year, mostly the hour that Ceph itself sets, and a longer one has no effect until then (docs/ceph-caps.md)")

// done says what was fenced. That the request is fulfilled says only that the node does not hold the volume any more.
func (d *doors) done(f Fenced, h exclusive.Hold) (Fenced, error) {
	f.Instance, f.Barrier = string(d.fenced), d.barrier
	if !d.freed && d.fenced == "" {
		return f, fmt.Errorf("%s is not held by node %s any more, and nothing was taken from it: its hold is %s now. Look again with custody holds", f.Volume, f.Node, h.State)
	}
	return f, nil
}
