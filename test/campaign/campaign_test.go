package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/test/double"
	"github.com/custody-storage/custody/test/oracle"
	"github.com/custody-storage/custody/test/proxy"
)

// misbehaviour is what the doubles' calls meet, one in four.
var misbehaviour = double.Faults{
	Slow: 0.05, SlowBy: callTimeout, Lost: 0.05, LostBy: callTimeout + 300*time.Millisecond, Late: 0.05, LateBy: settle - 1500*time.Millisecond,
	Wrong: 0.03, Detail: 0.02, Refuse: 0.05, Die: 0.005,
	Delay: 20 * time.Millisecond,
}

// One double for each way of recovery. What is said of a kind holds for both unless
// the driver differs.
var (
	found = wire.Capabilities{FindByName: true, OwnerMark: true}
	byID  = double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: found}
	// A server that makes up ids, and one more bucket or account at every retry: found by name.
	finder = double.Config{Dialect: double.OnePhase, Buckets: byID, Accounts: byID, Faults: misbehaviour}
	// The id is asked for first, and is another one each time it is asked for.
	twoPhase = double.Config{Dialect: double.TwoPhase, Faults: misbehaviour,
		Buckets:  double.Trait{IDs: double.Assigned, Repeat: double.Anew},
		Accounts: double.Trait{IDs: double.Assigned, Repeat: double.Anew}}
	// A released driver: the id is the name, its own bucket is ALREADY_EXISTS to it, each repeated grant adds a key.
	released = double.Config{Dialect: double.V1alpha1, Faults: misbehaviour,
		Buckets:  double.Trait{IDs: double.ByName, Repeat: double.Taken},
		Accounts: double.Trait{IDs: double.ByName, Repeat: double.Anew}}
	releasedFlags = []string{"--bucket-id-template={{.Name}}", "--account-id-template={{.Name}}"}
	// Buckets that a repeat finds again, accounts that can only be deleted by name.
	eraser = double.Config{Dialect: double.OnePhase, Faults: misbehaviour,
		Buckets:  double.Trait{IDs: double.Assigned, Repeat: double.Same, Offers: wire.Capabilities{CreateRepeatSafe: true}},
		Accounts: double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: wire.Capabilities{DeleteByName: true}}}
)

// envSoak is how long the long campaign goes on. There the API server is killed too,
// which takes it ten seconds to get over.
const envSoak = "CUSTODY_SOAK"

// soak is how long a campaign goes on.
func soak(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(envSoak)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", envSoak, err)
	}
	return d
}

// enough is how many kills and faults a campaign must have seen.
const enough = 500

func TestCampaign(t *testing.T) {
	w := newWorld(t, "chaos", seedOf(t))
	w.real()
	w.double("finder", finder)
	w.double("twophase", twoPhase)
	w.double("released", released, releasedFlags...)
	w.double("eraser", eraser)
	w.controller(0)
	w.controller(1)
	for _, d := range w.drivers {
		w.sidecar(d, 0, arm{rules: points})
		w.sidecar(d, 1, arm{rules: points})
	}
	report := w.campaign(campaign{lives: 50, length: soak(t, 100*time.Second), enough: enough, every: 500 * time.Millisecond, s3: true, api: os.Getenv(envSoak) != "", settle: 4 * time.Minute})
	if !report.Clean() {
		t.Errorf("%s\n%s", report, report.Details())
	}
	if n := w.total(); n < enough {
		t.Errorf("only %d kills and faults, not %d", n, enough)
	}
}

// The control: without Intents the same faults leave orphans, or things that two records claim. If they don't, the
// campaign proves nothing. A busy machine brings fewer faults to the moments that matter, so it may take several tries.
func TestCampaignWithoutIntents(t *testing.T) {
	var orphans, doubles int
	for try := 0; try < 3 && orphans == 0 && !t.Failed(); try++ {
		t.Run("", func(t *testing.T) {
			w := newWorld(t, "control", seedOf(t))
			w.double("finder", finder)
			w.double("released", released, releasedFlags...)
			w.controller(0)
			for _, d := range w.drivers {
				w.sidecar(d, 0, arm{rules: points, withoutIntents: true})
				w.sidecar(d, 1, arm{rules: points, withoutIntents: true})
			}
			report := w.campaign(campaign{lives: 30, length: 35 * time.Second, enough: 100, every: 500 * time.Millisecond, settle: 20 * time.Second, withoutIntents: true})
			orphans, doubles = orphans+report.Orphans, doubles+report.Doubles
		})
	}
	if orphans+doubles == 0 {
		t.Error("neither an orphan nor a double without Intents")
	}
}

