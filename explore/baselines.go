package explore

import (
	"github.com/custody-storage/custody/provision"
)

// The baselines are the ways that were proposed, or are in use, in the public thread "gRPC resource
// provision-deprovision race condition". Each is the reconcile loop of a sidecar in its smallest form, over the same
// world as the shipped protocol. None has a record of its own: what is known is in the object's status.

// baseline says what a protocol does where they differ.
type baseline struct {
	name string
	what string
	// unknown is called where the object is being deleted and no id is known.
	unknown func(t *turn, m *memory) stage
	// first generates the id and writes it to status before the create.
	first bool
	// queue remembers in memory that a create was called and not yet recorded.
	queue bool
	// final believes the driver's final codes, and waits in memory for a create without one (CSI's provisioner).
	final bool
}

// stage is where the loop stands.
type stage uint8

const (
	sRead   stage = iota // read the object
	sAct                 // decide on what was read
	sStatus              // write the id to status
	sDelete              // delete the id in hand
	sFree                // take the finalizer off
	sByName              // delete by name, as the second half of the hybrid
	sRetry               // wait, then read again
	sDone
)

// memory is what an incarnation of a baseline knows.
type memory struct {
	at       stage
	deleting bool
	keep     bool
	here     bool
	ready    bool
	id       uint8 // from status, or from an answer
	open     bool  // a create was called whose outcome is not recorded (queue, final)
}

func (c *codec) memory(m *memory) {
	c.byte(uint8(m.at) | bits(m.deleting, m.keep, m.here, m.ready)<<4)
	c.byte(c.idNum(m.id) | bits(m.open)<<4)
}

func (c *codec) readMemory(m *memory) {
	b := c.next()
	m.at = stage(b & 15)
	m.deleting, m.keep, m.here, m.ready = bit(b, 4), bit(b, 5), bit(b, 6), bit(b, 7)
	b = c.next()
	m.id, m.open = c.readID(b&15), bit(b, 4)
}

func (b *baseline) wake(m memory) memory {
	if m.at == sDone {
		m.at = sRead
	}
	return m
}

func (b *baseline) older(m *memory) {
	if m.at == sRetry {
		m.at = sRead
	}
}

// differs tells whether an event is due.
func (b *baseline) differs(w *world, m *memory) bool {
	return w.news || m.at == sDone && (m.here != w.obj.here || m.here && m.deleting != w.obj.deleting || m.here && m.keep != w.obj.keep)
}

// ask makes one call to the driver and tells whether it was answered OK.
func (t *turn) ask(op provision.Op, id uint8) (bool, provision.Answer) {
	a := t.Do(nil, provision.Call{Op: op, Name: theName, ID: idOf[id]}) //nolint:staticcheck // the double needs no context
	return a.Code == provision.OK, a
}

func (b *baseline) step(t *turn, m *memory) (bool, provision.Next) {
	w := t.w
	switch m.at {
	case sRead:
		t.door, t.open = true, 1<<oFine
		o := w.obj
		m.here, m.deleting, m.keep, m.ready = o.here, o.deleting, o.keep, o.secret != noSecret
		m.id = o.shown
		m.at = sAct
		t.say("reads the object")
	case sAct:
		return b.act(t, m)
	case sStatus:
		b.status(t, m)
	case sDelete:
		ok, _ := t.ask(provision.Delete, m.id)
		switch {
		case ok:
			m.at = sFree
		default:
			m.at = sRetry
		}
	case sByName:
		if ok, _ := t.ask(provision.DeleteByName, 0); ok {
			m.at = sFree
		} else {
			m.at = sRetry
		}
	case sFree:
		if t.Free(nil, provision.Record{}) != nil { //nolint:staticcheck // the double needs no context
			m.at = sRetry
			break
		}
		t.door = true
		m.here, m.at = w.obj.here, sDone
	case sRetry:
		return true, provision.Next{Kind: provision.Wait, After: 1}
	case sDone:
		return true, provision.Next{Kind: provision.Done}
	}
	return false, provision.Next{}
}

// act is the loop's decision. It makes at most one request.
func (b *baseline) act(t *turn, m *memory) (bool, provision.Next) {
	switch {
	case !m.here:
		m.at = sDone
		return true, provision.Next{Kind: provision.Done}
	case m.deleting && m.keep:
		m.at = sFree
		return b.step(t, m)
	case m.deleting && m.id != 0:
		m.at = sDelete
		return b.step(t, m)
	case m.deleting:
		m.at = b.unknown(t, m)
		if !t.door {
			return b.step(t, m)
		}
	case m.ready:
		m.at = sDone
		return true, provision.Next{Kind: provision.Done}
	case b.first && m.id == 0:
		if ok, a := t.ask(provision.Generate, 0); ok {
			m.id, m.at = num(a.ID), sStatus
		} else {
			m.at = sRetry
		}
	default:
		b.create(t, m)
	}
	return false, provision.Next{}
}

// create calls the driver and says what comes next.
func (b *baseline) create(t *turn, m *memory) {
	m.open = true
	ok, a := t.ask(provision.Create, m.id)
	switch {
	case ok:
		m.id, m.at, m.ready = num(a.ID), sStatus, true
	default:
		if b.final && a.Code.Ended() {
			m.open = false // "final: nothing was made"
		}
		m.at = sRetry
	}
}

