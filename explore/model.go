package explore

import (
	"context"
	"time"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

// class is one setting of the world: what the driver can do, what the admin has declared, and how much may go wrong.
type class struct {
	name   string
	what   string // in words of the field
	on     string // a baseline's driver
	access bool   // accounts: credentials that are lost with the process; else buckets, which hold data
	driver driver
	ways   provision.Ways
	// The name holds the owner's UID and nothing else may create it.
	proven   bool
	foreign  bool // somebody else's thing of this name is there from the start
	static   bool // an admin has bound what exists
	upstream bool // taken over from another orchestrator, which had got so far as the id in the status, or not
	known    bool // ... it had
	keep     bool // policy Retain
	reuse    bool // names come again (CSI)
	stableID bool // Generate answers the same id for the same name
	errorID  bool // errors carry the id
	settle   time.Duration
	left     [budgets]uint8
	stops    bool      // who has lost the lead stops within the settle time
	lax      bool      // judged by what exists alone, not by whether users can use it
	prompt   bool      // no call outlasts the settle time
	puff     uint8     // how many requests an incarnation makes after it has lost the lead
	bend     *bend     // a mutation of the shipped code; tests only
	base     *baseline // another protocol in place of the shipped one
}

// bend changes the shipped protocol from outside, to show that the explorer would see it.
type bend struct {
	name    string
	store   func(*turn, provision.Store) provision.Store
	backend func(*turn, provision.Backend) provision.Backend
	memo    func(before, after provision.Memo) provision.Memo
	mint    func(*turn) provision.Nonce
	settle  time.Duration // added to the engine's
}

type kind uint8

const (
	mStep kind = iota
	mWake
	mCrash
	mOver
	mTick
	mLand
	mLandWrite
	mDelete
	mFlip
	mForce
	mAgain
	mWord
	mVanish
	mExpire
	mLag
	mTearObject
	mTearIntent
	mEnd
)

func choice(k kind, arg int, o outcome) search.Choice {
	return search.Choice(uint16(k)<<8 | uint16(arg)<<5 | uint16(o))
}

func split(c search.Choice) (kind, int, outcome) {
	return kind(c >> 8), int(c >> 5 & 7), outcome(c & 31)
}

// model is a class as the search sees it.
type model struct {
	c      *class
	cd     codec
	turn   turn
	engine provision.Engine
	out    []byte
	base   world // the state that is expanded
	w      world // the state that a move leads to
	nonces uint8
	revs   uint8
	ids    uint8
	poised bool // the old incarnation is about to delete what is to be made anew
}

func newModel(c *class) *model {
	m := &model{c: c}
	m.cd.settle = c.settle
	m.cd.hasBase, m.cd.reuse = c.base != nil, c.reuse
	m.turn.c = c
	var st provision.Store = &m.turn
	var be provision.Backend = &m.turn
	mint := m.turn.mint
	m.engine = provision.Engine{
		Now: func() time.Duration { return now }, Settle: c.settle, Reuse: c.reuse,
		Pace: provision.Pace{First: 1, Max: 1, Sweep: 1},
	}
	if b := c.bend; b != nil {
		if b.store != nil {
			st = b.store(&m.turn, st)
		}
		if b.backend != nil {
			be = b.backend(&m.turn, be)
		}
		if b.mint != nil {
			mint, m.cd.keepAll = func() provision.Nonce { return b.mint(&m.turn) }, true
		}
		m.engine.Settle += b.settle
	}
	m.engine.Store, m.engine.Backend, m.engine.Mint = st, be, mint
	return m
}

// Start is a wanted object of which nothing is known yet.
func (m *model) Start(buf []byte) []byte {
	w := world{left: m.c.left}
	w.obj = object{here: true, fin: true, keep: m.c.keep, static: m.c.static}
	if m.c.upstream {
		w.obj.fin, w.obj.up = false, true
	}
	if m.c.known {
		w.obj.shown = theID
		w.put(thing{id: theID})
		if m.c.access {
			w.obj.secret = goodSecret
		}
	}
	if m.c.foreign {
		w.put(thing{id: theID, foreign: true})
	}
	if m.c.static {
		w.put(thing{id: theID, given: true})
	}
	w.actor[0] = m.begin()
	return m.cd.write(buf, &w)
}

func (m *model) begin() actor {
	if m.c.base != nil {
		return actor{on: true}
	}
	return actor{on: true, memo: provision.Begin(theName, now)}
}

// step makes one move of an actor: all that it does by itself, then at most one request. It tells whether the actor
// has nothing to do at once.
func (m *model) step(me int, want outcome) (idle bool, next provision.Next) {
	t := &m.turn
	*t = turn{w: &m.w, c: m.c, me: me, want: want, nonces: m.nonces, revs: m.revs, ids: m.ids, names: t.names, said: t.said}
	a := &m.w.actor[me]
	if m.c.base != nil {
		idle, next = m.c.base.step(t, &a.base)
	} else {
		idle, next = m.engineStep(t, a)
	}
	if t.door && me == 1 {
		m.w.puff--
	}
	if t.crashed {
		m.die(me)
	}
	return idle, next
}

func (m *model) engineStep(t *turn, a *actor) (bool, provision.Next) {
	for range 64 {
		before := a.memo
		after, n := m.engine.Step(context.Background(), before)
		if m.c.bend != nil && m.c.bend.memo != nil {
			after = m.c.bend.memo(before, after)
		}
		a.memo = after
		if t.door {
			return false, n
		}
		if n.Kind != provision.Again {
			return true, n
		}
	}
	return true, provision.Next{Kind: provision.Again} // turns for ever by itself
}

// die ends an incarnation. The leader's place is taken by a new one, whose cache may lag as far.
func (m *model) die(me int) {
	a := &m.w.actor[me]
	lag := a.snap
	*a = actor{}
	if me == 0 {
		m.w.news = false
		*a = m.begin()
		if lag.kind == cacheSnap {
			a.snap = lag
		}
	}
}

// differs tells whether an event is due: the actor's view is not what a live read would give.
func (m *model) differs(me int) bool {
	a := &m.w.actor[me]
	if m.c.base != nil {
		return m.c.base.differs(&m.w, &a.base)
	}
	return me == 0 && m.w.news || a.memo.Rec != m.c.view(m.w.obj, m.w.intent, m.w.old)
}

func (m *model) wake(me int) {
	a := &m.w.actor[me]
	m.w.news = m.w.news && me != 0
	if m.c.base != nil {
		a.base = m.c.base.wake(a.base)
		return
	}
	a.memo = a.memo.Wake()
}

// reset makes m.w the state that is expanded.
func (m *model) reset() { m.w = m.base }

func (m *model) load(state []byte) {
	m.cd.read(state, &m.base)
	m.nonces, m.revs, m.ids = m.cd.nonces, m.cd.revs, m.cd.ids
	m.w = m.base
}

// apply makes the move in m.w and tells what it did wrong.
func (m *model) apply(ch search.Choice) (bad bool) {
	k, arg, o := split(ch)
	w := &m.w
	switch k {
	case mStep:
		m.step(arg, o)
		return m.turn.bad
	case mWake:
		m.wake(arg)
	case mCrash:
		w.left[bCrash]--
		m.die(arg)
	case mOver:
		w.left[bOver]--
		w.puff = m.c.puff
		lag := w.actor[0].snap
		w.actor[1] = w.actor[0]
		w.actor[0] = m.begin()
		w.news = false
		if lag.kind == cacheSnap {
			w.actor[0].snap = lag
		}
	case mTick:
		if m.c.stops {
			w.actor[1] = actor{}
		}
		for i := range w.actor {
			if w.actor[i].on {
				if m.c.base != nil {
					m.c.base.older(&w.actor[i].base)
				} else {
					older(&w.actor[i])
				}
			}
		}
	case mLand:
		t := &m.turn
		*t = turn{w: w, c: m.c, me: 0, nonces: m.nonces, revs: m.revs, ids: m.ids, names: t.names, said: t.said}
		f := w.fly[arg]
		w.fly[arg] = call{}
		t.apply(f)
		return t.bad
	case mLandWrite:
		if r := w.wr.rec; r.Rev == w.intent.Rev {
			if w.intent.Phase != r.Phase {
				w.old = false
			}
			w.intent = r
			w.intent.Rev = revOf[m.revs+1]
		}
		w.wr = write{}
	case mDelete:
		w.left[bDelete]--
		w.obj.deleting = true
		w.early = w.obj.keep
		if !w.obj.fin && !w.obj.up {
			w.free()
		}
	case mFlip:
		w.left[bFlip]--
		w.obj.keep = !w.obj.keep
		w.flipped = true
	case mForce:
		w.left[bForce]--
		w.obj = object{}
		w.early = false
	case mAgain:
		w.news = true
		for i := range w.actor {
			w.actor[i].past = w.actor[i].on
		}
		w.left[bAgain]--
		w.obj = object{here: true, fin: true, keep: m.c.keep, static: m.c.static}
	case mWord:
		w.left[bWord]--
		w.intent.Word = provision.Word(arg)
		w.intent.Rev = revOf[m.revs+1]
	case mVanish:
		w.left[bVanish]--
		id := w.things[arg].id
		w.things[arg] = thing{}
		if w.obj.shown == id && w.obj.secret == goodSecret {
			w.obj.secret = deadSecret
		}
		for j := range w.actor {
			if a := &w.actor[j]; a.pay == id {
				a.payDead = true
			}
		}
	case mExpire:
		w.old = true
	case mEnd:
		w.actor[1] = actor{}
	case mLag:
		w.left[bStale]--
		w.actor[arg].snap = snap{cacheSnap, w.obj, w.intent}
	case mTearObject:
		w.left[bTorn]--
		w.actor[arg].snap = snap{kind: objectSnap, obj: w.obj}
	case mTearIntent:
		w.left[bTorn]--
		w.actor[arg].snap = snap{kind: intentSnap, intent: w.intent}
	}
	return false
}

// Expand makes every move.
func (m *model) Expand(state []byte, emit func(search.Move, []byte)) search.Status {
	m.load(state)
	w := &m.base
	put := func(ch search.Choice, follow, bad bool) {
		var f search.Fault
		if bad {
			f = search.Loss
		}
		m.out = m.cd.write(m.out[:0], &m.w)
		emit(search.Move{Choice: ch, Follow: follow, Fault: f}, m.out)
	}
	do := func(ch search.Choice, follow bool) {
		m.reset()
		put(ch, follow, m.apply(ch) && !m.c.lax)
	}
	flying := w.fly[0].op != 0 || w.wr.on
	var next provision.Next
	rest := false
	m.poised = false
	for me := range w.actor {
		if !w.actor[me].on || me == 1 && w.puff == 0 {
			continue
		}
		m.reset()
		idle, n := m.step(me, oFine)
		t := m.turn
		still := idle && m.w.actor[me] == w.actor[me]
		if me == 0 {
			next, rest = n, still
		}
		if me == 1 {
			m.poised = m.c.reuse && w.actor[1].memo.Fresh || t.deletes && (m.c.left[bFlip] > 0 || w.actor[1].memo.Rec.Phase < provision.PhaseDeleting)
		}
		if !still {
			follow := me == 0 && !flying
			put(choice(mStep, me, oFine), follow, t.bad && !m.c.lax)
			for o := outcome(1); o < outcomes; o++ {
				if t.open>>o&1 == 1 {
					do(choice(mStep, me, o), false)
				}
			}
			if t.reading && w.actor[me].snap.kind == noSnap && w.left[bTorn] > 0 {
				do(choice(mTearObject, me, 0), false)
				do(choice(mTearIntent, me, 0), false)
			}
		} else {
			m.reset()
			due := m.differs(me)
			m.wake(me)
			// An event that tells nothing new is played for the leader only.
			if (due || me == 0) && (m.w.actor[me] != w.actor[me] || m.w.news != w.news) {
				follow := me == 0 && !flying && due
				if me == 0 && due {
					rest = false
				}
				put(choice(mWake, me, 0), follow, false)
			}
		}
		if w.left[bCrash] > 0 {
			do(choice(mCrash, me, 0), false)
		}
		if w.left[bStale] > 0 && w.actor[me].snap.kind == noSnap {
			do(choice(mLag, me, 0), false)
		}
	}
	for i, f := range w.fly {
		if f.op != 0 {
			do(choice(mLand, i, 0), i == 0 && !w.wr.on)
		}
	}
	if w.wr.on {
		do(choice(mLandWrite, 0, 0), true)
	}
	if w.left[bOver] > 0 && !w.actor[1].on {
		do(choice(mOver, 0, 0), false)
	}
	settled := rest && !flying
	// The tombstone's time is longer than any call or process lasts.
	ages := settled && w.intent.Phase == provision.PhaseReleased && !w.old && w.obj.goal() != provision.GoalWant && next.Kind == provision.Done
	mayTick := m.mayTick()
	if w.actor[1].on && (ages || !mayTick) {
		do(choice(mEnd, 0, 0), settled)
		ages, settled = false, false
	}
	if ages {
		do(choice(mExpire, 0, 0), true)
		settled = false
	}
	if mayTick {
		do(choice(mTick, 0, 0), settled)
	}
	m.people(w, rest, next, do)
	if !rest || flying {
		return search.Status{}
	}
	return m.judge(w, next)
}

// mayTick: what is deleted to be made anew under the same id (credentials, or names that come again) rests on this: a
// delete does not outlast the settle time, on the wire or in the hands of a process that sleeps.
func (m *model) mayTick() bool {
	if m.c.prompt && m.base.fly[0].op != 0 {
		return false
	}
	if !m.c.access && !m.c.reuse && m.c.left[bFlip] == 0 {
		return true
	}
	for _, f := range m.base.fly {
		if f.op == provision.Delete || f.op == provision.DeleteByName {
			return false
		}
	}
	return !m.poised
}

// people makes the moves of users and admins.
func (m *model) people(w *world, rest bool, next provision.Next, do func(search.Choice, bool)) {
	o := w.obj
	if w.left[bDelete] > 0 && o.here && !o.deleting {
		do(choice(mDelete, 0, 0), false)
	}
	if w.left[bFlip] > 0 && o.here && o.deleting {
		do(choice(mFlip, 0, 0), false)
	}
	if w.left[bForce] > 0 && o.here {
		do(choice(mForce, 0, 0), false)
	}
	if w.left[bAgain] > 0 && !o.here {
		do(choice(mAgain, 0, 0), false)
	}
	if w.left[bWord] > 0 && rest && next.Kind == provision.Stuck && w.intent.Rev != "" && w.intent.Word == provision.WordNone {
		do(choice(mWord, int(provision.WordDelete), 0), false)
	}
	if w.left[bVanish] > 0 {
		for i, x := range w.things {
			if x.id != 0 && !x.foreign && !x.given {
				do(choice(mVanish, i, 0), false)
			}
		}
	}
}

// judge says what is wrong if the world stays so.
func (m *model) judge(w *world, next provision.Next) search.Status {
	s := search.Status{Rest: next.Kind == provision.Done || next.Kind == provision.Stuck}
	s.Note = 1 << next.Why
	own := w.owned()
	serves := w.find(w.obj.shown)
	kept := w.intent.Phase == provision.PhaseRetained
	stuck := next.Kind == provision.Stuck
	recorded := w.intent.Rev != "" || m.c.base != nil && w.obj.here
	ids := maskOf(w.intent.Strays)
	if id := num(w.intent.ID); id != 0 {
		ids |= 1 << (id - 1)
	}
	unknown := w.own(ids) >= 0 && m.c.base == nil
	switch goal := w.obj.goal(); {
	case stuck:
		if !recorded && own > 0 {
			s.Fault |= search.Orphan
		}
	case goal == provision.GoalWant && kept:
	case goal == provision.GoalWant:
		if w.intent.Phase >= provision.PhaseReleased && own > 0 {
			s.Fault |= search.Orphan
		}
		if serves < 0 && !m.c.lax || serves >= 0 && (w.things[serves].foreign || w.things[serves].half) || m.c.access && w.obj.secret != goodSecret && !m.c.lax {
			s.Fault |= search.Stuck
		}
		// A second one that came after the last look of a record in doubt is seen at the next look, if the driver can
		// find; if not, the doubt that is written down finds it at deletion.
		if (own > 1 || own == 1 && serves >= 0 && w.things[serves].twice) && (m.c.ways.FindByName || !w.intent.Doubt) {
			s.Fault |= search.Double
		}
	case kept:
		if unknown && !w.intent.Doubt {
			s.Fault |= search.Orphan
		}
	case goal == provision.GoalKeep && m.c.static, goal == provision.GoalGone && m.c.static:
	default:
		if own > 0 {
			s.Fault |= search.Orphan
		}
		if w.obj.here && (w.obj.fin || w.obj.up) {
			s.Fault |= search.Stuck
		}
	}
	return s
}
