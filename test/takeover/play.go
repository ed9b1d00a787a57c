//go:build ceph

package takeover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/failpoint"
)

// Fate is what happens to the owner before its volume is taken.
type Fate string

const (
	Alive  Fate = "alive"  // it goes on writing
	Killed Fate = "killed" // node process and image server get SIGKILL, and the node process comes back
	Paused Fate = "paused" // node process and image server get SIGSTOP, and SIGCONT after the take-over
	Cut    Fate = "cut"    // its network is cut, and joined again after the take-over
)

// Fates are all of them.
var Fates = []Fate{Alive, Killed, Paused, Cut}

const (
	playWithin = 2 * time.Minute
	killTries  = 4
)

// Play is one take-over: owner has the volume staged and a writer on it.
type Play struct {
	Fleet        *Fleet
	Owner, Taker *Machine
	Task         Task // Volume, FSType and Unfenced count
	Fate         Fate
	Old          *Writer
	Device       exclusive.Mapping // the owner's
	// Kills, if not nil, chooses where the taker's and the old owner's process is killed.
	Kills *rand.Rand
	// FirstWrite says to write one block as soon as the volume is staged, and to note when that was acknowledged.
	FirstWrite bool
}

// Outcome is what a take-over has come to.
type Outcome struct {
	Took    time.Duration // from the stage request to the first acknowledged write, with FirstWrite
	Writer  *Writer       // the new owner's
	Device  exclusive.Mapping
	OldOver int // blocks of the old writer after the new one has written each
	Lost    int // acknowledged writes of the old writer that the new owner did not find
	Killed  int // processes killed at failpoints
	OldErr  error
}

// Run plays it. The error says what broke the play or the protocol, but for what Outcome counts.
func (p *Play) Run(ctx context.Context) (o Outcome, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, playWithin, fmt.Errorf("a take-over (%s) was not over within %s", p.Fate, playWithin))
	defer cancel()
	path := p.Taker.Path(p.Task.Volume, p.Task.FSType)
	if err := p.Old.Await(ctx, Blocks); err != nil {
		return o, err
	}
	if err := p.disturb(); err != nil {
		return o, err
	}
	stage := p.Task
	stage.Verb, stage.Verdict = exclusive.Stage, exclusive.Silent
	begin := time.Now()
	reply, err := p.stubborn(ctx, p.Taker, stage, &o)
	if err != nil {
		return o, errors.Join(err, p.restore(ctx))
	}
	seen, err := p.first(path, begin, &o)
	if err != nil {
		return o, errors.Join(err, p.restore(ctx))
	}
	o.Device = reply.Map
	if o.Writer, err = StartWriter(path, p.Old.Name+1); err != nil {
		return o, errors.Join(err, p.restore(ctx))
	}
	err = o.Writer.Await(ctx, Blocks)
	if err := errors.Join(err, p.restore(ctx)); err != nil {
		return o, err
	}
	if err := p.aftermath(ctx, &o); err != nil {
		return o, err
	}
	acked, _ := p.Old.Acked()
	for n, b := range seen {
		if b.Name == p.Old.Name && b.Number < acked[n] || b.Name != p.Old.Name && acked[n] > 0 {
			o.Lost++
		}
	}
	left, err := ReadBlocks(path)
	if err != nil {
		return o, err
	}
	for _, b := range left {
		if b.Name != o.Writer.Name {
			o.OldOver++
		}
	}
	return o, nil
}

// first reads what the old owner has left, or, where time counts, writes first.
func (p *Play) first(path string, begin time.Time, o *Outcome) (seen [Blocks]Block, err error) {
	if p.FirstWrite {
		// Block 0 with the number 0: the block is lost for the check of lost writes, and is put in from what was acknowledged.
		if err := WriteOnce(path, Block{Name: p.Old.Name + 1}); err != nil {
			return seen, fmt.Errorf("the first write: %w", err)
		}
		o.Took = time.Since(begin)
	}
	if seen, err = ReadBlocks(path); err != nil {
		return seen, err
	}
	if p.FirstWrite {
		acked, _ := p.Old.Acked()
		seen[0] = Block{p.Old.Name, acked[0]}
	}
	return seen, nil
}

