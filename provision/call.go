package provision

import "context"

// call makes one call to the driver and folds its answer into the memo.
func (e *Engine) call(ctx context.Context, m Memo, c Call) (Memo, Next) {
	if c.Op == Create || c.Op == Generate {
		m.Called, m.Looked = true, false
		m.Gone = without(m.Gone, c.ID)
	}
	a := e.Backend.Do(ctx, c)
	if a.Code == OK && a.ID == "" && (c.Op == Create || c.Op == Generate) {
		a.Code = Unknown // success without an id is no success, and may have made something
	}
	switch c.Op {
	case Create, Generate:
		return e.created(m, c, a)
	case Fetch:
		switch {
		case a.Code == OK:
			m.Hand = Hand{Full: true, ID: c.ID, Made: true}
			return m.calm(), Next{}
		case a.Code == NotFound && m.Rec.Origin != OriginStatic:
			m.Vanish = true
			return m.calm(), Next{}
		}
		return e.refused(m, a.Code, WhyFetch)
	case Derive:
		return e.derived(m, a)
	}
	return e.looked(m, c, a)
}

// created takes in the answer to a create: the id first, whatever the code.
func (e *Engine) created(m Memo, c Call, a Answer) (Memo, Next) {
	m.Last = a.Code
	ended := a.Code.Ended()
	if !ended {
		m.Open = max(m.Open, e.Now())
	}
	deleting := m.Rec.Phase >= PhaseDeleting
	m.Hand = Hand{Full: ended || a.ID != "", ID: a.ID, Ended: ended, Never: a.Code == NotSent}
	if a.Code == OK {
		m.Hand.Made, m.Hand.Named = c.Op == Create, c.Op == Generate
		m.Remade = c.Op == Create && (deleting || m.Lost)
		m.Served = false
		return m.calm(), Next{}
	}
	if deleting {
		m.Late = m.Late && ended      // it may land: wait, and look once more
		m.Ending = m.Ending && !ended // it could not look: the tombstone stays
	}
	switch {
	case deleting && c.Op == Generate:
		m.Way = wayKnown + 1
	case deleting:
		m.Way = ways
	case a.Code == AlreadyExists && m.Tries == 0:
		m.Tries++ // look at once; a second time in a row it waits
		return m, Next{}
	case a.Code == AlreadyExists:
		m, _ = e.wait(m, e.Pace.Max, WhyTaken, Stuck)
		return m, Next{}
	}
	m, n := e.refused(m, a.Code, WhyCreate)
	if m.Hand.Full {
		n = Next{} // what is in hand is kept before the driver is given time
	}
	return m, n
}

// derived takes in the id that the template gives.
func (e *Engine) derived(m Memo, a Answer) (Memo, Next) {
	switch {
	case a.Code != OK || a.ID == "":
		m.Way = wayDerive + 1
		return e.wait(m, e.Pace.Max, WhyTemplate, Stuck)
	case m.Rec.Phase == PhaseMaking && !e.Backend.Ways().Remake:
		m.Hand = Hand{Full: true, ID: a.ID}
	default:
		m.Cand = a.ID
	}
	return m, Next{}
}

// looked takes in the answer of a delete or a look.
func (e *Engine) looked(m Memo, c Call, a Answer) (Memo, Next) {
	gone := a.Code == OK || a.Code == NotFound
	known := m.Rec.Holds(c.ID)
	if c.Op != Find && !gone && !a.Code.Ended() {
		m.Unheard = true
		m.Open = max(m.Open, e.Now()) // what is made anew must not meet this delete
	}
	if c.Op == Delete && gone && known {
		m.Gone = with(m.Gone, c.ID)
	}
	switch {
	case c.Op == Delete && gone && c.ID != m.Cand:
		return m.calm(), Next{}
	case c.Op == Delete && c.ID != m.Cand:
		return e.refused(m, a.Code, WhyDelete)
	case c.Op == Find && a.Code == OK && a.ID != "":
		m.Hand = Hand{Full: true, ID: a.ID}
		return m.calm(), Next{}
	case gone:
		m.Looked, m.Peeked = true, true
		if m.Rec.Phase == PhaseLive {
			m.Due = e.Now() + e.Pace.Sweep
		}
		m.Clean = m.Late || !m.Rec.Open()
		m.Cand = ""
		if m.Rec.Phase == PhaseMaking && m.Last == AlreadyExists {
			return m, Next{} // what has the name is not ours: the next refusal is the second in a row, and waits
		}
		return m.calm(), Next{}
	case a.Code.Ended():
		m.Ending = false // it could not look: the tombstone stays
		m.Way++          // this way does not work here, the next one may
		for _, way := range []struct {
			op  Op
			way uint8
		}{{DeleteByName, wayDelete}, {Find, wayFind}, {Delete, wayDerive}} {
			if way.op == c.Op {
				m.Way = way.way + 1
			}
		}
		m.Cand = ""
	}
	return e.refused(m, a.Code, WhyLook)
}

// refused holds the name off: for a while that doubles, or at the slowest pace where only a change can help.
func (e *Engine) refused(m Memo, c Code, why Why) (Memo, Next) {
	if c.Again() {
		return e.back(m, why)
	}
	return e.wait(m, e.Pace.Max, why, Wait)
}
