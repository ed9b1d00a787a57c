//go:build ceph

package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

const (
	envSeed = "CUSTODY_TAKEOVER_SEED"
	envRuns = "CUSTODY_TAKEOVERS"

	lanes = 4
)

func number(t *testing.T, env string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return n
}

// TestTakeOvers: at least 100 take-overs of volumes in use, with the owner alive, killed, paused or cut off, and with
// machines' processes killed at any step. No acknowledged write is lost, and no block of an old writer lands.
//
// It prints its seed; CUSTODY_TAKEOVER_SEED plays the same choices again, CUSTODY_TAKEOVERS sets how many.
func TestTakeOvers(t *testing.T) {
	f := fleet(t)
	seed, runs := number(t, envSeed, uint64(time.Now().UnixNano())), number(t, envRuns, 104)
	t.Logf("%s=%d", envSeed, seed)
	var done, kills, cut atomic.Int64
	begin := time.Now()
	t.Run("lanes", func(t *testing.T) {
		for lane := range uint64(lanes) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				dice := rand.New(rand.NewPCG(seed, lane))
				pair := [2]*Machine{machine(t, f, "a"), machine(t, f, "b")}
				for left := int(runs / lanes); left > 0; {
					chain := min(left, 9)
					playChain(t, f, pair, dice, chain, func(p *Play, o Outcome) {
						done.Add(1)
						kills.Add(int64(o.Killed))
						if p.Fate == Cut {
							cut.Add(1)
						}
					})
					left -= chain
				}
			})
		}
	})
	t.Logf("%d take-overs in %s, %d of owners cut off; %d processes killed at failpoints", done.Load(), time.Since(begin).Round(time.Second), cut.Load(), kills.Load())
	if got := done.Load(); !t.Failed() && uint64(got) < runs/lanes*lanes {
		t.Errorf("only %d take-overs", got)
	}
	if runs >= 100 && kills.Load() == 0 {
		t.Error("no process was killed: the failpoints are not armed")
	}
}

// playChain has two machines take one volume from each other, several times.
func playChain(t *testing.T, f *Fleet, pair [2]*Machine, dice *rand.Rand, chain int, note func(*Play, Outcome)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	features := []uint64{Locked, Bare}[dice.IntN(2)]
	volume, err := f.Volume(ctx, features)
	must(t, err)
	task := Task{Volume: volume}
	writer, device, err := Begin(ctx, pair[0], task, 1)
	must(t, err)
	for n := range chain {
		p := &Play{
			Fleet: f, Owner: pair[n%2], Taker: pair[(n+1)%2], Task: task, Fate: Fates[dice.IntN(len(Fates))],
			Old: writer, Device: device,
		}
		if dice.IntN(2) == 0 {
			p.Kills = dice
		}
		o, err := p.Run(ctx)
		if err != nil {
			t.Fatalf("%s, take-over %d, owner %s: %v", volume, n, p.Fate, err)
		}
		if o.Lost > 0 || o.OldOver > 0 {
			t.Errorf("%s, take-over %d, owner %s, features %d: %d acknowledged writes lost, %d blocks of the old writer landed", volume, n, p.Fate, features, o.Lost, o.OldOver)
		}
		note(p, o)
		writer, device = o.Writer, o.Device
	}
	must(t, End(ctx, pair[chain%2], task, writer))
}

// TestControl: the same with the fence switched off must show the old writer's blocks.
func TestControl(t *testing.T) {
	f := fleet(t)
	for _, fate := range []Fate{Alive, Paused, Cut} {
		t.Run(string(fate), func(t *testing.T) {
			a, b := machine(t, f, "a"), machine(t, f, "b")
			volume, err := f.Volume(t.Context(), Bare)
			must(t, err)
			task := Task{Volume: volume, Unfenced: true}
			writer, device, err := Begin(t.Context(), a, task, 1)
			must(t, err)
			p := &Play{Fleet: f, Owner: a, Taker: b, Task: task, Fate: fate, Old: writer, Device: device}
			o, err := p.Run(t.Context())
			must(t, err)
			t.Logf("without a fence %d of %d blocks are the old writer's", o.OldOver, Blocks)
			if o.OldOver == 0 {
				t.Error("without a fence nothing landed: the proof would not see a fault")
			}
		})
	}
}
