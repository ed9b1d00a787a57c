package provision

import "time"

// The ways of looking for what is known by name alone, strongest first (design rule 4 of "never none").
const (
	wayKnown  uint8 = iota // delete the generated id once more
	wayDelete              // delete by name
	wayFind                // find by name, then delete by id
	wayDerive              // delete the id that the template gives
	wayRepeat              // create again to learn the id, then delete
	ways
)

// remove brings a record from PhaseDeleting to its end.
func (e *Engine) remove(m Memo, now time.Duration) act {
	r := m.Rec
	w := e.Backend.Ways()
	switch {
	case r.Word == WordRelease:
		return e.leave(m) // the admin takes over whatever is left: no tombstone, no sweep
	case r.Shared:
		return e.stop(WhyShared)
	case r.Origin == OriginAdopted && r.ID != "" && !r.Proven && r.Word != WordDelete:
		return e.stop(WhyUnproven) // a driver's owner marks speak of what it finds by name, not of an id it is told
	case w.Generate && !r.Proven && len(r.IDs()) > 0 && (r.Missed || r.Open()) && r.Word != WordDelete:
		return e.stop(WhyUnproven) // generated, and no create under it is known to have made it
	case !m.Own && !r.Linger:
		// Another incarnation began this and may have a delete in flight: its clean end must not pass any more.
		r.Linger = true
		return act{door: toSave, rec: r, memo: m}
	case m.ready():
		return e.learn(m, w)
	}
	if id := m.next(); id != "" {
		return e.do(m, Delete, id)
	}
	if !r.Open() && !r.Missed || m.Clean && !r.Open() {
		if r.Linger || m.Unheard {
			return e.move(m, PhaseReleased, now)
		}
		if r.Bound && !m.Freed {
			return act{door: toFree}
		}
		return act{door: toDrop}
	}
	if m.Clean {
		return e.move(m, PhaseReleased, now)
	}
	if r.Open() && !m.Late {
		if left := e.settled(m, now); left > 0 {
			if !m.Peeked {
				return e.look(m, w, false)
			}
			return act{next: Next{Wait, left, WhySettle}}
		}
		return act{door: toMemo, memo: m.last()}
	}
	return e.look(m, w, true)
}

// next is the first id whose delete was not answered OK in this pass.
func (m Memo) next() string {
	for _, id := range m.Rec.IDs() {
		if !has(m.Gone, id) {
			return id
		}
	}
	return ""
}

// last begins the last pass: what is known is deleted once more, then comes the look that counts.
func (m Memo) last() Memo {
	m.Late, m.Clean, m.Gone, m.Way, m.Cand, m.Looked, m.Remade = true, false, "", 0, "", false, false
	return m
}

// learn makes the call of an attempt that is there only to learn an id, see look.
func (e *Engine) learn(m Memo, w Ways) act {
	if w.Generate {
		return e.do(m, Generate, "")
	}
	return e.do(m, Create, "")
}

// look makes the next look. With full, create-again is among its ways.
func (e *Engine) look(m Memo, w Ways, full bool) act {
	r := m.Rec
	proof := r.Proven || w.Mark
	can := [ways]bool{
		wayKnown:  w.Generate && r.Proven && (r.ID == "" || m.Late || !r.Open()),
		wayDelete: w.DeleteByName && proof,
		wayFind:   w.FindByName && proof,
		wayDerive: w.Template && r.Proven,
		wayRepeat: w.Repeat && !w.Generate && r.Proven && full,
	}
	any := false
	for way, ok := range can {
		any = any || ok
		if !ok || uint8(way) < m.Way {
			continue
		}
		switch uint8(way) {
		case wayKnown:
			if len(r.IDs()) == 0 {
				return e.attempt(m) // it may make state
			}
			m.Clean = true // every known id was deleted in this pass
			return act{door: toMemo, memo: m}
		case wayDelete:
			return e.do(m, DeleteByName, "")
		case wayFind:
			return e.do(m, Find, "")
		case wayDerive:
			if m.Cand == "" {
				return e.do(m, Derive, "")
			}
			return e.do(m, Delete, m.Cand)
		case wayRepeat:
			if m.Remade {
				m.Clean = true
				return act{door: toMemo, memo: m}
			}
			return e.attempt(m)
		}
	}
	switch {
	case r.Phase != PhaseDeleting:
		m.Clean = true // a sweep ends with what it could do
		return act{door: toMemo, memo: m}
	case !full:
		m.Peeked, m.Way = true, 0
		return act{door: toMemo, memo: m}
	case any:
		m.Way = 0 // all failed, and were waited for: once more from the strongest
		return act{door: toMemo, memo: m}
	}
	return e.stop(WhyNoWay)
}

// tombstone keeps a released name: frees the object if need be, deletes what arrives late, ends when it is old. It ends
// with a sweep that began when its time was over and could look: nobody may have been here in the meantime. Only this
// last sweep may create again to learn an id.
func (e *Engine) tombstone(m Memo, now time.Duration) act {
	r := m.Rec
	w := e.Backend.Ways()
	old := r.Expired && r.Goal != GoalWant
	left := e.settled(m, now)
	sweep := r
	sweep.Phase = PhaseSweeping
	done := r
	done.Phase = PhaseReleased
	begun := m.last()
	begun.Sweep, begun.Ending = true, old && left == 0
	over := m
	over.Sweep, over.Late, over.Due = false, false, now+e.Pace.Sweep
	switch {
	case r.Goal != GoalWant && r.Bound && !m.Freed:
		return act{door: toFree}
	case m.Sweep && m.ready():
		return e.learn(m, w)
	case r.Attempt != "":
		return e.move(m, PhaseDeleting, now) // it was not answered: the tombstone's time begins anew
	case m.Sweep && m.next() != "" && !r.Shared:
		return e.do(m, Delete, m.next())
	case m.Sweep && !m.Clean && r.Open() && !r.Shared:
		return e.look(m, w, m.Ending)
	case m.Sweep && m.Ending && old:
		return act{door: toDrop}
	case m.Sweep && r.Phase == PhaseSweeping:
		return act{door: toSave, rec: done, memo: over}
	case m.Sweep:
		return act{door: toMemo, memo: over}
	case r.Phase == PhaseSweeping:
		// Begun by another incarnation. If it is alive, this write has it read again before it ends its sweep.
		m.Due = 0
		return act{door: toSave, rec: done, memo: m}
	case r.Goal == GoalWant && e.Reuse && left > 0:
		return act{next: Next{Wait, left, WhySettle}}
	case r.Goal == GoalWant && e.Reuse:
		m = e.mint(m)
		m.Owned = false
		r.Phase, r.Origin, r.ID, r.Strays, r.Doubt, r.Linger, r.Word = PhaseMaking, OriginCreated, "", "", true, false, WordNone
		r.Attempt = m.Mine
		return act{door: toSave, rec: r, memo: m}
	case now < m.Due && r.Goal == GoalWant:
		return act{next: Next{Stuck, m.Due - now, WhySpent}}
	case now < m.Due && !begun.Ending:
		return act{next: Next{Done, m.Due - now, WhyTombstone}}
	case e.Reuse:
		return act{door: toSave, rec: sweep, memo: begun}
	}
	return act{door: toMemo, memo: begun}
}
