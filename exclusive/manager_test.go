package exclusive

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

// desk is every door at once, of one volume on one node. Each call is written down; fail makes a call fail once.
type desk struct {
	hold   Hold
	list   []Fence
	block  []Instance
	dev    []Mapping
	minted int
	deaf   bool // the fence is reported and not set
	word   Verdict
	calls  []string
	fail   map[string]error
	now    time.Duration
}

func (d *desk) call(name string) error {
	d.calls = append(d.calls, name)
	err := d.fail[name]
	delete(d.fail, name)
	return err
}

func (d *desk) Load(context.Context, string) (Hold, error) { return d.hold, d.call("load") }

func (d *desk) Swap(_ context.Context, h Hold) (string, error) {
	if err := d.call("swap " + h.State.String()); err != nil {
		return "", err
	}
	if h.Rev != d.hold.Rev {
		return "", ErrStale
	}
	h.Rev += "i"
	d.hold = h
	return h.Rev, nil
}

func (d *desk) List(_ context.Context, _ string, f Fence) error {
	if !slices.Contains(d.list, f) {
		d.list = append(d.list, f)
	}
	return d.call("list " + string(f.Instance))
}

func (d *desk) Listed(_ context.Context, _, machine string, after Instance) (Fence, error) {
	for _, f := range d.list {
		if f.Who.Machine == machine && f.Instance > after {
			return f, d.call("listed")
		}
	}
	return Fence{}, d.call("listed")
}

func (d *desk) Unlist(_ context.Context, _ string, f Fence) error {
	d.list = slices.DeleteFunc(d.list, func(x Fence) bool { return x == f })
	return d.call("unlist " + string(f.Instance))
}

func (d *desk) Find(_ context.Context, _ string, i Instance) (Mapping, error) {
	for _, m := range d.dev {
		if m.Instance == i {
			return m, d.call("find")
		}
	}
	return Mapping{}, d.call("find")
}

func (d *desk) Other(_ context.Context, _ string, than Instance) (Mapping, error) {
	for _, m := range d.dev {
		if m.Instance != than {
			return m, d.call("other")
		}
	}
	return Mapping{}, d.call("other")
}

func (d *desk) Map(context.Context, string) (Mapping, error) {
	d.minted++
	m := Mapping{"dev", "v", Instance("new" + string(rune('0'+d.minted)))}
	d.dev = append(d.dev, m)
	return m, d.call("map")
}

func (d *desk) Unmap(_ context.Context, m Mapping) error {
	d.dev = slices.DeleteFunc(d.dev, func(x Mapping) bool { return x == m })
	return d.call("unmap " + string(m.Instance))
}

func (d *desk) Reach(context.Context, Mapping, uint64) error { return d.call("reach") }
func (d *desk) Format(context.Context, Mapping) error        { return d.call("format") }
func (d *desk) Expose(context.Context, Mapping) error        { return d.call("expose") }
func (d *desk) Withdraw(context.Context, string) error       { return d.call("withdraw") }
func (d *desk) Judge(context.Context, Hold) (Verdict, error) { return d.word, d.call("judge") }
func (d *desk) Lift(_ context.Context, i Instance, p Proof) error {
	d.block = slices.DeleteFunc(d.block, func(x Instance) bool { return x == i })
	if p == Rebooted {
		return d.call("lift rebooted " + string(i))
	}
	return d.call("lift unmapped " + string(i))
}

func (d *desk) Fence(_ context.Context, i Instance) (uint64, error) {
	if !d.deaf {
		d.block = append(d.block, i)
	}
	return 7, d.call("fence " + string(i))
}

func (d *desk) Fenced(_ context.Context, i Instance) (bool, error) {
	return slices.Contains(d.block, i), d.call("fenced")
}

func (d *desk) run(t *testing.T, r Request) (Memo, Next) {
	t.Helper()
	g := &Manager{Registry: d, Device: d, Fencer: d, Evidence: d, Now: func() time.Duration { return d.now }, First: time.Second, Max: 5 * time.Second}
	if r.Volume, r.Me = "v", me; d.hold.Rev == "" {
		d.hold.Rev = "i"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, n := g.Run(ctx, r, Memo{})
	if ctx.Err() != nil {
		t.Fatalf("no end: %v", d.calls[:40])
	}
	return m, n
}

var (
	me    = Who{"m1", "n1", "b2"}
	other = Who{"m2", "n2", "b1"}
)

// expect checks the calls and forgets them.
func (d *desk) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.calls, want) {
		t.Errorf("calls\n%q\nwant\n%q", d.calls, want)
	}
	d.calls = nil
}

