package explore

import (
	"context"
	"errors"
	"strings"

	"github.com/custody-storage/custody/provision"
)

// outcome is what becomes of one request. Which outcomes are open depends on the request and on what is left of each
// budget; oFine is always open.
type outcome uint8

const (
	oFine       outcome = iota
	oFail               // it never took effect and was not answered
	oLost               // it took effect and was not answered
	oLate               // not answered; takes effect later
	oCrash              // it took effect, the caller died
	oLateCrash          // the caller died; it takes effect later
	oRefuse             // the driver refused it with a final code
	oWrong              // the driver made the thing and answered with a final code
	oWrongTaken         // the driver made the thing and answered ALREADY_EXISTS: its own SDK asked twice
	oErrorID            // the driver made the thing and answered an error with the id in it
	oStaleBoth          // the cache answers with an old object and an old Intent
	oStaleObj           // ... with an old object
	oStaleIntent
	outcomes
)

var errUnheard = errors.New("no answer")

// turn is one actor's move, through whichever doors it takes.
type turn struct {
	w    *world
	c    *class
	me   int
	want outcome
	// What the move came to.
	door    bool
	open    uint32 // outcomes that are possible here
	crashed bool
	reading bool // the request is a live read
	deletes bool // the request is a delete
	bad     bool // something was deleted that must not be
	nonces  uint8
	revs    uint8
	ids     uint8
	names   *naming
	said    func(string) // nil unless a trace is told
}

func (t *turn) say(parts ...string) {
	if t.said != nil {
		t.said(strings.Join(parts, ""))
	}
}

func (t *turn) spend(b budget) { t.w.left[b]-- }

func (t *turn) has(b budget) bool { return t.w.left[b] > 0 }

// offer notes which outcomes are open, by budget.
func (t *turn) offer(os ...outcome) {
	for _, o := range os {
		ok := false
		switch o {
		case oFail, oLost:
			ok = t.has(bLost)
		case oLate:
			ok = t.has(bLate)
		case oCrash:
			ok = t.has(bCrash)
		case oLateCrash:
			ok = t.has(bCrash) && t.has(bLate)
		case oRefuse, oWrong, oWrongTaken, oErrorID:
			ok = t.has(bWrong)
		}
		if ok {
			t.open |= 1 << o
		}
	}
}

// pay takes the outcome's price out of the budgets.
func (t *turn) pay() {
	switch t.want {
	case oFail, oLost:
		t.spend(bLost)
	case oLate:
		t.spend(bLate)
	case oCrash:
		t.spend(bCrash)
	case oLateCrash:
		t.spend(bCrash)
		t.spend(bLate)
	case oRefuse, oWrong, oWrongTaken, oErrorID:
		t.spend(bWrong)
	}
	t.crashed = t.want == oCrash || t.want == oLateCrash
}

func (t *turn) freshRev() string {
	t.revs++
	return revOf[t.revs]
}

func (t *turn) mint() provision.Nonce {
	t.nonces++
	return nonceOf[t.nonces]
}

func (t *turn) mintID() uint8 {
	t.ids = t.w.freshID(t.ids)
	return t.ids
}

// Load is the door's read: from the API, or from caches that may lag.
func (t *turn) Load(_ context.Context, _ provision.Name, live bool) (provision.Record, error) {
	t.door, t.open = true, 1<<oFine
	t.reading = live
	a := &t.w.actor[t.me]
	obj, intent := t.w.obj, t.w.intent
	stale := a.snap.kind != noSnap && a.snap.kind != intentSnap && (t.want == oStaleBoth || t.want == oStaleObj || a.snap.kind == objectSnap)
	a.past = a.past && stale
	switch a.snap.kind {
	case objectSnap:
		obj, a.snap = a.snap.obj, snap{}
		t.say("reads the object as it was a moment ago, and the Intent as it is (live, two requests)")
		return t.c.view(obj, intent, t.w.old), nil
	case intentSnap:
		intent, a.snap = a.snap.intent, snap{}
		t.say("reads the Intent as it was a moment ago, and the object as it is (live, two requests)")
		return t.c.view(obj, intent, t.w.old), nil
	case cacheSnap:
		if live {
			break
		}
		if a.snap.obj != obj {
			t.open |= 1 << oStaleObj
		}
		if a.snap.intent != intent {
			t.open |= 1 << oStaleIntent
		}
		if t.open == 1<<oFine|1<<oStaleObj|1<<oStaleIntent {
			t.open |= 1 << oStaleBoth
		}
		switch t.want {
		case oStaleBoth:
			t.say("reads its cache, which lags: object and Intent are old")
			return t.c.view(a.snap.obj, a.snap.intent, false), nil
		case oStaleObj:
			a.snap.intent = intent
			t.say("reads its cache, which lags: the object is old")
			return t.c.view(a.snap.obj, intent, t.w.old), nil
		case oStaleIntent:
			a.snap.obj = obj
			t.say("reads its cache, which lags: the Intent is old")
			return t.c.view(obj, a.snap.intent, false), nil
		}
		a.snap = snap{}
	}
	if live {
		t.say("reads object and Intent, live")
	} else {
		t.say("reads its cache, which is up to date")
	}
	return t.c.view(obj, intent, t.w.old), nil
}

