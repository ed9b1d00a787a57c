package provision

import "time"

// make brings a wanted record from its first attempt to an id that a create has answered.
func (e *Engine) make(m Memo, now time.Duration) act {
	r, w := m.Rec, e.Backend.Ways()
	switch {
	case m.ready() && !m.Owned:
		return act{door: toOwner}
	case m.ready() && w.Generate && r.ID == "":
		return e.do(m, Generate, "")
	case m.ready():
		return e.do(m, Create, e.asked(r, w))
	case r.ID == "":
		return e.again(m, w, now)
	}
	return e.confirm(m, w, now)
}

// asked is the id that a create is told: only a generated one.
func (e *Engine) asked(r Record, w Ways) string {
	if w.Generate {
		return r.ID
	}
	return ""
}

// again decides how to go on after an attempt that brought no id. A repeat may make a second one: so it looks first,
// unless a repeat is known to answer the same id.
func (e *Engine) again(m Memo, w Ways, now time.Duration) act {
	r := m.Rec
	taken := m.Last == AlreadyExists // says nothing about who made it
	proof := r.Proven || w.Mark
	switch {
	case r.Word == WordRetry, m.Looked:
		m.Peeked = false
		return e.attempt(m)
	case !r.Open() && !r.Missed && !taken:
		return e.attempt(m) // nothing of this name is unaccounted for
	case w.Repeat || w.Generate:
		return e.attempt(m)
	case !taken && w.Template && !w.Remake:
		return e.attempt(m) // the id follows from the name: a repeat can't make a second one
	}
	if left := e.settled(m, now); left > 0 && (r.Open() || w.Remake) {
		return act{next: Next{Wait, left, WhySettle}} // for a create that may land, or a delete made to look
	}
	if w.Remake && !m.Peeked {
		m.Peeked = true // the incarnation whose create was waited for may have kept its id, and shown it
		return fresh(m)
	}
	switch {
	case w.FindByName && proof:
		return e.do(m, Find, "")
	case w.Template && r.Proven && taken && !w.Remake:
		// Ours by its name, and of a kind that holds data: it is taken, never deleted to make it anew.
		return e.do(m, Derive, "")
	case w.Remake && proof && w.DeleteByName:
		return e.undo(m, DeleteByName, "")
	case w.Remake && proof && w.Template && m.Cand == "":
		return e.do(m, Derive, "")
	case w.Remake && proof && w.Template:
		return e.undo(m, Delete, m.Cand)
	case taken:
		return e.stop(WhyTaken)
	}
	return e.stop(WhyNoWayAgain)
}

// confirm turns an id that is known into one that serves.
func (e *Engine) confirm(m Memo, w Ways, now time.Duration) act {
	r := m.Rec
	live := r
	live.Phase = PhaseLive
	lost := r
	lost.ID = ""
	fresh := m
	fresh.Vanish, fresh.Gone = false, ""
	switch {
	case r.Origin == OriginStatic && w.Fetch:
		return e.do(m, Fetch, r.ID)
	case r.Origin == OriginStatic:
		return act{door: toSave, rec: live, memo: m}
	case m.Vanish:
		lost.Strays = with(r.Strays, r.ID)
		return act{door: toSave, rec: lost, memo: fresh}
	case w.Generate && m.Last == AlreadyExists && !r.Proven && !w.Mark:
		return e.stop(WhyTaken)
	case w.Generate && m.Last == AlreadyExists && w.Fetch && !w.Remake:
		return e.do(m, Fetch, r.ID)
	case w.Generate && w.Remake && !w.Repeat && r.Proven && (r.Open() || r.Missed) && !has(m.Gone, r.ID):
		// The id is known, and a create under it may have been carried out. A repeat makes no second account, but may
		// add a key to the one that is there. It is revoked first, under an id that stays.
		if r.Shared {
			return e.stop(WhyShared)
		}
		if left := e.settled(m, now); left > 0 {
			return act{next: Next{Wait, left, WhySettle}}
		}
		return e.undo(m, Delete, r.ID)
	case w.Generate:
		return e.attempt(m)
	case w.Remake && w.Repeat:
		return e.attempt(m)
	case w.Remake && has(m.Gone, r.ID):
		return act{door: toSave, rec: lost, memo: fresh}
	case w.Remake && r.Shared:
		return e.stop(WhyShared)
	case w.Remake:
		return e.undo(m, Delete, r.ID)
	case w.Fetch:
		return e.do(m, Fetch, r.ID)
	case w.Repeat && m.Last != AlreadyExists:
		return e.attempt(m)
	}
	return act{door: toSave, rec: live, memo: m}
}

