package explore

import (
	"context"

	"github.com/custody-storage/custody/provision"
)

// idKind says where ids come from.
type idKind uint8

const (
	derived   idKind = iota // the id follows from the name
	assigned                // the server gives one when it makes the thing
	generated               // the driver gives one before the create (two phases)
)

// again says what a create of a name does that exists already.
type again uint8

const (
	same   again = iota // answers the same id
	exists              // answers ALREADY_EXISTS
	anew                // makes a second one
)

// driver is what a driver and its backend do. What Ways says of them must be true.
type driver struct {
	ids   idKind
	again again
	state bool // Generate makes state in the backend
	db    bool // the driver knows its own things from a database that it writes after the create
	mark  bool // looks by name touch only what carries our mark
}

// create makes the thing and answers as the driver does.
func (t *turn) create(c call) (provision.Code, uint8) {
	w, d := t.w, t.c.driver
	i := -1
	switch d.ids {
	case derived:
		i = w.find(theID)
	case generated:
		i = w.find(c.id)
	case assigned:
		if i = w.own(w.unlisted()); i < 0 {
			for j, x := range w.things {
				if x.foreign {
					i = j
				}
			}
		}
	}
	if i >= 0 && w.things[i].half {
		w.things[i].half = false
		return provision.OK, w.things[i].id
	}
	if i >= 0 {
		switch {
		case w.things[i].foreign, d.again == exists:
			return provision.AlreadyExists, 0
		case d.again == same:
			return provision.OK, w.things[i].id
		case d.ids != assigned:
			w.things[i].twice = t.c.access
			return provision.OK, w.things[i].id
		}
	}
	id := c.id
	switch d.ids {
	case derived:
		id = theID
	case assigned:
		id = t.mintID()
	}
	w.put(thing{id: id})
	return provision.OK, id
}

// unlisted gives the things that the driver's database does not hold.
func (w *world) unlisted() (mask uint16) {
	for _, t := range w.things {
		if t.half {
			mask |= 1 << (t.id - 1)
		}
	}
	return mask
}

// kill deletes a thing and notes whether it should have been left alone.
func (t *turn) kill(i int) {
	w := t.w
	x := w.things[i]
	w.things[i] = thing{}
	shown := w.obj.here && w.obj.shown == x.id
	serves := shown && !x.half && (!t.c.access || w.obj.secret == goodSecret)
	bad := ""
	switch {
	case x.foreign:
		bad = "somebody else's"
	case x.given && (!w.obj.here || !w.obj.deleting || w.obj.keep && !w.flipped) && w.intent.Word != provision.WordDelete:
		bad = "made by an admin, who did not say Delete"
	case x.given:
	case w.intent.Word == provision.WordDelete: // an admin's decision
	case serves && !w.obj.deleting:
		bad = "in use"
	case shown && w.obj.deleting && w.early && !w.flipped:
		bad = "to be retained"
	case w.intent.Phase == provision.PhaseRetained && num(w.intent.ID) == x.id && !w.flipped:
		bad = "retained"
	case !t.c.access && !w.obj.here && w.intent.Phase == provision.PhaseLive && num(w.intent.ID) == x.id && w.intent.Word == provision.WordNone:
		bad = "of an object that vanished without its finalizer"
	}
	if bad != "" {
		t.bad = true
		t.say("** ", t.shown(x.id), " is deleted, and it is ", bad, " **")
	}
	if shown && w.obj.secret == goodSecret {
		w.obj.secret = deadSecret
	}
	for j := range w.actor {
		if a := &w.actor[j]; a.pay == x.id {
			a.payDead = true
		}
	}
}

// apply lets a call take effect in the backend.
func (t *turn) apply(c call) (provision.Code, uint8) {
	w, d := t.w, t.c.driver
	switch c.op {
	case provision.Create:
		return t.create(c)
	case provision.Generate:
		if t.c.stableID {
			if d.state && w.find(theID) < 0 {
				w.put(thing{id: theID, half: true})
			}
			return provision.OK, theID
		}
		id := t.mintID()
		if d.state {
			w.put(thing{id: id, half: true})
		}
		return provision.OK, id
	case provision.Delete:
		if i := w.find(c.id); i >= 0 {
			t.kill(i)
		}
	case provision.DeleteByName:
		for i, x := range w.things {
			if x.id != 0 && !x.given && (!x.foreign || !d.mark) && (!d.db || !x.half) {
				t.kill(i)
			}
		}
	}
	return provision.OK, 0
}

