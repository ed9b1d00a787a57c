package provision

import (
	"context"
	"errors"
	"time"
)

// Engine runs the protocol for one kind of resource of one driver. It holds no state: what an incarnation knows of a
// name is in the Memo, what must outlive it is in the Store.
type Engine struct {
	Store   Store
	Backend Backend
	// Now is a monotonic clock of this incarnation.
	Now func() time.Duration
	// Mint gives a nonce that nobody has used or will use.
	Mint func() Nonce
	// Settle is how long a create may still land after it was last heard of. At least the call's deadline; twice by
	// default.
	Settle time.Duration
	Pace   Pace
	// Reuse: names come again for other resources (CSI). A new intent then takes over a tombstone that has settled,
	// and a sweep swaps the tombstone before it deletes. Without it (COSI: names hold UIDs) a spent name is refused.
	Reuse bool
}

// Pace says how soon things are tried again.
type Pace struct {
	First time.Duration // after the first failure; doubles
	Max   time.Duration // at most, also the pace for what only an admin can mend
	Sweep time.Duration // between two looks under a tombstone
}

// Memo is all that one incarnation knows of one name. Its zero value, with Lead set, is a fresh start; a crash loses
// it and nothing else. It is comparable. Callers keep it from Step to Step and look into it only through Rec.
type Memo struct {
	Rec   Record
	Lead  time.Duration // when this incarnation took the lead
	Open  time.Duration // when it last heard, or gave up hearing, of a create that may still land
	Fresh bool          // Rec is as good as the last Wake
	Live  bool          // Rec's goal was read live
	Exact bool          // the next Load must be live

	Mine   Nonce // our attempt
	Called bool  // ... its call was made
	Owned  bool  // ... its owner was seen alive after the record was durable
	Seen   Nonce // the last attempt of another incarnation that we met
	Hand   Hand  // an answer that is not durable yet

	Lost   bool // the payload was lost
	Served bool
	Looked bool // a look found nothing; done again after each create
	Vanish bool // the id that was to be confirmed is not there
	Last   Code // of the last create

	Own     bool   // this incarnation moved the record to PhaseDeleting
	Unheard bool   // a delete was not answered
	Gone    string // ids whose delete was answered OK in this pass
	Peeked  bool   // a look before the settle time was made; or the payload was asked for again after it
	Late    bool   // the last pass, begun after the settle time, is on
	Clean   bool   // ... and its look found nothing
	Remade  bool   // create-again has answered
	Freed   bool
	Way     uint8  // how many ways of looking have failed
	Cand    string // a derived id
	Sweep   bool   // a sweep under the tombstone is on
	Ending  bool   // ... the last one: the tombstone's time was over when it began
	Due     time.Duration

	Tries uint8
	After time.Duration // not before
	Why   Why
}

// Hand is what an answer brought, until it is durable.
type Hand struct {
	Full  bool
	ID    string
	Made  bool // a create of ID was answered OK
	Ended bool // the driver is done with our attempt
	Never bool // ... for the call was never sent: nothing was made
	Named bool // ID was generated, a create under it comes next
}

// Begin gives the memo of an incarnation that took the lead at the time given and knows nothing yet.
func Begin(name Name, lead time.Duration) Memo { return Memo{Rec: Record{Name: name}, Lead: lead} }

// Wake tells the memo that object or Intent may have changed.
func (m Memo) Wake() Memo {
	m.Fresh, m.Live, m.Served = false, false, false
	m.Lost = m.Lost && m.ready() // another incarnation may have shown the payload meanwhile
	return m
}

// Kind says what the caller does next.
type Kind uint8

const (
	// Again: call Step again now.
	Again Kind = iota
	// Wait: call Step again after Next.After, or after Wake.
	Wait
	// Done: the goal is reached. If Next.After is not zero, call Step again then (a sweep, a look, the end of a
	// tombstone).
	Done
	// Stuck: somebody has to decide or to mend something. Say so; call Step again after Next.After all the same.
	Stuck
)

// Next is what Step hands out.
type Next struct {
	Kind  Kind
	After time.Duration
	Why   Why
}

// door is what one step does.
type door uint8

const (
	toNext door = iota // nothing: hand out next
	toMemo             // nothing: only the memo changes
	toLoad
	toSave
	toOwner
	toServe
	toFree
	toDrop
	toCall
)

// act is one decision.
type act struct {
	door door
	rec  Record // toSave
	call Call   // toCall
	memo Memo   // toMemo, toSave: the memo as it is if the act succeeds
	next Next
}

// Step makes at most one call through one door. The caller runs one name at a time.
func (e *Engine) Step(ctx context.Context, m Memo) (Memo, Next) {
	a := e.decide(m, e.Now())
	switch a.door {
	case toNext:
		return m, a.next
	case toMemo:
		return a.memo, Next{}
	case toLoad:
		return e.load(ctx, m)
	case toSave:
		return e.save(ctx, m, a)
	case toOwner:
		return e.owner(ctx, m)
	case toServe:
		return e.serve(ctx, m)
	case toFree:
		if err := e.Store.Free(ctx, m.Rec); err != nil {
			return e.upset(m, err)
		}
		m.Freed, m.Rec.Bound = true, false
		return m.calm(), Next{}
	case toDrop:
		if err := e.Store.Drop(ctx, m.Rec); err != nil && !errors.Is(err, ErrGone) {
			return e.upset(m, err)
		}
		return Memo{Rec: Record{Name: m.Rec.Name}, Lead: m.Lead, Open: m.Open, Exact: true}, Next{}
	}
	return e.call(ctx, m, a.call)
}

