package ceph

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/custody-storage/custody/exclusive"
)

// observer judges by beats and a clock that the test sets.
type observer struct {
	Evidence
	beats map[string]Beat
	err   error
	clock time.Duration
}

func newObserver() *observer {
	o := &observer{beats: map[string]Beat{"m": {Node: "n", Boot: "b", Count: 1}}}
	o.Evidence = Evidence{
		Beats:   func(context.Context) (map[string]Beat, error) { return o.beats, o.err },
		Silence: 10 * time.Second, Gap: 2 * time.Second, Now: func() time.Duration { return o.clock },
	}
	return o
}

func (o *observer) expect(t *testing.T, want exclusive.Verdict) {
	t.Helper()
	got, err := o.Judge(t.Context(), exclusive.Hold{Who: exclusive.Who{Machine: "m", Node: "n", Boot: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("at %s: verdict %d, wanted %d", o.clock, got, want)
	}
}

func TestSilence(t *testing.T) {
	o := newObserver()
	o.expect(t, exclusive.Alive)
	for range 9 {
		o.clock += time.Second
		o.expect(t, exclusive.Alive)
	}
	o.clock += time.Second
	o.expect(t, exclusive.Silent)
	o.beats["m"] = Beat{Node: "n", Boot: "b", Count: 2}
	o.expect(t, exclusive.Alive)

	// An observer that slept, or a cluster that could not be read, proves nothing: nobody could beat either.
	o.clock += time.Hour
	o.expect(t, exclusive.Alive)
	o.err = errors.New("the cluster is away")
	o.clock += time.Hour
	if _, err := o.Judge(t.Context(), exclusive.Hold{}); err == nil {
		t.Error("judged without having read")
	}
	o.err = nil
	o.expect(t, exclusive.Alive)

	// Nothing is known against a machine that never had a heartbeat.
	delete(o.beats, "m")
	for range 20 {
		o.clock += time.Second
		o.expect(t, exclusive.Alive)
	}
	o.beats["m"] = Beat{Node: "n", Boot: "later", Count: 1}
	o.expect(t, exclusive.Reborn)
}

// TestGapDefault: an Evidence without a Gap is not deaf.
func TestGapDefault(t *testing.T) {
	o := newObserver()
	o.Gap = 0
	o.expect(t, exclusive.Alive)
	for range 3 {
		o.clock += 4 * time.Second
		o.expect(t, exclusive.Alive)
	}
	o.clock += 4 * time.Second
	o.expect(t, exclusive.Silent)
}

func TestWitnesses(t *testing.T) {
	say := func(v exclusive.Verdict, err error) Witness {
		return func(context.Context, exclusive.Who) (exclusive.Verdict, error) { return v, err }
	}
	away := errors.New("the API is away")
	for _, c := range []struct {
		boot      string // as the heartbeat has it
		witnesses []Witness
		want      exclusive.Verdict
		fails     bool
	}{
		{"b", nil, exclusive.Alive, false},
		{"b", []Witness{say(exclusive.Lost, nil)}, exclusive.Lost, false},
		{"later", []Witness{say(exclusive.Lost, nil)}, exclusive.Reborn, false}, // the stronger word
		{"later", []Witness{say(exclusive.Severed, nil), say(exclusive.Lost, nil)}, exclusive.Severed, false},
		{"later", []Witness{say(exclusive.Alive, away)}, exclusive.Reborn, false},
		{"b", []Witness{say(exclusive.Alive, away)}, exclusive.Alive, true},
		{"b", []Witness{say(exclusive.Alive, away), say(exclusive.Lost, nil)}, exclusive.Lost, false},
	} {
		o := newObserver()
		o.beats["m"] = Beat{Boot: c.boot}
		o.Witnesses = c.witnesses
		got, err := o.Judge(t.Context(), exclusive.Hold{Who: exclusive.Who{Machine: "m", Boot: "b"}})
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%+v: verdict %d, %v", c, got, err)
		}
	}
}