// status writes the id. The object's version is checked: the deletion timestamp alone makes it a conflict.
func (b *baseline) status(t *turn, m *memory) {
	t.door, t.open = true, 1<<oFine
	o := &t.w.obj
	if !o.here || o.deleting != m.deleting || o.keep != m.keep {
		t.say("writes the id to status: conflict, the object has changed")
		m.at = sRead
		return
	}
	t.offer(oFail, oLost, oCrash)
	t.pay()
	m.at = sRetry
	if t.want == oFail {
		t.say("writes the id to status: the API does not answer, nothing is written")
		return
	}
	o.shown = m.id
	if m.ready {
		o.secret = goodSecret
	}
	switch {
	case t.want != oFine:
		t.say("writes the id to status: written, the reply is lost", t.died())
	case !m.ready:
		m.at = sAct
		t.say("writes ", t.shown(m.id), " to status")
	default:
		m.at, m.open = sDone, false
		t.say("writes ", t.shown(m.id), " to status: the user may use it")
	}
}

// release: no id, so nothing was made.
func release(*turn, *memory) stage { return sFree }

// createFirst creates, to learn the id.
func createFirst(t *turn, m *memory) stage {
	if ok, a := t.ask(provision.Create, 0); ok {
		m.id = num(a.ID)
		return sDelete
	}
	return sRetry
}

// lookFirst gets the id by name.
func lookFirst(t *turn, m *memory) stage {
	switch ok, a := t.ask(provision.Find, 0); {
	case !ok:
		return sRetry
	case a.ID == "":
		return sFree
	default:
		m.id = num(a.ID)
		return sDelete
	}
}

func deleteByName(*turn, *memory) stage { return sByName }

// createOrFail creates, or fails with the id of what exists; both tell the id.
func createOrFail(t *turn, m *memory) stage {
	if i := t.w.own(0); i >= 0 {
		return lookFirst(t, m)
	}
	return createFirst(t, m)
}

// hybrid creates; if that fails, it deletes by name.
func hybrid(t *turn, m *memory) stage {
	if ok, a := t.ask(provision.Create, 0); ok {
		m.id = num(a.ID)
		return sDelete
	}
	return sByName
}

// queued knows from memory alone whether a create is unaccounted for.
func queued(t *turn, m *memory) stage {
	if !m.open {
		return sFree
	}
	return sByName
}

// finals waits for a create that has no final answer yet, by calling it again, then deletes.
func finals(t *turn, m *memory) stage {
	if !m.open {
		return sFree
	}
	ok, a := t.ask(provision.Create, 0)
	switch {
	case ok:
		m.id, m.open = num(a.ID), false
		return sDelete
	case a.Code.Ended():
		m.open = false
		return sFree
	}
	return sRetry
}

// baselines gives every protocol with every driver that it is tried with.
func baselines() (cs []class) {
	drivers := map[string]driver{
		"id from name":               {ids: derived, again: same},
		"id from name, no repeat":    {ids: derived, again: exists},
		"server-assigned id":         {ids: assigned, again: same},
		"server-assigned, no repeat": {ids: assigned, again: anew},
		"id known before":            {ids: generated, again: same},
		"id known before, state":     {ids: generated, again: same, state: true},
		"driver's own database":      {ids: assigned, again: same, db: true},
	}
	for _, x := range []struct {
		b  baseline
		on []string
	}{
		{baseline{name: "cosi-today", what: "no id in status at deletion means nothing was made", unknown: release},
			[]string{"id from name", "server-assigned id"}},
		{baseline{name: "create-then-delete", what: "option 1: create to learn the id, then delete", unknown: createFirst},
			[]string{"id from name", "id from name, no repeat", "server-assigned id", "server-assigned, no repeat"}},
		{baseline{name: "get-by-name", what: "option 2: Get(name) finds the id", unknown: lookFirst},
			[]string{"id from name", "server-assigned id"}},
		{baseline{name: "generate-id", what: "option 3: GenerateId(name), stored before the create", unknown: release, first: true},
			[]string{"id known before", "id known before, state"}},
		{baseline{name: "no-ids", what: "option 4: no ids, the name is all there is", unknown: deleteByName},
			[]string{"id from name"}},
		{baseline{name: "delete-by-name", what: "option 5: DeleteByName(name)", unknown: deleteByName},
			[]string{"id from name", "server-assigned id"}},
		{baseline{name: "create-or-fail", what: "option 6: CreateOrFailWithId(name)", unknown: createOrFail},
			[]string{"id from name", "server-assigned id"}},
		{baseline{name: "hybrid", what: "create, then Delete(id) or DeleteByName(name)", unknown: hybrid},
			[]string{"id from name, no repeat", "server-assigned id"}},
		{baseline{name: "memory-queue", what: "a queue of creates that are not recorded yet, in memory", unknown: queued, queue: true},
			[]string{"id from name", "server-assigned id"}},
		{baseline{name: "driver-database", what: "the driver keeps a database of names and ids, and deletes by name", unknown: deleteByName},
			[]string{"driver's own database"}},
		{baseline{name: "csi-final", what: "CSI's provisioner: final and non-final codes, kept in memory", unknown: finals, final: true},
			[]string{"id from name", "server-assigned id"}},
	} {
		for _, on := range x.on {
			cs = append(cs, class{name: x.b.name + "/" + slug(on), what: x.b.what, on: on, driver: drivers[on], base: &x.b, settle: 1,
				left: budgetOf(map[budget]uint8{bCrash: 1, bLost: 1, bLate: 1, bWrong: 1, bDelete: 1})})
		}
	}
	// A name that does not hold a UID may be somebody else's.
	for _, c := range cs {
		if c.base.name == "no-ids" || c.base.name == "delete-by-name" && c.driver.ids == derived {
			c.name += "/foreign"
			c.foreign = true
			cs = append(cs, c)
		}
	}
	return cs
}