// Run makes steps until there is nothing to do at once.
func (e *Engine) Run(ctx context.Context, m Memo) (Memo, Next) {
	for {
		var n Next
		if m, n = e.Step(ctx, m); n.Kind != Again || ctx.Err() != nil {
			return m, n
		}
	}
}

func (e *Engine) load(ctx context.Context, m Memo) (Memo, Next) {
	live := m.Exact || m.Rec.Phase >= PhaseDeleting
	r, err := e.Store.Load(ctx, m.Rec.Name, live)
	if err != nil {
		return e.upset(m, err)
	}
	if r.Phase != m.Rec.Phase {
		hand := m.Hand
		m = m.page() // somebody else's write, or one of ours that was not answered
		m.Hand = hand
	}
	if r.Phase < PhaseDeleting && r.Rev != m.Rec.Rev {
		// Another incarnation may have made again, and shown, what this one has deleted, or not found.
		m.Gone, m.Looked, m.Vanish, m.Peeked = "", false, false, false
		m.Lost = m.Lost && m.ready()
	}
	if r.Goal != m.Rec.Goal || r.Phase != m.Rec.Phase || r.Word != m.Rec.Word {
		m.Tries, m.After, m.Why, m.Freed = 0, 0, 0, false
	}
	if r.Attempt != "" && r.Attempt != m.Mine && r.Attempt != m.Seen {
		m.Seen, m.Open = r.Attempt, max(m.Open, e.Now())
	}
	if e.Reuse && r.Phase >= PhaseReleased && r.Rev != m.Rec.Rev {
		m.Open = max(m.Open, e.Now()) // another incarnation's sweep may have a delete on its way
	}
	if r.Phase != PhaseDeleting || e.Reuse && r.Rev != m.Rec.Rev {
		m.Own = false
	}
	m.Rec, m.Fresh, m.Live, m.Exact = r, true, live, false
	return m, Next{}
}

func (e *Engine) save(ctx context.Context, m Memo, a act) (Memo, Next) {
	rev, err := e.Store.Save(ctx, a.rec)
	if err != nil {
		m.Mine, m.Called, m.Owned = a.memo.Mine, a.memo.Called, a.memo.Owned
		return e.upset(m, err)
	}
	m = a.memo
	if m.Why.store() {
		m = m.calm()
	}
	m.Rec = a.rec
	m.Rec.Rev = rev
	return m, Next{}
}

func (e *Engine) owner(ctx context.Context, m Memo) (Memo, Next) {
	goal, err := e.Store.Owner(ctx, m.Rec)
	if err != nil {
		return e.upset(m, err)
	}
	m.Owned = goal == GoalWant
	if !m.Owned {
		m.Fresh, m.Exact = false, true
	}
	if m.Why.store() {
		m = m.calm() // what the driver has refused is still refused
	}
	return m, Next{}
}

func (e *Engine) serve(ctx context.Context, m Memo) (Memo, Next) {
	err := e.Store.Serve(ctx, m.Rec)
	switch {
	case err == nil:
		m.Served, m.Lost, m.Peeked = true, false, false
		return m.calm(), Next{}
	case errors.Is(err, ErrLost) && !m.Live:
		m.Fresh, m.Exact = false, true // what is shown decides what may be deleted: not from a cache
		return m, Next{}
	case errors.Is(err, ErrLost) && !m.Lost:
		m.Lost = true
		return m, Next{}
	case errors.Is(err, ErrRefused):
		return e.wait(m, e.Pace.Max, WhyRefused, Stuck)
	}
	return e.upset(m, err)
}

// upset is what follows an answer of the store other than success: load again, live, and slower each time.
func (e *Engine) upset(m Memo, err error) (Memo, Next) {
	m.Fresh, m.Exact = false, true
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrGone):
		return m, Next{}
	case errors.Is(err, ErrRefused):
		return e.wait(m, e.Pace.Max, WhyRefused, Stuck)
	}
	return e.back(m, WhyStore)
}

// back holds the name off for a while that doubles with each failure.
func (e *Engine) back(m Memo, why Why) (Memo, Next) {
	after := e.Pace.First << m.Tries
	if after < e.Pace.Max && m.Tries < 32 {
		m.Tries++
	} else {
		after = e.Pace.Max
	}
	return e.wait(m, after, why, Wait)
}

func (e *Engine) wait(m Memo, after time.Duration, why Why, kind Kind) (Memo, Next) {
	m.After, m.Why = e.Now()+after, why
	m.Live = false // others may have written by then
	return m, Next{kind, after, why}
}

// calm forgets past failures.
func (m Memo) calm() Memo {
	m.Tries, m.After, m.Why = 0, 0, 0
	return m
}

// settled tells how much longer a create that is in doubt may still land.
func (e *Engine) settled(m Memo, now time.Duration) (left time.Duration) {
	return max(0, max(m.Lead, m.Open)+e.Settle-now)
}
