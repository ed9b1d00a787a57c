package writers

import (
	"context"
	"time"

	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

// class is one setting of the world: what is there at first, and how much may go wrong.
type class struct {
	name   string
	what   string // in words of the field
	nodes  int
	format bool // file system volumes; else block devices
	policy exclusive.Policy
	start  func(*world) // what is there at first, if not a new image
	left   [budgets]uint8
	brief  bool      // no aftermath
	bend   *bend     // a mutation of the shipped code; tests only
	base   *baseline // another protocol in place of the shipped one
}

// bend changes the shipped protocol from outside, to show that the explorer would see it.
type bend struct {
	name  string
	doors func(*turn, *exclusive.Manager)
	memo  func(r exclusive.Request, before, after exclusive.Memo) exclusive.Memo
	epoch bool // holds are told apart by their epochs too
}

type kind uint8

const (
	mStep kind = iota
	mCall
	mCrash
	mAbort
	mOver
	mReboot
	mRename
	mHear
	mChild
	mLand
	mOther
	mExpire
	mSnapshot
)

func choice(k kind, arg int, o outcome) search.Choice {
	return search.Choice(uint16(k)<<8 | uint16(arg)<<5 | uint16(o))
}

func split(c search.Choice) (kind, int, outcome) {
	return kind(c >> 8), int(c >> 5 & 7), outcome(c & 31)
}

// model is a class as the search sees it.
type model struct {
	c       *class
	cd      codec
	turn    turn
	manager exclusive.Manager
	out     []byte
	key     []byte
	base    world // the state that is expanded
	w       world // the state that a move leads to
	judged  map[string]search.Fault
	after   []scene // of the last aftermath
}

func newModel(c *class) *model {
	m := &model{c: c, judged: map[string]search.Fault{}}
	m.cd.base = c.base != nil
	m.manager = exclusive.Manager{
		Registry: &m.turn, Device: &m.turn, Fencer: &m.turn, Evidence: &m.turn,
		Now: func() time.Duration { return 0 },
	}
	if b := c.bend; b != nil {
		m.cd.epoch = b.epoch
		if b.doors != nil {
			b.doors(&m.turn, &m.manager)
		}
	}
	return m
}

// Start is a new volume that nobody has asked for yet.
func (m *model) Start(buf []byte) []byte {
	w := world{left: m.c.left, revs: presentRev}
	for n := range w.nodes {
		w.nodes[n] = node{boot: 2, name: uint8(n)}
	}
	w.hold = exclusive.Hold{Volume: volume, State: exclusive.Free, Rev: revOf[presentRev]}
	if m.c.start != nil {
		m.c.start(&w)
	}
	return m.cd.write(buf, &w)
}

func (m *model) load(state []byte) {
	m.cd.read(state, &m.base)
	m.w = m.base
}

func (m *model) request(w *world, me int) exclusive.Request {
	a := &w.actor[me]
	r := exclusive.Request{
		Verb: a.verb, Volume: volume, Me: w.who(me), From: nameOf[a.from], Format: m.c.format, Policy: m.c.policy,
	}
	if m.turn.calm {
		r.Policy = exclusive.FromLost // an admin may change it at any time
	}
	return r
}

// step makes one move of an actor: all that it does by itself, then at most one request.
func (m *model) step(w *world, me int) exclusive.Next {
	t := &m.turn
	t.w, t.c, t.me = w, m.c, me
	a := &w.actor[me]
	n := exclusive.Next{}
	for range 16 {
		if m.c.base != nil {
			n = m.c.base.step(t, a)
		} else {
			r, before := m.request(w, me), a.memo
			a.memo, n = m.manager.Step(context.Background(), r, before)
			if b := m.c.bend; b != nil && b.memo != nil {
				a.memo = b.memo(r, before, a.memo)
			}
		}
		switch {
		case n.Kind == exclusive.Done, n.Kind == exclusive.Refused, n.Kind == exclusive.Gone:
			if t.door {
				t.say("; ")
			}
			t.say("ends: ", [...]string{exclusive.Done: "done", exclusive.Refused: "refused", exclusive.Gone: "the volume is gone"}[n.Kind])
			w.drop(me)
			return n
		case t.crashed:
			w.drop(me)
			return n
		case t.door && me == ghost && !t.calm:
			if w.left[bPuff]--; w.left[bPuff] == 0 {
				w.drop(me)
			}
			return n
		case t.door:
			return n
		}
	}
	return n // turns for ever by itself
}

// apply makes the move in m.w; what it did wrong is in the turn.
func (m *model) apply(ch search.Choice) {
	k, arg, o := split(ch)
	w, t := &m.w, &m.turn
	*t = turn{w: w, c: m.c, said: t.said}
	switch k {
	case mStep:
		t.want = o
		m.step(w, arg)
	case mCall:
		w.actor[arg].verb = exclusive.Verb(o & 7)
		w.actor[arg].from = uint8(o >> 3)
		switch exclusive.Verb(o & 7) {
		case exclusive.Stage:
			w.left[bStage]--
		case exclusive.Unstage:
			w.left[bUnstage]--
		case exclusive.Detach:
			w.left[bDetach]--
		case exclusive.Sweep:
			w.left[bSweep]--
		}
		if arg < maxNodes {
			w.touched = max(w.touched, uint8(arg)+1)
		}
	case mCrash:
		w.left[bCrash]--
		w.drop(arg)
	case mAbort:
		w.drop(arg)
	case mOver:
		w.left[bOver]--
		w.actor[ghost], w.old = w.actor[arg], uint8(arg)
		w.actor[arg] = actor{}
	case mReboot:
		w.left[bReboot]--
		w.stop(arg)
		w.nodes[arg].boot++
		w.nodes[arg].dev = [slots]device{}
		if w.fly.op == flyMap && int(w.fly.node) == arg {
			w.fly = flight{}
		}
	case mRename:
		w.left[bRename]--
		w.stop(arg)
		w.nodes[arg].name = w.nodes[o].name
	case mHear:
		w.heard(w.epoch)
	case mChild:
		d := &w.nodes[arg/slots].dev[arg%slots]
		if w.accepts(d.inst) && w.data == half {
			w.data = made
		}
		d.mkfs = false
	case mLand:
		m.land()
	case mOther:
		w.left[bOther]--
		w.nodes[arg/slots].dev[arg%slots] = device{foreign: true}
	case mExpire:
		w.left[bExpire]--
		w.lift(w.block[arg].inst)
	case mSnapshot:
		t.fault |= m.c.base.snapshot(t)
	}
}

// stop ends the processes of a node.
func (w *world) stop(n int) {
	w.drop(n)
	if w.actor[ghost].verb != 0 && int(w.old) == n {
		w.drop(ghost)
	}
}

// land lets what was on its way take effect.
func (m *model) land() {
	w := &m.w
	f := w.fly
	w.fly = flight{}
	switch f.op {
	case flySwap:
		if f.hold.Rev == w.hold.Rev {
			w.swap(f.hold)
		}
	case flyFence:
		w.fence(f.fence.Instance, false)
		w.adrift(f.fence.Instance)
	case flyLift:
		if w.lift(f.fence.Instance) {
			m.turn.fault |= search.TwoWriters
		}
	case flyList:
		w.enlist(f.fence)
	case flyUnlist:
		w.unlist(f.fence.Instance)
		w.adrift(f.fence.Instance)
	case flyMap:
		w.attach(int(f.node))
	case flyUnmap:
		w.detach(int(f.node), f.where)
	}
}

// Expand makes every move.
func (m *model) Expand(state []byte, emit func(search.Move, []byte)) search.Status {
	m.load(state)
	w := &m.base
	do := func(k kind, arg int, o outcome, follow bool) {
		m.w = m.base
		ch := choice(k, arg, o)
		m.apply(ch)
		f := m.turn.fault | m.w.wrong()
		if m.c.base == nil && !m.c.brief {
			f |= m.durable()
		}
		if m.w.old != 0 && m.w.actor[ghost].verb == 0 {
			m.w.old = 0
		}
		m.out = m.cd.write(m.out[:0], &m.w)
		emit(search.Move{Choice: ch, Follow: follow, Fault: f}, m.out)
	}
	rest := true
	calm := func() bool { // whether this is what happens next if nothing goes wrong any more
		was := rest
		rest = false
		return was
	}
	if w.fly.op != grounded {
		do(mLand, 0, 0, calm())
	}
	for n := range w.nodes {
		for s := range w.nodes[n].dev {
			d := &w.nodes[n].dev[s]
			if d.mkfs {
				do(mChild, n*slots+s, 0, calm())
			}
			if w.left[bOther] > 0 && d.inst == "" && !d.foreign && n < int(w.touched) {
				do(mOther, n*slots+s, 0, false)
			}
		}
	}
	for me := range w.actor {
		a := &w.actor[me]
		if a.verb == 0 {
			m.calls(me, do)
			continue
		}
		do(mStep, me, oFine, calm())
		for o, open := outcome(1), m.turn.open; o < outcomes; o++ {
			if open>>o&1 == 1 {
				do(mStep, me, o, false)
			}
		}
		if w.left[bCrash] > 0 {
			do(mCrash, me, 0, false)
		}
		if a.memo.Why != 0 {
			do(mAbort, me, 0, false)
		}
		if w.left[bOver] > 0 && me < maxNodes && w.actor[ghost].verb == 0 {
			do(mOver, me, 0, false)
		}
	}
	for n := range int(w.touched) {
		if w.left[bReboot] > 0 {
			do(mReboot, n, 0, false)
		}
		for o := range w.touched {
			if w.left[bRename] > 0 && w.nodes[o].name != w.nodes[n].name {
				do(mRename, n, outcome(o), false)
			}
		}
	}
	deaf := false
	for i, e := range w.block {
		deaf = deaf || e.inst != "" && !e.firm
		if w.left[bExpire] > 0 && e.inst != "" && (m.c.base == nil || e.brief) {
			do(mExpire, i, 0, false)
		}
	}
	if deaf {
		do(mHear, 0, 0, false)
	}
	if m.c.base != nil && m.c.base.snapshot != nil {
		do(mSnapshot, 0, 0, false)
	}
	s := search.Status{Rest: rest}
	if rest && m.c.base != nil {
		s.Fault = m.c.base.stuck(w)
	}
	return s
}

// calls lets the orchestrator ask an idle process for something.
func (m *model) calls(me int, do func(kind, int, outcome, bool)) {
	w := &m.base
	ask := func(v exclusive.Verb, b budget) {
		if w.left[b] > 0 {
			do(mCall, me, outcome(v), false)
		}
	}
	switch {
	case me == ghost:
	case me == controller:
		if w.left[bDetach] == 0 || w.hold.Who.Machine == "" {
			return
		}
		for n := range w.touched { // a detach of anybody else ends at once
			if nameOf[w.nodes[n].name] == w.hold.Who.Node {
				do(mCall, me, outcome(exclusive.Detach)|outcome(w.nodes[n].name)<<3, false)
				return
			}
		}
	case me < m.c.nodes && me <= int(w.touched): // one that was never asked is like another
		ask(exclusive.Stage, bStage)
		if me < int(w.touched) {
			ask(exclusive.Unstage, bUnstage)
			ask(exclusive.Sweep, bSweep)
		}
	}
}