func (t *turn) Save(_ context.Context, r provision.Record) (string, error) {
	t.door, t.open = true, 1<<oFine
	switch {
	case r.Rev != "" && t.w.intent.Rev == "":
		t.say("writes the Intent: it is gone")
		return "", provision.ErrGone
	case r.Rev != t.w.intent.Rev:
		t.say("writes the Intent: conflict")
		return "", provision.ErrStale
	}
	t.offer(oFail, oLost, oCrash)
	if !t.w.wr.on {
		t.offer(oLate, oLateCrash)
	}
	t.pay()
	switch t.want {
	case oFail:
		t.say("writes the Intent (", t.told(r), "): the API does not answer and has not written")
		return "", errUnheard
	case oLate, oLateCrash:
		t.w.wr = write{true, stored(r)}
		t.say("writes the Intent (", t.told(r), "): no answer, the write is still on its way", t.died())
		return "", errUnheard
	}
	rev := t.freshRev()
	if t.w.intent.Phase != r.Phase {
		t.w.old = false
	}
	t.w.intent = stored(r)
	t.w.intent.Rev = rev
	if t.want != oFine {
		t.say("writes the Intent (", t.told(r), "): written, the reply is lost", t.died())
		return "", errUnheard
	}
	if a := &t.w.actor[t.me]; a.snap.kind == cacheSnap {
		a.snap.intent = t.w.intent // never older than what this process has written
	}
	t.say("writes the Intent: ", t.told(r))
	return rev, nil
}

func (t *turn) died() string {
	if t.crashed {
		return "; the process dies"
	}
	return ""
}

func (t *turn) Owner(context.Context, provision.Record) (provision.Goal, error) {
	t.door, t.open = true, 1<<oFine
	t.say("asks once more, live, whether the object is still there and wanted")
	return t.w.obj.goal(), nil
}

func (t *turn) Serve(_ context.Context, r provision.Record) error {
	t.door, t.open = true, 1<<oFine
	a, o := &t.w.actor[t.me], &t.w.obj
	id := num(r.ID)
	switch {
	case !o.here, a.past:
		t.say("writes status: the object is gone")
		return provision.ErrGone
	case o.shown != 0 && o.shown != id:
		t.say("writes status: the API refuses another id")
		return provision.ErrRefused
	case t.c.access && a.pay != id && (o.shown != id || o.secret == noSecret):
		t.say("has no credentials to put into the Secret")
		return provision.ErrLost
	}
	t.offer(oFail, oLost, oCrash)
	t.pay()
	if t.want == oFail {
		t.say("writes Secret and status: no answer, not written")
		return errUnheard
	}
	o.shown = id
	if t.c.access && a.pay == id {
		o.secret = goodSecret
		if a.payDead {
			o.secret = deadSecret
		}
	}
	if t.want != oFine {
		t.say("writes Secret and status: written, the reply is lost", t.died())
		return errUnheard
	}
	a.pay, a.payDead = 0, false // the credentials are where they belong
	t.say("writes Secret and status: the user may use ", t.shown(id))
	return nil
}

func (t *turn) Free(context.Context, provision.Record) error {
	t.door, t.open = true, 1<<oFine
	if !t.w.obj.here || !t.w.obj.fin && !t.w.obj.up || t.w.actor[t.me].past {
		return nil
	}
	t.offer(oFail, oLost, oCrash)
	t.pay()
	if t.want == oFail {
		t.say("takes the finalizer off: no answer, not written")
		return errUnheard
	}
	t.w.free()
	if t.want != oFine {
		t.say("takes the finalizer off: done, the reply is lost", t.died())
		return errUnheard
	}
	t.say("takes the finalizer off")
	return nil
}

// free takes the finalizers off; what is being deleted is then gone.
func (w *world) free() {
	w.obj.fin, w.obj.up = false, false
	if w.obj.deleting {
		w.obj = object{}
		w.early = false
	}
}

func (t *turn) Drop(_ context.Context, r provision.Record) error {
	t.door, t.open = true, 1<<oFine
	switch {
	case t.w.intent.Rev == "":
		return provision.ErrGone
	case r.Rev != t.w.intent.Rev:
		t.say("drops the Intent: conflict")
		return provision.ErrStale
	}
	t.offer(oFail, oLost, oCrash)
	t.pay()
	if t.want == oFail {
		t.say("drops the Intent: no answer, not dropped")
		return errUnheard
	}
	t.w.intent, t.w.old = provision.Record{}, false
	if t.want != oFine {
		t.say("drops the Intent: dropped, the reply is lost", t.died())
		return errUnheard
	}
	t.say("drops the Intent")
	return nil
}