func TestStageBlank(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Free}}
	if _, n := d.run(t, Request{Verb: Stage, Format: true}); n.Kind != Done {
		t.Fatal(n)
	}
	d.expect(t, "load", "other", "swap claimed", "other", "map", "swap mapped", "reach", "format", "load", "swap mapped", "expose")
	if h := d.hold; h.State != Mapped || h.Who != me || h.Instance != "new1" || !h.Formatted || h.Epoch != 1 {
		t.Errorf("%+v", h)
	}
	if _, n := d.run(t, Request{Verb: Check}); n.Kind != Done {
		t.Errorf("check: %v", n)
	}
	d.calls = nil
	if _, n := d.run(t, Request{Verb: Unstage}); n.Kind != Done || d.hold.State != Free || !d.hold.Formatted {
		t.Errorf("%v %+v", n, d.hold)
	}
	d.expect(t, "load", "withdraw", "other", "unmap new1", "other", "swap free", "listed")
}

func TestTakeOver(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Mapped, Who: other, Instance: "old", Formatted: true}, word: Silent}
	if _, n := d.run(t, Request{Verb: Stage, Format: true}); n.Kind != Done {
		t.Fatal(n)
	}
	d.expect(t, "load", "other", "judge", "list old", "swap fencing", "fence old", "fenced", "fence old", "swap claimed",
		"other", "map", "swap mapped", "reach", "expose")
	if h := d.hold; h.Barrier != 7 || h.Who != me || !slices.Equal(d.list, []Fence{{"old", other}}) {
		t.Errorf("%+v %v", h, d.list)
	}
}

// No hold, a live owner, a policy that refuses, a guarded driver: nothing is mapped, nothing fenced.
func TestRefused(t *testing.T) {
	owned := Hold{Volume: "v", State: Mapped, Who: other, Instance: "old"}
	opaque := Hold{Volume: "v", State: Opaque, Who: other}
	ours := Hold{Volume: "v", State: Opaque, Who: me}
	for _, c := range []struct {
		name   string
		hold   Hold
		policy Policy
		word   Verdict
		why    Why
	}{
		{"no hold", Hold{Volume: "v"}, Always, Lost, WhyNoHold},
		{"alive", owned, FromLost, Alive, WhyElse},
		{"policy", owned, Refuse, Lost, WhyElse},
		{"opaque and only silent", opaque, Always, Silent, WhyOpaque},
		{"opaque here", ours, Always, Severed, WhyOpaque},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &desk{hold: c.hold, word: c.word}
			if _, n := d.run(t, Request{Verb: Stage, Policy: c.policy}); n.Kind != Refused || n.Why != c.why {
				t.Errorf("%v %s", n, n.Why)
			}
			if d.minted != 0 || len(d.block) != 0 || d.hold.State != c.hold.State {
				t.Errorf("%q", d.calls)
			}
		})
	}
}

func TestOpaqueIsTakenOnProof(t *testing.T) {
	for _, v := range []Verdict{Reborn, Severed} {
		d := &desk{hold: Hold{Volume: "v", State: Opaque, Who: other, Formatted: true}, word: v}
		if _, n := d.run(t, Request{Verb: Stage}); n.Kind != Done || d.hold.Who != me {
			t.Errorf("%d: %v", v, n)
		}
	}
}

// A fence that is reported and not set is no fence.
func TestUnconfirmed(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Mapped, Who: other, Instance: "old"}, word: Lost, deaf: true}
	if m, n := d.run(t, Request{Verb: Stage}); n != (Next{Wait, 5 * time.Second, WhyUnfenced}) || m.Why != WhyUnfenced || d.hold.State != Fencing {
		t.Errorf("%v %+v", n, d.hold)
	}
	if d.minted != 0 {
		t.Error("mapped")
	}
}