func (p *Play) disturb() error {
	switch p.Fate {
	case Killed:
		return p.Owner.Signal(p.Device, syscall.SIGKILL)
	case Paused:
		return p.Owner.Signal(p.Device, syscall.SIGSTOP)
	case Cut:
		return p.Owner.Join(false)
	}
	return nil
}

// restore lets the old owner go on.
func (p *Play) restore(ctx context.Context) error {
	switch p.Fate {
	case Killed:
		return p.Owner.Start(ctx)
	case Paused:
		return p.Owner.Signal(p.Device, syscall.SIGCONT)
	case Cut:
		return p.Owner.Join(true)
	}
	return nil
}

// stubborn has a machine do a task, and again after each time its process was killed while at it, as the CO and the
// kubelet do.
func (p *Play) stubborn(ctx context.Context, m *Machine, t Task, o *Outcome) (Reply, error) {
	for try := 0; ; try++ {
		t.Failpoints = nil
		if p.Kills != nil && try < killTries {
			t.Failpoints = &failpoint.Plan{Seed: p.Kills.Uint64(), Rules: []failpoint.Rule{
				{Point: "*.*.*", Action: failpoint.Kill, Pass: 1 + p.Kills.IntN(40)},
			}}
		}
		reply, err := m.Expect(ctx, t, exclusive.Done)
		if !errors.Is(err, ErrDied) || t.Failpoints == nil {
			return reply, err
		}
		o.Killed++
		if err := m.Start(ctx); err != nil {
			return reply, err
		}
	}
}

// aftermath waits until the old writer has ended, sees that the fence still stands, and has the old owner give up its
// device, which lifts it. Without a fence the old writer does not end by itself.
func (p *Play) aftermath(ctx context.Context, o *Outcome) error {
	if p.Task.Unfenced {
		if p.Fate != Killed {
			// It is to write on, if it can: the control must see it.
			waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
			_ = p.Old.Await(waiting, Blocks) // whether it could shows in the blocks
			cancel()
		}
		p.Old.Kill()
		o.Writer.Kill()
		_, err := o.Writer.Ended(ctx)
		_, errOld := p.Old.Ended(ctx)
		return errors.Join(err, errOld)
	}
	var err error
	if o.OldErr, err = p.Old.Ended(ctx); err != nil {
		return err
	}
	if o.OldErr == nil {
		return errors.New("the old writer ended without an error")
	}
	if err := p.fenced(ctx, true); err != nil {
		return err
	}
	give := p.Task
	give.Verb = exclusive.Unstage
	if _, err := p.stubborn(ctx, p.Owner, give, o); err != nil {
		return err
	}
	if err := p.fenced(ctx, false); err != nil {
		return err
	}
	return o.Writer.Await(ctx, 1) // the new owner is unharmed
}

// fenced sees whether the old client is on the blocklist for years, and on the volume's list.
func (p *Play) fenced(ctx context.Context, want bool) error {
	got, err := p.Fleet.cluster.Fencer().Fenced(ctx, p.Device.Instance)
	if err != nil {
		return err
	}
	list, err := p.Fleet.cluster.Registry().Fences(ctx, p.Task.Volume)
	if err != nil {
		return err
	}
	listed := slices.ContainsFunc(list, func(f exclusive.Fence) bool { return f.Instance == p.Device.Instance })
	if got != want || listed != want {
		return fmt.Errorf("client %s of the old owner: fenced %v, listed %v; wanted %v", p.Device.Instance, got, listed, want)
	}
	return nil
}

// Begin stages a volume on a machine and starts a writer on it.
func Begin(ctx context.Context, m *Machine, t Task, name uint64) (*Writer, exclusive.Mapping, error) {
	t.Verb = exclusive.Stage
	reply, err := m.Expect(ctx, t, exclusive.Done)
	if err != nil {
		return nil, exclusive.Mapping{}, err
	}
	w, err := StartWriter(m.Path(t.Volume, t.FSType), name)
	return w, reply.Map, err
}

// End has the owner give the volume back.
func End(ctx context.Context, m *Machine, t Task, w *Writer) error {
	w.Kill()
	if _, err := w.Ended(ctx); err != nil {
		return fmt.Errorf("at %s: %w", filepath.Base(w.Path), err)
	}
	t.Verb = exclusive.Unstage
	_, err := m.Expect(ctx, t, exclusive.Done)
	return err
}
