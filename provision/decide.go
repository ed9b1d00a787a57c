package provision

import "time"

// decide is the protocol: what one incarnation does next, given what it knows. It touches nothing.
func (e *Engine) decide(m Memo, now time.Duration) act {
	r := m.Rec
	switch {
	case m.After > now && m.Why.store():
		return held(m, now)
	case !m.Fresh:
		return act{door: toLoad}
	case r.Hold != HoldNone:
		return e.stop(WhyHold)
	case m.Hand.Full:
		return e.keep(m)
	case m.After > now:
		return held(m, now)
	case !m.Live && (r.Goal != GoalWant || r.Phase >= PhaseDeleting || r.Phase == PhaseNone && (r.Given != "" || r.Other)):
		// What can't be undone, or trusts what the object shows, is decided on a live read.
		return fresh(m)
	}
	switch r.Phase {
	case PhaseNone:
		return e.begin(m)
	case PhaseMaking:
		switch {
		case r.Goal == GoalWant:
			return e.make(m, now)
		case r.Goal == GoalKeep && (r.ID != "" || r.Open()):
			return e.move(m, PhaseRetained, now)
		case r.Goal == GoalGone && r.Origin == OriginStatic:
			return act{door: toDrop}
		}
		return e.move(m, PhaseDeleting, now)
	case PhaseLive:
		switch {
		case r.Goal == GoalWant:
			return e.live(m, now)
		case r.Goal == GoalKeep && r.Origin == OriginStatic:
			return e.leave(m)
		case r.Goal == GoalKeep:
			return e.move(m, PhaseRetained, now)
		case r.Goal == GoalGone && (r.Origin == OriginStatic || r.Word == WordRelease):
			return act{door: toDrop}
		case r.Goal == GoalGone && r.Word != WordDelete:
			return e.stop(WhyOwnerGone)
		}
		return e.move(m, PhaseDeleting, now)
	case PhaseDeleting:
		if r.Goal == GoalKeep && r.Origin != OriginStatic {
			return e.move(m, PhaseRetained, now)
		}
		if r.Goal == GoalKeep {
			return e.leave(m)
		}
		if r.Goal == GoalWant && r.Holds(r.Shown) && r.Word == WordNone {
			return e.stop(WhyOwnerGone) // another object of this name uses what is to be deleted
		}
		return e.remove(m, now)
	case PhaseRetained:
		return e.retained(m, now)
	}
	return e.tombstone(m, now)
}

// fresh has the next step read live.
func fresh(m Memo) act {
	m.Fresh, m.Exact = false, true
	return act{door: toMemo, memo: m}
}

// begin decides where there is no record.
func (e *Engine) begin(m Memo) act {
	r := m.Rec
	switch {
	case r.Goal == GoalWant && r.Static:
		r.Phase, r.Origin, r.ID = PhaseMaking, OriginStatic, r.Given
	case r.Goal == GoalWant && r.Given != "":
		// Another orchestrator, or a record that is lost, has brought this object so far. What else was called is
		// not known.
		r.Phase, r.Origin, r.ID, r.Doubt = PhaseLive, OriginAdopted, r.Given, true
	case r.Goal == GoalWant && r.Other:
		r.Phase, r.Origin, r.Doubt = PhaseMaking, OriginAdopted, true
	case r.Goal == GoalWant:
		r.Phase, r.Origin = PhaseMaking, OriginCreated
		m = e.mint(m)
		// The object may be gone since it was read, and its record with it: this record would then be the first of a
		// second life. So the owner is asked once more, live, before the call.
		m.Owned = false
		r.Attempt = m.Mine
	case r.Goal == GoalDelete && r.Bound && r.Static:
		r.Phase, r.Origin, r.ID = PhaseDeleting, OriginStatic, r.Given
	case r.Goal == GoalDelete && r.Bound:
		// A finalizer without a record: taken over from another orchestrator, or restored from a backup.
		r.Phase, r.Origin, r.ID, r.Doubt = PhaseDeleting, OriginAdopted, r.Given, true
	case r.Goal != GoalGone && r.Bound && !m.Freed:
		return act{door: toFree}
	default:
		return act{next: Next{Kind: Done}}
	}
	m.Own = r.Phase == PhaseDeleting
	return act{door: toSave, rec: r, memo: m}
}

// mint gives the memo a nonce whose call was not made yet.
func (e *Engine) mint(m Memo) Memo {
	if m.Mine == "" || m.Called {
		m.Mine, m.Called = e.Mint(), false
	}
	m.Owned = true
	return m
}

// attempt opens a new attempt on a record that exists. Who finds another one open says so in the same write: its
// outcome will never be known.
func (e *Engine) attempt(m Memo) act {
	r := m.Rec
	m = e.mint(m)
	if r.Attempt != "" && r.Attempt != m.Mine {
		r.Doubt = true
	}
	r.Attempt, r.Word = m.Mine, WordNone
	m.Owned = m.Live // on a cached read the object may be long gone
	return act{door: toSave, rec: r, memo: m}
}

// ready tells whether an attempt of ours is open and its call not made yet.
func (m Memo) ready() bool { return m.Rec.Attempt != "" && m.Rec.Attempt == m.Mine && !m.Called }

