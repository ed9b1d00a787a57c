package writers

import (
	"context"
	"errors"
	"strings"

	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

// outcome is what becomes of one request. Which outcomes are open depends on the request and on what is left of each
// budget; oFine is always open.
type outcome uint8

const (
	oFine       outcome = iota
	oFail               // it never took effect and was not answered
	oLost               // it took effect and was not answered
	oCrash              // it took effect, the caller died
	oLate               // not answered; takes effect later
	oLateCrash          // the caller died; it takes effect later
	oChild              // not answered; the mkfs child goes on
	oChildCrash         // the caller died; the mkfs child goes on
	oFalse              // answered as done, and not done
	oSilent             // the evidence says that nothing was heard of the owner
	outcomes
)

var (
	errUnheard = errors.New("no answer")
	errDevice  = errors.New("no such device, or busy")
	errRights  = errors.New("no right to do that")
)

// turn is one actor's move, through whichever door it takes.
type turn struct {
	w       *world
	c       *class
	me      int
	want    outcome
	calm    bool // nothing goes wrong, and every other owner is silent
	severed bool // an admin has said that the owner's machine is off
	poor    bool // only what a node has rights to, for giving back
	// What the move came to.
	door    bool
	open    uint32 // outcomes that are possible here
	crashed bool
	fault   search.Fault
	said    func(string) // nil unless a trace is told
}

func (t *turn) say(parts ...string) {
	if t.said != nil {
		t.said(strings.Join(parts, ""))
	}
}

// text joins words, if a trace is told.
func (t *turn) text(parts ...string) string {
	if t.said == nil {
		return ""
	}
	return strings.Join(parts, "")
}

func (t *turn) has(b budget) bool { return t.w.left[b] > 0 }

// offer notes which outcomes are open, by budget, and takes the price of the one that was chosen.
func (t *turn) offer(os ...outcome) {
	t.door, t.open = true, 1<<oFine
	for _, o := range os {
		ok := true
		switch o {
		case oFail, oLost:
			ok = t.has(bLost)
		case oLate:
			ok = t.has(bLate) && t.w.fly.op == grounded
		case oCrash:
			ok = t.has(bCrash)
		case oLateCrash:
			ok = t.has(bCrash) && t.has(bLate) && t.w.fly.op == grounded
		case oChild:
			ok = t.has(bChild)
		case oChildCrash:
			ok = t.has(bChild) && t.has(bCrash)
		case oFalse:
			ok = t.has(bFalse)
		case oSilent:
			ok = t.has(bSilent)
		}
		if ok && !t.calm {
			t.open |= 1 << o
		}
	}
	left := &t.w.left
	switch t.want {
	case oFail, oLost:
		left[bLost]--
	case oLate:
		left[bLate]--
	case oCrash:
		left[bCrash]--
	case oLateCrash:
		left[bCrash]--
		left[bLate]--
	case oChild:
		left[bChild]--
	case oChildCrash:
		left[bChild]--
		left[bCrash]--
	case oFalse:
		left[bFalse]--
	case oSilent:
		left[bSilent]--
	}
	t.crashed = t.want == oCrash || t.want == oLateCrash || t.want == oChildCrash
}

// ends words for what became of the request.
func (t *turn) ends() string {
	return [outcomes]string{
		oFail: ": no answer, nothing done", oLost: ": done, the reply is lost", oCrash: ": done; the process dies",
		oLate: ": no answer, it is still on its way", oLateCrash: ": the process dies, the request is on its way",
		oChild: ": time-out, the mkfs child goes on", oChildCrash: ": the process dies, the mkfs child goes on",
		oFalse: ": reported done, and it is not",
	}[t.want]
}

// request makes a call that may be lost, late, or the caller's last. now carries it out.
func (t *turn) request(what string, f flight, now func(), os ...outcome) error {
	t.offer(append(os, oFail, oLost, oCrash)...)
	t.say(what, t.ends())
	switch t.want {
	case oFail:
		return errUnheard
	case oLate, oLateCrash:
		t.w.fly = f
		return errUnheard
	}
	now()
	if t.want != oFine {
		return errUnheard
	}
	return nil
}

func (t *turn) Load(context.Context, string) (exclusive.Hold, error) {
	t.offer()
	t.say("reads the hold: ", t.told(t.w.hold))
	return t.w.hold, nil
}

func (t *turn) Swap(_ context.Context, h exclusive.Hold) (rev string, err error) {
	if h.Rev != t.w.hold.Rev {
		t.offer()
		t.say("swaps the hold to ", t.told(h), ": it has changed")
		return "", exclusive.ErrStale
	}
	err = t.request(t.text("swaps the hold to ", t.told(h)), flight{op: flySwap, hold: h}, func() {
		rev = t.w.swap(h)
	}, oLate, oLateCrash)
	return rev, err
}

func (w *world) swap(h exclusive.Hold) string {
	w.revs++
	w.hold = h
	w.hold.Rev = revOf[w.revs]
	return w.hold.Rev
}

func (t *turn) List(_ context.Context, _ string, f exclusive.Fence) error {
	return t.request(t.text("lists client ", string(f.Instance), " among the fences"), flight{op: flyList, fence: f}, func() { t.w.enlist(f) }, oLate, oLateCrash)
}

func (t *turn) Listed(_ context.Context, _, machine string, after exclusive.Instance) (f exclusive.Fence, _ error) {
	t.offer()
	for _, x := range t.w.list {
		if x.Instance != "" && x.Who.Machine == machine && x.Instance > after && (f.Instance == "" || x.Instance < f.Instance) {
			f = x
		}
	}
	if f.Instance == "" {
		t.say("looks through the list of fences: none more of this machine")
	} else {
		t.say("looks through the list of fences: client ", string(f.Instance))
	}
	return f, nil
}

func (t *turn) Unlist(_ context.Context, _ string, f exclusive.Fence) error {
	return t.request(t.text("takes client ", string(f.Instance), " off the list"), flight{op: flyUnlist, fence: f}, func() { t.w.unlist(f.Instance) }, oLate, oLateCrash)
}

func (t *turn) Find(_ context.Context, _ string, i exclusive.Instance) (exclusive.Mapping, error) {
	t.offer()
	n := t.w.where(t.me)
	for s := range t.w.nodes[n].dev {
		if d := &t.w.nodes[n].dev[s]; d.inst == i && i != "" && !d.foreign && !d.going {
			t.say("looks for the device of client ", string(i), ": it is mapped")
			return t.w.mapping(n, s), nil
		}
	}
	t.say("looks for the device of client ", string(i), ": none")
	return exclusive.Mapping{}, nil
}

func (t *turn) Other(_ context.Context, _ string, than exclusive.Instance) (exclusive.Mapping, error) {
	t.offer()
	n := t.w.where(t.me)
	for s := range t.w.nodes[n].dev {
		if d := &t.w.nodes[n].dev[s]; d.inst != "" && d.inst != than && !d.foreign && !d.going {
			t.say("looks for other devices of the volume: client ", string(d.inst))
			return t.w.mapping(n, s), nil
		}
	}
	t.say("looks for other devices of the volume: none")
	return exclusive.Mapping{}, nil
}

func (t *turn) Map(context.Context, string) (m exclusive.Mapping, err error) {
	n, ok := t.w.where(t.me), true
	err = t.request("maps the volume", flight{op: flyMap, node: uint8(n)}, func() {
		m, ok = t.w.attach(n)
		t.say(", as client ", string(m.Instance))
	}, oLate, oLateCrash)
	if !ok {
		err = errDevice
	}
	return m, err
}

func (t *turn) Unmap(_ context.Context, m exclusive.Mapping) (err error) {
	n := t.w.where(t.me)
	if d := t.w.dev(n, m); d != nil && (d.exposed || d.mkfs) {
		t.offer()
		t.say("unmaps client ", string(m.Instance), ": busy")
		return errDevice
	}
	return t.request(t.text("unmaps client ", string(m.Instance)), flight{op: flyUnmap, node: uint8(n), where: m}, func() { t.w.detach(n, m) }, oLate, oLateCrash)
}

// detach unmaps exactly that mapping, unless it is in use.
func (w *world) detach(n int, m exclusive.Mapping) {
	if d := w.dev(n, m); d != nil && !d.exposed && !d.mkfs {
		*d = device{}
	}
}

func (t *turn) Reach(_ context.Context, m exclusive.Mapping, barrier uint64) error {
	t.offer()
	d := t.w.dev(t.w.where(t.me), m)
	if d == nil {
		t.say("waits until client ", string(m.Instance), " has the osdmap of the barrier: no such device")
		return errDevice
	}
	d.seen = max(d.seen, barrier)
	t.say("waits until client ", string(m.Instance), " has the osdmap of the barrier")
	return nil
}

func (t *turn) Format(_ context.Context, m exclusive.Mapping) error {
	d := t.w.dev(t.w.where(t.me), m)
	if d == nil || !t.w.accepts(m.Instance) {
		t.offer()
		t.say("mkfs through client ", string(m.Instance), ": input/output error")
		return errDevice
	}
	child := t.want == oChild || t.want == oChildCrash
	return t.request(t.text("mkfs through client ", string(m.Instance)), flight{}, func() {
		t.w.heard(d.seen)
		was := d.mkfs
		d.mkfs = true
		t.fault |= t.w.wrong()
		d.mkfs = was || child
		if t.w.data = made; child {
			t.w.data = half
		}
	}, oChild, oChildCrash)
}

func (t *turn) Expose(_ context.Context, m exclusive.Mapping) error {
	d := t.w.dev(t.w.where(t.me), m)
	if d == nil {
		t.offer()
		t.say("exposes client ", string(m.Instance), ": no such device")
		return errDevice
	}
	return t.request(t.text("exposes client ", string(m.Instance), " to the workload"), flight{}, func() { t.expose(d) })
}

func (t *turn) expose(d *device) {
	if t.w.accepts(d.inst) {
		if t.w.heard(d.seen); t.w.data < made && t.c.format {
			t.fault |= search.Stuck // it will not mount, and nobody makes a file system any more
		}
		t.w.data = used
	}
	d.exposed, d.dirty = true, true
}

func (t *turn) Withdraw(context.Context, string) error {
	t.offer(oFail)
	t.say("withdraws the volume", t.ends())
	if t.want == oFail {
		return errUnheard
	}
	t.w.withdraw(t.w.where(t.me))
	return nil
}

func (w *world) withdraw(n int) {
	for s := range w.nodes[n].dev {
		if d := &w.nodes[n].dev[s]; !d.foreign {
			d.exposed = false
		}
	}
}

func (t *turn) Fence(_ context.Context, i exclusive.Instance) (barrier uint64, err error) {
	if t.poor {
		return 0, errRights
	}
	err = t.request(t.text("fences client ", string(i)), flight{op: flyFence, fence: exclusive.Fence{Instance: i}}, func() {
		if barrier = t.w.epoch; t.want != oFalse {
			barrier = t.w.fence(i, false)
		}
		if t.want == oCrash {
			t.w.adrift(i)
		}
	}, oLate, oLateCrash, oFalse)
	if t.want == oFalse {
		err = nil
	}
	return barrier, err
}

func (t *turn) Fenced(_ context.Context, i exclusive.Instance) (bool, error) {
	t.offer()
	if t.poor {
		return false, errRights
	}
	if t.w.entry(i) == nil {
		t.say("reads the blocklist back: client ", string(i), " is not on it")
		return false, nil
	}
	t.say("reads the blocklist back: client ", string(i), " is on it")
	return true, nil
}

func (t *turn) Lift(_ context.Context, i exclusive.Instance, _ exclusive.Proof) error {
	return t.request(t.text("lifts the fence of client ", string(i)), flight{op: flyLift, fence: exclusive.Fence{Instance: i}}, func() {
		if t.w.lift(i) {
			t.fault |= search.TwoWriters
			t.say(" ** which still has its device **")
		}
	}, oLate, oLateCrash)
}

func (t *turn) Judge(_ context.Context, h exclusive.Hold) (exclusive.Verdict, error) {
	t.offer(oSilent)
	if t.poor {
		return 0, errRights
	}
	past := false
	for n := range t.w.nodes {
		past = past || h.Who.Machine == machineOf[n] && h.Who.Boot != bootOf[t.w.nodes[n].boot]
	}
	switch {
	case past:
		t.say("looks for its owner: has another boot id now")
		return exclusive.Reborn, nil
	case t.severed:
		return exclusive.Severed, nil
	case t.calm || t.want == oSilent:
		t.say("looks for its owner: not heard of")
		return exclusive.Silent, nil
	}
	t.say("looks for its owner: alive")
	return exclusive.Alive, nil
}
