package node

import (
	"context"

	"github.com/custody-storage/custody/exclusive"
)

// Doors are the four doors of package exclusive for one volume.
type Doors struct {
	Registry exclusive.Registry
	Device   exclusive.Device
	Fencer   exclusive.Fencer
	Evidence exclusive.Evidence
}

// Around is called in the place of each call through a door, by its name, and makes the call. A test stops there, fails
// there, or dies there.
type Around func(door string, call func() error) error

// watched keeps what goes through the doors: the step machine itself tells only that a door has not answered.
type watched struct {
	Doors
	around Around
	trace  *Trace
}

// Trace is what was seen of one run.
type Trace struct {
	Memo exclusive.Memo
	// Err is what the last door that failed has answered, and Door its name; nil if all went well since.
	Err  error
	Door string
	// Took is the owner that the volume was taken from; zero if from nobody.
	Took exclusive.Hold
	// Fenced: the owner's instance was shut out for it.
	Fenced bool
}

func (w *watched) do(door string, call func() error) error {
	var err error
	if w.around != nil {
		err = w.around(door, call)
	} else {
		err = call()
	}
	w.trace.Err, w.trace.Door = err, door
	return err
}

// through is do for a call that gives something.
func through[T any](w *watched, door string, call func() (T, error)) (T, error) {
	var value T
	err := w.do(door, func() (err error) {
		value, err = call()
		return err
	})
	return value, err
}

func (w *watched) Load(ctx context.Context, volume string) (exclusive.Hold, error) {
	return through(w, "load", func() (exclusive.Hold, error) { return w.Registry.Load(ctx, volume) })
}

func (w *watched) Swap(ctx context.Context, h exclusive.Hold) (string, error) {
	return through(w, "swap "+h.State.String(), func() (string, error) { return w.Registry.Swap(ctx, h) })
}

func (w *watched) List(ctx context.Context, volume string, f exclusive.Fence) error {
	return w.do("list", func() error { return w.Registry.List(ctx, volume, f) })
}

func (w *watched) Listed(ctx context.Context, volume, machine string, after exclusive.Instance) (exclusive.Fence, error) {
	return through(w, "listed", func() (exclusive.Fence, error) { return w.Registry.Listed(ctx, volume, machine, after) })
}

func (w *watched) Unlist(ctx context.Context, volume string, f exclusive.Fence) error {
	return w.do("unlist", func() error { return w.Registry.Unlist(ctx, volume, f) })
}

func (w *watched) Find(ctx context.Context, volume string, i exclusive.Instance) (exclusive.Mapping, error) {
	return through(w, "find", func() (exclusive.Mapping, error) { return w.Device.Find(ctx, volume, i) })
}

func (w *watched) Other(ctx context.Context, volume string, than exclusive.Instance) (exclusive.Mapping, error) {
	return through(w, "other", func() (exclusive.Mapping, error) { return w.Device.Other(ctx, volume, than) })
}

func (w *watched) Map(ctx context.Context, volume string) (exclusive.Mapping, error) {
	return through(w, "map", func() (exclusive.Mapping, error) { return w.Device.Map(ctx, volume) })
}

func (w *watched) Unmap(ctx context.Context, m exclusive.Mapping) error {
	return w.do("unmap", func() error { return w.Device.Unmap(ctx, m) })
}

func (w *watched) Reach(ctx context.Context, m exclusive.Mapping, barrier uint64) error {
	return w.do("reach", func() error { return w.Device.Reach(ctx, m, barrier) })
}

func (w *watched) Format(ctx context.Context, m exclusive.Mapping) error {
	return w.do("format", func() error { return w.Device.Format(ctx, m) })
}

func (w *watched) Expose(ctx context.Context, m exclusive.Mapping) error {
	return w.do("expose", func() error { return w.Device.Expose(ctx, m) })
}

func (w *watched) Withdraw(ctx context.Context, volume string) error {
	return w.do("withdraw", func() error { return w.Device.Withdraw(ctx, volume) })
}

func (w *watched) Fence(ctx context.Context, i exclusive.Instance) (uint64, error) {
	return through(w, "fence", func() (uint64, error) { return w.Fencer.Fence(ctx, i) })
}

func (w *watched) Fenced(ctx context.Context, i exclusive.Instance) (bool, error) {
	return through(w, "fenced", func() (bool, error) { return w.Fencer.Fenced(ctx, i) })
}

func (w *watched) Lift(ctx context.Context, i exclusive.Instance, p exclusive.Proof) error {
	return w.do("lift", func() error { return w.Fencer.Lift(ctx, i, p) })
}

func (w *watched) Judge(ctx context.Context, h exclusive.Hold) (exclusive.Verdict, error) {
	return through(w, "judge", func() (exclusive.Verdict, error) { return w.Evidence.Judge(ctx, h) })
}