// keep makes what an answer brought durable, whatever has become of the record meanwhile.
func (e *Engine) keep(m Memo) act {
	h, r := m.Hand, m.Rec
	if h.Ended && r.Attempt == m.Mine {
		r.Attempt = ""
	}
	switch {
	case h.ID == "":
	case r.Phase == PhaseNone && r.Goal == GoalWant:
		// The record is gone while an id is in hand: a whole life may have passed, so the id is not served but cleared
		// away, unless the next create answers it.
		r.Phase, r.Doubt, r.Strays = PhaseMaking, true, h.ID
	case r.Phase == PhaseNone:
		// The record is gone while an id is in hand: without a record nobody would ever delete it.
		r.Phase, r.Doubt, r.ID = PhaseDeleting, true, h.ID
		m.Own = true
	case r.Phase >= PhaseDeleting:
		if !r.Holds(h.ID) {
			r.Strays = with(r.Strays, h.ID)
		}
		m.Gone, m.Clean = without(m.Gone, h.ID), false
	case r.ID == "":
		r.ID, r.Strays = h.ID, without(r.Strays, h.ID)
	case r.ID == h.ID:
		m.Lost = m.Lost && !h.Made
	case h.Made && (r.Phase == PhaseMaking || m.Lost && r.Shown == ""):
		// Nobody has seen the first id, and what came with it (credentials) is lost or never came: the new one serves.
		r.ID, r.Strays = h.ID, without(with(r.Strays, r.ID), h.ID)
		m.Lost = false
	default:
		r.Strays = with(r.Strays, h.ID)
	}
	switch {
	case h.Made && r.Phase == PhaseMaking && r.ID == h.ID:
		r.Phase = PhaseLive
		if e.Backend.Ways().Repeat {
			r.Missed = false // whatever the attempts before this one made is this id
		}
	case h.Named && r.Phase == PhaseMaking && r.ID == h.ID && r.Goal == GoalWant && r.Attempt == "":
		m = e.mint(m) // the create's attempt opens in the write that keeps the id
		r.Attempt = m.Mine
	case h.Ended && !h.Made && !h.Named && !h.Never && h.ID == "":
		r.Missed = true
	}
	if r.Phase >= PhaseReleased {
		m.Due = 0
	}
	m.Hand = Hand{}
	if r == m.Rec {
		return act{door: toMemo, memo: m}
	}
	return act{door: toSave, rec: r, memo: m}
}

// page is what is left of the memo in another phase: what was seen and done in the one before counts no more.
func (m Memo) page() Memo {
	return Memo{Rec: m.Rec, Lead: m.Lead, Open: m.Open, Mine: m.Mine, Called: m.Called, Owned: m.Owned, Seen: m.Seen,
		Fresh: m.Fresh, Live: m.Live, Unheard: m.Unheard}
}

// move writes a new phase, and with it begins a new page of the memo.
func (e *Engine) move(m Memo, p Phase, now time.Duration) act {
	r := m.Rec
	if m.ready() {
		r.Attempt = ""  // opened, never called
		m.Called = true // nor ever will be: this write may land although it is not answered
	}
	if r.Attempt != "" {
		r.Doubt = true
	}
	if p == PhaseReleased || p == PhaseRetained {
		r.Attempt, r.Word = "", WordNone
	}
	if p == PhaseRetained && (r.Phase == PhaseMaking || r.Phase == PhaseDeleting && (!m.Own || m.Unheard || m.Gone != "")) {
		r.Linger = true // nothing says that it is there: not made yet, or deleted before the policy was changed
	}
	if p == PhaseDeleting && r.Phase == PhaseMaking && r.ID != "" && !r.Proven && e.Backend.Ways().Generate {
		r.Missed = true // generated, and not seen to be made: nothing proves that what has this id is ours
	}
	r.Phase, r.Expired = p, false
	n := m.page()
	switch p {
	case PhaseDeleting:
		n.Own = true
	case PhaseReleased:
		n.Open = max(m.Open, now) // a late delete of ours: a name that comes again waits for it
		n.Due = now + e.Pace.Sweep
	}
	return act{door: toSave, rec: r, memo: n}
}

// leave lets go of what was made elsewhere and stays: first the finalizers, then the record.
func (e *Engine) leave(m Memo) act {
	if m.Rec.Bound && !m.Freed {
		return act{door: toFree}
	}
	return act{door: toDrop}
}

func (e *Engine) retained(m Memo, now time.Duration) act {
	r := m.Rec
	w := e.Backend.Ways()
	left := e.settled(m, now)
	switch {
	case r.Goal == GoalWant && left > 0:
		return act{next: Next{Wait, left, WhySettle}} // the policy may have been changed while a delete was on its way
	case r.Goal == GoalWant && r.ID != "" && !r.Linger:
		return e.move(m, PhaseLive, now)
	case r.Goal == GoalWant && r.ID != "" && !w.Fetch && !w.Repeat && !w.Generate:
		return e.stop(WhyOwnerGone) // nothing tells whether it is still there
	case r.Goal == GoalWant:
		return e.move(m, PhaseMaking, now)
	case r.Word == WordDelete:
		return e.move(m, PhaseDeleting, now)
	case r.Bound && !m.Freed:
		return act{door: toFree}
	case r.Word == WordRelease:
		return act{door: toDrop}
	}
	return act{next: Next{Kind: Done, Why: WhyRetained}}
}

// stop says that somebody has to decide or to mend something.
func (e *Engine) stop(why Why) act {
	return act{next: Next{Kind: Stuck, After: e.Pace.Max, Why: why}}
}

func held(m Memo, now time.Duration) act {
	kind := Wait
	if m.Why.Stuck() {
		kind = Stuck
	}
	return act{next: Next{kind, m.After - now, m.Why}}
}
