//go:build ceph

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/takeover"
)

// chain is how often one volume changes hands before another is made.
const chain = 9

var fates = []takeover.Fate{takeover.Alive, takeover.Killed, takeover.Paused}

// figures are what was measured.
type figures struct {
	runs              int
	fs                string
	takeovers         map[takeover.Fate][]time.Duration
	plain             []time.Duration
	held, bare        []time.Duration // stages that nobody contests
	oldBlocks, losses int
}

func (o options) measure(ctx context.Context, fleet *takeover.Fleet) (figures, error) {
	f := figures{runs: o.runs, fs: o.fs, takeovers: map[takeover.Fate][]time.Duration{}}
	a, err := fleet.Machine(ctx, "a")
	if err != nil {
		return f, err
	}
	b, err := fleet.Machine(ctx, "b")
	if err != nil {
		return f, err
	}
	for _, part := range []struct {
		what string
		do   func(*show.Work) error
	}{
		{fmt.Sprintf("%d stages that nobody contests, with a hold and without", o.runs), func(w *show.Work) error { return o.stages(ctx, fleet, a, &f, w) }},
		{fmt.Sprintf("%d take-overs each of owners alive, killed, paused", o.runs), func(w *show.Work) error { return o.takeovers(ctx, fleet, [2]*takeover.Machine{a, b}, &f, w) }},
		{fmt.Sprintf("%d take-overs by plain RBD, at once, about 30 s", o.plain), func(*show.Work) error { return o.plains(ctx, fleet, &f) }},
	} {
		work := o.progress.Begin("%s", part.what)
		if err := work.End(part.do(work)); err != nil {
			return f, err
		}
	}
	return f, nil
}

// stages alternates, so that both meet the same load.
func (o options) stages(ctx context.Context, fleet *takeover.Fleet, m *takeover.Machine, f *figures, work *show.Work) error {
	volume, err := fleet.Volume(ctx, takeover.Locked)
	if err != nil {
		return err
	}
	held := takeover.Task{Volume: volume, FSType: o.fs, Verb: exclusive.Stage}
	back, bare, away := held, held, held
	back.Verb = exclusive.Unstage
	bare.Bare = true
	away.Bare, away.Unmap = true, true
	for n := range o.runs + 1 {
		for _, t := range []takeover.Task{held, back, bare, away} {
			reply, err := m.Expect(ctx, t, exclusive.Done)
			if err != nil {
				return err
			}
			switch {
			case n == 0: // the first one formats
			case t == held:
				f.held = append(f.held, reply.Took)
			case t == bare:
				f.bare = append(f.bare, reply.Took)
			}
		}
		work.Note("%d of %d", n, o.runs)
	}
	return nil
}

func (o options) takeovers(ctx context.Context, fleet *takeover.Fleet, pair [2]*takeover.Machine, f *figures, work *show.Work) error {
	total := o.runs * len(fates)
	for n := 0; n < total; {
		volume, err := fleet.Volume(ctx, takeover.Locked)
		if err != nil {
			return err
		}
		task := takeover.Task{Volume: volume, FSType: o.fs}
		writer, device, err := takeover.Begin(ctx, pair[n%2], task, 1)
		if err != nil {
			return err
		}
		for last := min(n+chain, total); n < last; n++ {
			p := takeover.Play{
				Fleet: fleet, Owner: pair[n%2], Taker: pair[(n+1)%2], Task: task, Fate: fates[n%len(fates)],
				Old: writer, Device: device, FirstWrite: true,
			}
			out, err := p.Run(ctx)
			if err != nil {
				return err
			}
			f.takeovers[p.Fate] = append(f.takeovers[p.Fate], out.Took)
			f.oldBlocks += out.OldOver
			f.losses += out.Lost
			writer, device = out.Writer, out.Device
			work.Note("%d of %d, the last in %s", n+1, total, out.Took.Round(time.Millisecond))
		}
		if err := takeover.End(ctx, pair[n%2], task, writer); err != nil {
			return err
		}
	}
	if f.losses > 0 {
		return fmt.Errorf("%d acknowledged writes were lost", f.losses)
	}
	return nil
}

// plains makes all at once, each with machines of its own, since nearly all of it is waiting.
func (o options) plains(ctx context.Context, fleet *takeover.Fleet, f *figures) error {
	var wg sync.WaitGroup
	f.plain = make([]time.Duration, o.plain)
	errs := make([]error, o.plain)
	for n := range o.plain {
		wg.Go(func() {
			f.plain[n], errs[n] = o.plainOnce(ctx, fleet)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (o options) plainOnce(ctx context.Context, fleet *takeover.Fleet) (time.Duration, error) {
	a, err := fleet.Machine(ctx, "pa")
	if err != nil {
		return 0, err
	}
	b, err := fleet.Machine(ctx, "pb")
	if err != nil {
		return 0, err
	}
	volume, err := fleet.Volume(ctx, takeover.Locked)
	if err != nil {
		return 0, err
	}
	if o.fs != "" { // a stage formats it
		task := takeover.Task{Volume: volume, FSType: o.fs, Verb: exclusive.Stage}
		for _, verb := range []exclusive.Verb{exclusive.Stage, exclusive.Unstage} {
			task.Verb = verb
			if _, err := a.Expect(ctx, task, exclusive.Done); err != nil {
				return 0, err
			}
		}
	}
	return takeover.PlainKilled(ctx, fleet, a, b, volume, o.fs)
}

func median(all []time.Duration) time.Duration { return quantile(all, 50) }

// quantile gives the duration that so many of 100 are not above.
func quantile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	if n := len(sorted); percent == 50 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}
