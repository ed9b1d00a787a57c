package failpoint

import (
	"context"

	"github.com/custody-storage/custody/exclusive"
)

// around passes through the point before a call and gives the one after it.
func (p *Points) around(call string) (after func()) {
	p.Pass(call + ".before")
	return func() { p.Pass(call + ".after") }
}

// Manager puts points around each call through each door of a manager but Evidence, which changes nothing.
func (p *Points) Manager(m exclusive.Manager) exclusive.Manager {
	m.Registry, m.Device, m.Fencer = &registry{p, m.Registry}, &device{p, m.Device}, &fencer{p, m.Fencer}
	return m
}

type registry struct {
	points *Points
	inner  exclusive.Registry
}

func (r *registry) Load(ctx context.Context, volume string) (exclusive.Hold, error) {
	defer r.points.around("registry.load")()
	return r.inner.Load(ctx, volume)
}

func (r *registry) Swap(ctx context.Context, h exclusive.Hold) (string, error) {
	defer r.points.around("registry.swap")()
	return r.inner.Swap(ctx, h)
}

func (r *registry) List(ctx context.Context, volume string, f exclusive.Fence) error {
	defer r.points.around("registry.list")()
	return r.inner.List(ctx, volume, f)
}

func (r *registry) Listed(ctx context.Context, volume, machine string, after exclusive.Instance) (exclusive.Fence, error) {
	defer r.points.around("registry.listed")()
	return r.inner.Listed(ctx, volume, machine, after)
}

func (r *registry) Unlist(ctx context.Context, volume string, f exclusive.Fence) error {
	defer r.points.around("registry.unlist")()
	return r.inner.Unlist(ctx, volume, f)
}

type device struct {
	points *Points
	inner  exclusive.Device
}

func (d *device) Find(ctx context.Context, volume string, i exclusive.Instance) (exclusive.Mapping, error) {
	defer d.points.around("device.find")()
	return d.inner.Find(ctx, volume, i)
}

func (d *device) Other(ctx context.Context, volume string, than exclusive.Instance) (exclusive.Mapping, error) {
	defer d.points.around("device.other")()
	return d.inner.Other(ctx, volume, than)
}

func (d *device) Map(ctx context.Context, volume string) (exclusive.Mapping, error) {
	defer d.points.around("device.map")()
	return d.inner.Map(ctx, volume)
}

func (d *device) Unmap(ctx context.Context, m exclusive.Mapping) error {
	defer d.points.around("device.unmap")()
	return d.inner.Unmap(ctx, m)
}

func (d *device) Reach(ctx context.Context, m exclusive.Mapping, barrier uint64) error {
	defer d.points.around("device.reach")()
	return d.inner.Reach(ctx, m, barrier)
}

func (d *device) Format(ctx context.Context, m exclusive.Mapping) error {
	defer d.points.around("device.format")()
	return d.inner.Format(ctx, m)
}

func (d *device) Expose(ctx context.Context, m exclusive.Mapping) error {
	defer d.points.around("device.expose")()
	return d.inner.Expose(ctx, m)
}

func (d *device) Withdraw(ctx context.Context, volume string) error {
	defer d.points.around("device.withdraw")()
	return d.inner.Withdraw(ctx, volume)
}

type fencer struct {
	points *Points
	inner  exclusive.Fencer
}

func (f *fencer) Fence(ctx context.Context, i exclusive.Instance) (uint64, error) {
	defer f.points.around("fencer.fence")()
	return f.inner.Fence(ctx, i)
}

func (f *fencer) Fenced(ctx context.Context, i exclusive.Instance) (bool, error) {
	defer f.points.around("fencer.fenced")()
	return f.inner.Fenced(ctx, i)
}

func (f *fencer) Lift(ctx context.Context, i exclusive.Instance, p exclusive.Proof) error {
	defer f.points.around("fencer.lift")()
	return f.inner.Lift(ctx, i, p)
}