// A mkfs without an answer may go on: its client is fenced, and the volume mapped anew.
func TestMkfsWithoutAnswer(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Free}, fail: map[string]error{"format": errBroken}}
	m, n := d.run(t, Request{Verb: Stage, Format: true})
	if n.Kind != Wait || n.Why != WhyDoor {
		t.Fatal(n)
	}
	d.now, d.calls = time.Minute, nil
	g := &Manager{Registry: d, Device: d, Fencer: d, Evidence: d, Now: func() time.Duration { return d.now }}
	if _, n := g.Run(t.Context(), Request{Verb: Stage, Volume: "v", Me: me, Format: true}, m); n.Kind != Done {
		t.Fatal(n)
	}
	d.expect(t, "load", "find", "list new1", "swap fencing", "fence new1", "fenced", "fence new1", "swap claimed", "withdraw",
		"unmap new1", "other", "map", "swap mapped", "reach", "format", "load", "swap mapped", "expose")
}

// A name that another machine has taken, or an own machine that was renamed, proves nothing.
func TestNamesProveNothing(t *testing.T) {
	taken := Who{"m9", "n1", "b9"}
	d := &desk{hold: Hold{Volume: "v", State: Free}, list: []Fence{{"x", taken}}, block: []Instance{"x"}}
	if _, n := d.run(t, Request{Verb: Sweep}); n.Kind != Done || len(d.block) != 1 || len(d.list) != 1 {
		t.Errorf("%v %q", n, d.calls)
	}
	renamed := Who{me.Machine, "n5", me.Boot}
	d = &desk{hold: Hold{Volume: "v", State: Mapped, Who: renamed, Instance: "mine", Formatted: true}, dev: []Mapping{{"dev", "v", "mine"}}}
	if _, n := d.run(t, Request{Verb: Check}); n.Kind != Done {
		t.Errorf("check: %v", n)
	}
	if _, n := d.run(t, Request{Verb: Stage}); n.Kind != Done || d.minted != 0 {
		t.Errorf("stage: %v %q", n, d.calls)
	}
}

func TestLift(t *testing.T) {
	past := Who{me.Machine, "n1", "b1"}
	d := &desk{hold: Hold{Volume: "v", State: Mapped, Who: me, Instance: "d", Formatted: true}, dev: []Mapping{{"dev", "v", "d"}},
		list: []Fence{{"a", past}, {"b", me}, {"c", other}, {"d", me}}, block: []Instance{"a", "b", "c"}}
	if _, n := d.run(t, Request{Verb: Sweep}); n.Kind != Done {
		t.Fatal(n)
	}
	if !slices.Equal(d.block, []Instance{"c"}) || !slices.Equal(d.list, []Fence{{"c", other}, {"d", me}}) {
		t.Errorf("%v %v", d.block, d.list)
	}
	for _, c := range []string{"lift rebooted a", "lift unmapped b"} {
		if n := len(slices.DeleteFunc(slices.Clone(d.calls), func(s string) bool { return s != c })); n != 2 {
			t.Errorf("%s: %d times", c, n) // before the list and after it
		}
	}
}

func TestDetach(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Mapped, Who: other, Instance: "old", Formatted: true}, word: Lost}
	if _, n := d.run(t, Request{Verb: Detach, From: "n3"}); n.Kind != Done || d.hold.State != Mapped {
		t.Errorf("another node: %v", n)
	}
	if _, n := d.run(t, Request{Verb: Detach, From: "n2"}); n.Kind != Done || d.hold.State != Free || d.hold.Barrier != 7 {
		t.Errorf("%v %+v", n, d.hold)
	}
}

func TestBackOff(t *testing.T) {
	d := &desk{hold: Hold{Volume: "v", State: Free}}
	g := &Manager{Registry: d, Device: d, Fencer: d, Evidence: d, Now: func() time.Duration { return d.now }, First: time.Second, Max: 5 * time.Second}
	r, m := Request{Verb: Stage, Volume: "v", Me: me}, Memo{}
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		d.fail = map[string]error{"load": errBroken}
		var n Next
		if m, n = g.Step(t.Context(), r, m); n != (Next{Wait, want * time.Second, WhyDoor}) {
			t.Fatalf("%v, want %d s", n, want)
		}
		if _, n := g.Step(t.Context(), r, m); n.Kind != Wait {
			t.Fatal("did not wait")
		}
		d.now += n.After
	}
	if m, _ = g.Step(t.Context(), r, m); m.Tries != 0 || m.Why != WhyNone || !m.Fresh {
		t.Errorf("%+v", m)
	}
	d.fail = map[string]error{"load": ErrForeign}
	if _, n := d.run(t, r); n.Kind != Refused || n.Why != WhyForeign {
		t.Error(n)
	}
}