// campaign says how long and how hard.
type campaign struct {
	lives   int
	length  time.Duration // of the faults
	every   time.Duration // a kill, freeze or cut, on average
	settle  time.Duration // at most, after the faults
	enough  int           // kills and faults, for which it goes on to four times the length
	s3, api bool          // these servers are killed too
	// withoutIntents: the control. What is lost on the way fails nothing.
	withoutIntents bool
}

// campaign runs lives under chaos, ends the chaos, lets all come to rest and asks
// the oracle.
func (w *world) campaign(c campaign) oracle.Report {
	w.t.Helper()
	begin := time.Now()
	w.proxy.Set(losses)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	// On a slow machine less happens in a minute: it goes on until enough has.
	go func() {
		for time.Since(begin) < c.length || w.total() < c.enough && time.Since(begin) < 4*c.length {
			time.Sleep(poll)
		}
		cancel()
	}()
	var lives []*life
	var all sync.WaitGroup
	for n := range c.lives {
		l := newLife(w, w.drivers[n%len(w.drivers)], n)
		l.careless = c.withoutIntents
		lives = append(lives, l)
		all.Go(func() { l.run(ctx) })
	}
	all.Go(func() { (&chaos{w: w, dice: w.dice(10), every: c.every, s3: c.s3, api: c.api}).run(ctx) })
	all.Wait()

	w.calm()
	ctx, cancel = context.WithTimeout(w.ctx, c.settle)
	defer cancel()
	for _, l := range lives {
		all.Go(func() { l.finish(ctx) })
	}
	all.Wait()
	var keeps []oracle.Keep
	for _, l := range lives {
		keeps = append(keeps, l.keep()...)
	}
	for _, d := range w.drivers {
		for d.backend != nil && d.backend.Pending() > 0 && ctx.Err() == nil {
			time.Sleep(poll)
		}
	}
	options := w.options(keeps)
	options.WithoutIntents = c.withoutIntents
	// A look of its own: on a busy machine, and where things never end (the control), the lives have used up the time.
	look, stop := context.WithTimeout(w.ctx, 15*time.Second)
	defer stop()
	report, err := oracle.Wait(look, options)
	if ctx.Err() == nil && err == nil && !report.Clean() {
		report, err = oracle.Wait(ctx, options)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.print(report, lives, time.Since(begin))
	return report
}

// calm ends all faults.
func (w *world) calm() {
	w.t.Helper()
	if err := os.WriteFile(w.off(), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.proxy.Set(proxy.Faults{})
	for _, d := range w.drivers {
		if d.backend != nil {
			d.backend.Calm()
		}
	}
}

// happened counts all that was done to anybody, by kind.
func (w *world) happened() map[string]int {
	all := w.fleet.counts()
	for f, n := range w.proxy.Counts() {
		if f != proxy.Refused { // there are as many as somebody tries
			all["proxy: "+string(f)] += n
		}
	}
	for _, d := range w.drivers {
		if d.backend == nil {
			continue
		}
		for f, n := range d.backend.Faults() {
			all["driver: "+f] += n
		}
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "failpoints")); err == nil {
		for line := range strings.Lines(string(log)) {
			if parts := strings.Fields(line); len(parts) == 3 {
				door, _, _ := strings.Cut(parts[2], ".")
				all["failpoint: "+parts[1]+" at "+door]++
			}
		}
	}
	return all
}

func (w *world) total() (n int) {
	for _, m := range w.happened() {
		n += m
	}
	return n
}

func (w *world) print(r oracle.Report, lives []*life, took time.Duration) {
	happened := w.happened()
	var lines []string
	for what, n := range happened {
		lines = append(lines, fmt.Sprintf("%6d %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	made, ready := 0, 0
	for _, l := range lives {
		made += l.made
		ready += len(l.shown)
	}
	fmt.Fprintf(os.Stderr, "%s, seed %d: %d kills and faults in %s\n%s\n%6d claims and accesses made, %d seen ready, %d checked at the end\n%6d things in the backends, Intents %v, %d in doubt\n%s\n",
		w.t.Name(), w.seed, w.total(), took.Round(time.Second), strings.Join(lines, "\n"), made, ready, r.KeptChecks, r.Items, r.Intents, r.InDoubt, r)
}