// live serves a wanted record and clears away what else its attempts have made.
func (e *Engine) live(m Memo, now time.Duration) act {
	r, w := m.Rec, e.Backend.Ways()
	strays := split(r.Strays)
	switch {
	case r.Word != WordNone:
		r.Word = WordNone // said when its object was gone
		return act{door: toSave, rec: r, memo: m}
	case m.ready():
		return e.do(m, Create, e.asked(r, w))
	case !m.Served && !m.Lost:
		return act{door: toServe}
	case m.Lost && m.Remade:
		return e.stop(WhyLost) // it was asked again and gave another id
	case m.Lost && w.Repeat:
		return e.attempt(m)
	case m.Lost && w.Remake && r.Shared:
		return e.stop(WhyShared)
	case m.Lost && w.Remake && (r.Shown == "" || w.Template || w.Generate):
		// The credentials were never shown, or come back under the same id: revoke and grant anew. This leaves one
		// live credential, where another grant may leave two (garage-operator#271).
		if left := e.settled(m, now); left > 0 {
			// Before the delete: the incarnation that was answered may be about to show them. After it: a delete not
			// heard of must not hit the next grant.
			return act{next: Next{Wait, left, WhySettle}}
		}
		if !has(m.Gone, r.ID) && !m.Peeked {
			m.Peeked, m.Lost = true, false // it has had its time: ask once more
			return fresh(m)
		}
		if !has(m.Gone, r.ID) {
			return e.undo(m, Delete, r.ID)
		}
		m.Gone, m.Lost, m.Peeked = "", false, false
		r.Phase = PhaseMaking
		if !w.Generate {
			r.ID = ""
		}
		return act{door: toSave, rec: r, memo: m}
	case m.Lost:
		return e.stop(WhyLost)
	case len(strays) > 0 && r.Shared:
		return act{next: Next{Done, e.Pace.Max, WhyShared}}
	case len(strays) > 0 && !has(m.Gone, strays[0]):
		return e.do(m, Delete, strays[0])
	case len(strays) > 0:
		r.Strays = without(r.Strays, strays[0])
		m.Gone = ""
		return act{door: toSave, rec: r, memo: m}
	case r.Doubt && w.FindByName && (r.Proven || w.Mark):
		// An attempt that was never heard of may have made a second one, or will. Nothing is deleted on this look but
		// what is found beside the one that serves.
		if left := max(e.settled(m, now), m.Due-now); left > 0 {
			return act{next: Next{Kind: Done, After: left}}
		}
		return e.do(m, Find, JoinIDs(r.ID))
	}
	return act{next: Next{Kind: Done}}
}

// undo deletes what is to be made anew. That such a delete may be on its way is durable first: the object may be deleted
// before it is answered, and the name must not be free then.
func (e *Engine) undo(m Memo, op Op, id string) act {
	if !m.Live {
		return fresh(m) // an old copy may show an account as lost that has been shown since
	}
	if !m.Rec.Linger {
		r := m.Rec
		r.Linger = true
		return act{door: toSave, rec: r, memo: m}
	}
	return e.do(m, op, id)
}

func (e *Engine) do(m Memo, op Op, id string) act {
	return act{door: toCall, call: Call{op, m.Rec.Name, id}}
}
