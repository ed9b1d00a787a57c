package writers

import (
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

// The baselines are the ways that were proposed, or are in use, in the public thread "Add the ability to use exclusive
// RBD locking to prevent inadvertent multi-node access of an RWO image" (ceph-csi#578). Each is NodeStage and NodeUnstage
// in their smallest form, over the same world as the shipped protocol. The hold stands for whatever the baseline keeps in
// the cluster: an annotation or a lock, with its owner and, where the cluster knows it, the owner's client.

// baseline says what a protocol does where they differ.
type baseline struct {
	name string
	what string
	// claim makes the volume this node's, or says that it can't be had; at is where it stands.
	claim func(t *turn, a *actor) claimed
	// bound: mapping takes Ceph's exclusive lock.
	bound bool
	// unlock is what NodeUnstage does before it unmaps; nil: it takes off its own mark at the end.
	unlock func(t *turn, a *actor) bool
	// snapshot is somebody else's.
	snapshot func(t *turn) search.Fault
	// lasts: a mark whose owner's machine has died stays until an admin comes.
	lasts bool
}

type claimed uint8

const (
	notYet claimed = iota
	mine
	notMine
)

// memory is what a process of a baseline knows.
type memory struct {
	at   uint8
	inst exclusive.Instance // read from the cluster
	won  bool
}

func (c *codec) memory(a *actor) {
	c.byte(uint8(a.verb) | flags(a.base.won)<<3 | a.base.at<<4)
	c.byte(c.inst(a.base.inst))
}

func (c *codec) readMemory(_ int, a *actor) {
	b := c.next()
	a.verb, a.base.won, a.base.at = exclusive.Verb(b&7), flag(b, 3), b>>4
	a.base.inst = c.readInst(c.next())
}

// own gives this node's device of the volume.
func (t *turn) own() exclusive.Mapping {
	n := t.w.where(t.me)
	for s, d := range t.w.nodes[n].dev {
		if d.inst != "" && !d.foreign {
			return t.w.mapping(n, s)
		}
	}
	return exclusive.Mapping{}
}

func (t *turn) mark() exclusive.Hold {
	return exclusive.Hold{Volume: volume, State: exclusive.Mapped, Who: t.w.who(t.me), Rev: t.w.hold.Rev}
}

func (t *turn) unmark() exclusive.Hold {
	return exclusive.Hold{Volume: volume, State: exclusive.Free, Rev: t.w.hold.Rev}
}

// marked tells whose mark there is.
func (t *turn) marked() (anybody, me bool) {
	h := t.w.hold
	return h.State == exclusive.Mapped, h.State == exclusive.Mapped && h.Who.Machine == t.w.who(t.me).Machine
}

func (b *baseline) step(t *turn, a *actor) exclusive.Next {
	if a.verb == exclusive.Unstage {
		return b.unstage(t, a)
	}
	if !a.base.won {
		switch b.claim(t, a) {
		case notMine:
			return exclusive.Next{Kind: exclusive.Refused}
		case mine:
			a.base.won = true
		}
		return exclusive.Next{}
	}
	d := t.own()
	switch {
	case d.Device == "" && b.bound:
		if any, _ := t.marked(); any {
			t.offer()
			t.say("maps with the exclusive lock: it is held")
			return exclusive.Next{Kind: exclusive.Refused}
		}
		_ = t.request("maps with the exclusive lock", flight{}, func() {
			d, _ := t.w.attach(t.w.where(t.me))
			t.w.hold = t.mark()
			t.w.hold.Instance = d.Instance
			t.say(", as client ", string(d.Instance))
		})
	case d.Device == "":
		_, _ = t.Map(nil, volume) //nolint:staticcheck // the double needs no context
	case !t.w.dev(t.w.where(t.me), d).exposed:
		t.w.dev(t.w.where(t.me), d).seen = t.w.epoch // it has the newest osdmap: the fault is elsewhere
		_ = t.Expose(nil, d)                         //nolint:staticcheck // the double needs no context
	default:
		return exclusive.Next{Kind: exclusive.Done}
	}
	return exclusive.Next{}
}

func (b *baseline) unstage(t *turn, a *actor) exclusive.Next {
	d := t.own()
	switch {
	case d.Device != "" && t.w.dev(t.w.where(t.me), d).exposed:
		_ = t.Withdraw(nil, volume) //nolint:staticcheck // the double needs no context
	case b.unlock != nil && !a.base.won:
		a.base.won = b.unlock(t, a)
	case d.Device != "":
		_ = t.request(t.text("unmaps client ", string(d.Instance)), flight{}, func() {
			t.w.detach(t.w.where(t.me), d)
			if b.bound && t.w.hold.Instance == d.Instance {
				t.w.hold = t.unmark() // its lock goes with the client
			}
		})
	default:
		if _, own := t.marked(); own && !b.bound && b.unlock == nil {
			_ = t.request("takes its own mark off", flight{}, func() { t.w.hold = t.unmark() })
			break
		}
		return exclusive.Next{Kind: exclusive.Done}
	}
	return exclusive.Next{}
}

// stuck finds a mark that nobody takes off.
func (b *baseline) stuck(w *world) search.Fault {
	h := w.hold
	if b.lasts && h.State == exclusive.Mapped && h.Who.Boot != bootOf[2] {
		return search.Stuck
	}
	return 0
}

// annotate checks, sets, and reads back.
func annotate(t *turn, a *actor) claimed {
	any, own := t.marked()
	switch a.base.at {
	case 0, 2:
		t.offer()
		t.say([]string{"reads the annotation", "", "reads the annotation back"}[a.base.at])
		switch {
		case any && !own:
			t.say(": another node")
			return notMine
		case own:
			t.say(": its own")
			return mine
		}
		a.base.at = 1
	case 1:
		if t.request("writes its annotation", flight{}, func() { t.w.hold = t.mark() }) == nil {
			a.base.at = 2
		}
	}
	return notYet
}

// watch looks for watchers; none means that nobody uses it (what ceph-csi does).
func watch(t *turn, _ *actor) claimed {
	t.offer()
	for n := range t.w.nodes {
		for _, d := range t.w.nodes[n].dev {
			if d.inst != "" && n != t.w.where(t.me) && t.w.accepts(d.inst) {
				t.say("looks for watchers: there is one")
				return notMine
			}
		}
	}
	t.say("looks for watchers: none")
	return mine
}

// advise takes an advisory lock, and breaks that of an owner who is not heard of.
func advise(t *turn, a *actor) claimed {
	any, own := t.marked()
	switch {
	case own:
		return mine
	case any && a.base.at == 0:
		if v, _ := t.Judge(nil, t.w.hold); v == exclusive.Alive { //nolint:staticcheck // the double needs no context
			return notMine
		}
		a.base.at = 1
	case any:
		_ = t.request("breaks the advisory lock", flight{}, func() { t.w.hold = t.unmark() })
	default:
		_ = t.request("takes the advisory lock", flight{}, func() { t.w.hold = t.mark() })
	}
	return notYet
}

// obey takes an advisory lock and leaves that of another alone.
func obey(t *turn, _ *actor) claimed {
	any, own := t.marked()
	switch {
	case own:
		return mine
	case any:
		t.offer()
		t.say("finds the advisory lock taken")
		return notMine
	}
	_ = t.request("takes the advisory lock", flight{}, func() { t.w.hold = t.mark() })
	return notYet
}

// breaks breaks the lock of an owner who is not heard of: the cluster fences its client, for an hour.
func breaks(t *turn, a *actor) claimed {
	any, own := t.marked()
	switch {
	case !any || own:
		return mine
	case a.base.at == 0:
		if v, _ := t.Judge(nil, t.w.hold); v == exclusive.Alive { //nolint:staticcheck // the double needs no context
			return notMine
		}
		a.base.at = 1
	default:
		i := t.w.hold.Instance
		_ = t.request(t.text("breaks the lock: client ", string(i), " is fenced for an hour"), flight{}, func() {
			t.w.fence(i, true)
			t.w.hold = t.unmark()
		})
	}
	return notYet
}

// byAddress fences everything of the owner's address.
func byAddress(t *turn, a *actor) claimed {
	any, own := t.marked()
	switch {
	case own:
		return mine
	case !any:
		_ = t.request("writes itself down as the owner", flight{}, func() { t.w.hold = t.mark() })
	case a.base.at == 0:
		if v, _ := t.Judge(nil, t.w.hold); v == exclusive.Alive { //nolint:staticcheck // the double needs no context
			return notMine
		}
		a.base.at = 1
	default:
		n := t.w.hold.Who.Machine[0] - '1'
		_ = t.request(t.text("fences the address of node ", t.w.hold.Who.Machine), flight{}, func() {
			for _, d := range t.w.nodes[n].dev {
				switch {
				case d.foreign:
					t.fault |= search.Loss
					t.say(" ** another volume in use there is cut off with it **")
				case d.inst != "":
					t.w.fence(d.inst, false)
				}
			}
			t.w.hold = t.unmark()
		})
	}
	return notYet
}

// byMap goes straight on to the map, which takes the lock or fails.
func byMap(*turn, *actor) claimed { return mine }

// removeLock lists the lock on the image and removes it; rbd lock rm fences its client.
func removeLock(t *turn, a *actor) bool {
	switch any, _ := t.marked(); {
	case a.base.at == 0:
		t.offer()
		a.base.at = 1
		a.base.inst = ""
		if any {
			a.base.inst = t.w.hold.Instance
			t.say("lists the lock on the image: client ", string(a.base.inst))
		} else {
			t.say("lists the lock on the image: none")
		}
	case a.base.inst == "":
		return true
	default:
		i := a.base.inst
		err := t.request(t.text("removes the lock: client ", string(i), " is fenced"), flight{}, func() {
			if t.w.hold.Instance != i {
				return
			}
			if d := t.w.mapped(i); d != nil && d.exposed {
				t.fault |= search.Loss
				t.say(" ** whose workload is at work **")
			}
			t.w.fence(i, true)
			t.w.hold = t.unmark()
		})
		return err == nil
	}
	return false
}

func baselines() []class {
	one := func(bs ...budget) (left [budgets]uint8) {
		for _, b := range bs {
			left[b]++
		}
		return left
	}
	var cs []class
	for _, x := range []struct {
		baseline
		left [budgets]uint8
	}{
		{baseline{name: "annotation", what: "check an annotation, set it, read it back, map", claim: annotate, lasts: true},
			one(bStage, bStage, bUnstage, bReboot)},
		{baseline{name: "list-and-remove-lock", what: "map with the exclusive lock; at unstage list the lock and remove it", claim: byMap, bound: true, unlock: removeLock},
			one(bStage, bStage, bUnstage, bUnstage)},
		{baseline{name: "advisory-lock", what: "an advisory lock, left alone if another has it", claim: obey, lasts: true},
			one(bStage, bStage, bUnstage, bReboot)},
		{baseline{name: "advisory-lock-broken", what: "an advisory lock, broken if its owner is not heard of", claim: advise},
			one(bStage, bStage, bSilent)},
		{baseline{name: "break-lock-then-map", what: "break the lock, which fences for an hour, then map", claim: breaks, bound: true},
			one(bStage, bStage, bSilent, bExpire)},
		{baseline{name: "exclusive-map", what: "map with the exclusive lock; break the lock of the dead, with a fence that stays", claim: breaks, bound: true,
			snapshot: func(t *turn) search.Fault {
				if any, _ := t.marked(); !any {
					return 0
				}
				t.say("refused as long as the volume is in use, for its owner never gives up the lock")
				return search.Stuck
			}},
			one(bStage, bStage, bSilent, bUnstage)},
		{baseline{name: "fence-by-address", what: "fence the IP address of the owner's node, then map", claim: byAddress},
			one(bStage, bStage, bSilent, bOther)},
		{baseline{name: "watchers", what: "look for watchers, then map", claim: watch},
			one(bStage, bStage)},
	} {
		cs = append(cs, class{name: x.name, what: x.what, nodes: 2, left: x.left, base: &x.baseline})
	}
	return cs
}
