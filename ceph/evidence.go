package ceph

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/custody-storage/custody/exclusive"
)

// Beat is the last heartbeat of a machine.
type Beat struct {
	Node  string
	Boot  string
	Count uint64 // grows with each beat of a boot
}

// Witness is a further source of evidence, such as the CO's opinion of a node (out-of-service taint, Node object gone).
type Witness func(ctx context.Context, who exclusive.Who) (exclusive.Verdict, error)

// Evidence judges owners by their machines' heartbeats and by what others say. It implements [exclusive.Evidence]. It
// knows only what it has seen: call Run, or Observe regularly, from when the process starts.
type Evidence struct {
	// Beats reads all heartbeats, by machine.
	Beats func(context.Context) (map[string]Beat, error)
	// Silence is how long a heartbeat must have stood still.
	Silence time.Duration
	// Gap is the most that the time between two observations counts for. Where the cluster can't be read it can't be
	// written either, and after an outage no machine is silent yet. About twice the time between observations; 0 is a
	// third of Silence.
	Gap time.Duration
	// Witnesses are asked too.
	Witnesses []Witness
	// Now is monotonic time; nobody's wall clock matters.
	Now func() time.Duration

	mu    sync.Mutex
	last  time.Duration
	begun bool
	seen  map[string]*sight
}

type sight struct {
	beat  Beat
	still time.Duration // for so long it was seen not to move
}

// Observe reads the heartbeats.
func (e *Evidence) Observe(ctx context.Context) error {
	beats, err := e.Beats(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now()
	gap := e.Gap
	if gap == 0 {
		gap = e.Silence / 3
	}
	passed := min(now-e.last, gap)
	if !e.begun {
		passed, e.begun, e.seen = 0, true, map[string]*sight{}
	}
	e.last = now
	for machine, beat := range beats {
		was := e.seen[machine]
		if was == nil || was.beat != beat {
			e.seen[machine] = &sight{beat: beat}
			continue
		}
		was.still += passed
	}
	for machine := range e.seen {
		if _, ok := beats[machine]; !ok {
			delete(e.seen, machine)
		}
	}
	return nil
}

// Run observes until ctx ends and hands each error to report.
func (e *Evidence) Run(ctx context.Context, every time.Duration, report func(error)) {
	repeat(ctx, every, e.Observe, report)
}

// repeat does something every so often, now for the first time, until ctx ends.
func repeat(ctx context.Context, every time.Duration, f func(context.Context) error, report func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// Judge implements [exclusive.Evidence]. The strongest word counts; it fails only if nothing is known against the owner
// and somebody could not be asked.
func (e *Evidence) Judge(ctx context.Context, h exclusive.Hold) (exclusive.Verdict, error) {
	var errs []error
	if err := e.Observe(ctx); err != nil {
		errs = append(errs, err)
	}
	verdict := e.heard(h.Who)
	for _, ask := range e.Witnesses {
		v, err := ask(ctx, h.Who)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if weight(v) > weight(verdict) {
			verdict = v
		}
	}
	if verdict != exclusive.Alive {
		return verdict, nil
	}
	return exclusive.Alive, errors.Join(errs...)
}

func (e *Evidence) heard(who exclusive.Who) exclusive.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.seen[who.Machine]
	switch {
	case s == nil: // it never had a heartbeat: nothing is known against it
		return exclusive.Alive
	case s.beat.Boot != who.Boot:
		return exclusive.Reborn
	case s.still >= e.Silence:
		return exclusive.Silent
	}
	return exclusive.Alive
}

// weight orders verdicts by how much they allow.
func weight(v exclusive.Verdict) int {
	switch v {
	case exclusive.Severed:
		return 4
	case exclusive.Reborn:
		return 3
	case exclusive.Lost:
		return 2
	case exclusive.Silent:
		return 1
	}
	return 0
}