// Ways says what the engine may know of the driver.
func (t *turn) Ways() provision.Ways { return t.c.ways }

// Do is the door to the driver.
func (t *turn) Do(_ context.Context, pc provision.Call) provision.Answer {
	t.door, t.open = true, 1<<oFine
	w, d := t.w, t.c.driver
	c := call{op: pc.Op}
	if pc.Op != provision.Find {
		c.id = num(pc.ID)
	}
	name := opWords[pc.Op]
	switch pc.Op {
	case provision.Derive:
		t.say("works the id out from the template")
		return provision.Answer{Code: provision.OK, ID: idOf[theID]}
	case provision.Fetch:
		t.offer(oFail)
		t.pay()
		switch i := w.find(c.id); {
		case t.want == oFail:
			t.say(name, ": no answer")
			return provision.Answer{Code: provision.Unavailable}
		case i < 0 || w.things[i].half:
			t.say(name, " ", t.shown(c.id), ": NOT_FOUND")
			return provision.Answer{Code: provision.NotFound}
		}
		t.say(name, " ", t.shown(c.id), ": OK")
		return provision.Answer{Code: provision.OK, ID: pc.ID}
	case provision.Find:
		t.offer(oFail)
		t.pay()
		if t.want == oFail {
			t.say(name, ": no answer")
			return provision.Answer{Code: provision.Unavailable}
		}
		except := maskOf(pc.ID)
		i := w.own(except)
		if i < 0 && !t.c.driver.mark {
			for j, x := range w.things {
				if x.foreign && except>>(x.id-1)&1 == 0 {
					i = j
				}
			}
		}
		if i < 0 {
			t.say(name, ": nothing")
			return provision.Answer{Code: provision.OK}
		}
		t.say(name, ": ", t.shown(w.things[i].id))
		return provision.Answer{Code: provision.OK, ID: idOf[w.things[i].id]}
	}
	t.deletes = pc.Op == provision.Delete || pc.Op == provision.DeleteByName
	makes := pc.Op == provision.Create || pc.Op == provision.Generate
	t.offer(oFail, oLost, oCrash, oRefuse)
	if pc.Op == provision.Create {
		t.offer(oWrong, oWrongTaken)
		if t.c.errorID {
			t.offer(oErrorID)
		}
	}
	if w.fly[1].op == 0 {
		t.offer(oLate, oLateCrash)
	}
	t.pay()
	switch t.want {
	case oFail:
		t.say(t.words(c), ": UNAVAILABLE, nothing done")
		return provision.Answer{Code: provision.Unavailable}
	case oRefuse:
		t.say(t.words(c), ": refused, nothing done")
		if makes {
			return provision.Answer{Code: provision.InvalidArgument}
		}
		return provision.Answer{Code: provision.FailedPrecondition}
	case oLate, oLateCrash:
		t.say(t.words(c), ": time-out, the driver is still at it", t.died())
		w.launch(c)
		return provision.Answer{Code: provision.DeadlineExceeded}
	}
	said := t.words(c)
	code, id := t.apply(c)
	if i := w.find(id); d.db && i >= 0 && (t.want == oLost || t.want == oCrash) {
		w.things[i].half = true // the driver dies before it has written its database
	}
	switch t.want {
	case oLost, oCrash:
		t.say(said, ": done, the reply is lost", t.died())
		return provision.Answer{Code: provision.DeadlineExceeded}
	case oWrong:
		t.say(said, ": done, yet answered INVALID_ARGUMENT")
		return provision.Answer{Code: provision.InvalidArgument}
	case oWrongTaken:
		t.say(said, ": done, yet answered ALREADY_EXISTS (its SDK asked twice)")
		return provision.Answer{Code: provision.AlreadyExists}
	case oErrorID:
		t.say(said, ": done, yet answered INTERNAL with the id in the error")
		return provision.Answer{Code: provision.Internal, ID: idOf[id]}
	}
	if id != 0 {
		t.say(said, ": OK, ", t.shown(id))
	} else {
		t.say(said, ": ", code.String())
	}
	if code == provision.OK && pc.Op == provision.Create {
		w.actor[t.me].pay, w.actor[t.me].payDead = id, false
	}
	return provision.Answer{Code: code, ID: idOf[id]}
}

// launch keeps a call that will land later.
func (w *world) launch(c call) {
	for i := range w.fly {
		if w.fly[i].op == 0 {
			w.fly[i] = c
			return
		}
	}
}
