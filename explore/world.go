package explore

import "github.com/custody-storage/custody/provision"

// The world is what is outside an orchestrator, for one name. Everything in it is a small number, so that a state is a
// few bytes; the strings that the protocol sees are looked up.

const (
	now    = 64 // the clock never moves: a tick makes all that is remembered one older
	theID  = 1  // the id that follows from the name, or that was given
	maxIDs = 11
)

// object is the API object: a Bucket, a BucketAccess, or a CSI volume as a guard sees it.
type object struct {
	here     bool
	deleting bool
	keep     bool  // its policy says Retain
	fin      bool  // our finalizer
	up       bool  // upstream's finalizer, without ours
	static   bool  // binds what exists: theID
	shown    uint8 // the id in its status
	secret   uint8 // for accounts: none, good, or of an account that is gone
}

const (
	noSecret uint8 = iota
	goodSecret
	deadSecret
)

func (o object) goal() provision.Goal {
	switch {
	case !o.here:
		return provision.GoalGone
	case !o.deleting:
		return provision.GoalWant
	case o.keep:
		return provision.GoalKeep
	}
	return provision.GoalDelete
}

// thing is a bucket or an account in the backend.
type thing struct {
	id      uint8
	foreign bool // not ours, and of the same name
	given   bool // made by an admin, bound statically
	half    bool // state that Generate has made
	twice   bool // the same account with a second live key
}

// call is a call to the driver, or a write to the API, that nobody waits for any more but that may still land.
type call struct {
	op provision.Op
	id uint8
}

// snap is what a cache holds while it lags, or what a read in two parts has read first.
type snap struct {
	kind   uint8
	obj    object
	intent provision.Record
}

const (
	noSnap     uint8 = iota
	cacheSnap        // informers that lag
	objectSnap       // a live read whose object part is done
	intentSnap       // a live read whose Intent part is done
)

// actor is one incarnation.
type actor struct {
	on   bool
	memo provision.Memo
	base memory // of a baseline protocol
	// The credentials that only this process has.
	pay     uint8
	payDead bool
	snap    snap
	past    bool // the object that it has read is gone, another has its name
}

// write is a Save whose caller has given up.
type write struct {
	on  bool
	rec provision.Record
}

// world is one state.
type world struct {
	obj     object
	flipped bool // the policy was changed during the deletion: which delete comes first is a race of the user's own
	news    bool // the object was made again: an event that the leader has not seen
	early   bool // the object was being deleted with Retain from the beginning
	intent  provision.Record
	old     bool     // the tombstone has been kept long enough
	actor   [2]actor // the leader, and one that has lost the lead and does not know it
	puff    uint8    // how many more requests the latter makes
	fly     [2]call
	wr      write
	things  [4]thing
	left    [budgets]uint8
}

// budget is a kind of event of which a search allows so many.
type budget uint8

const (
	bCrash  budget = iota // an incarnation dies
	bLost                 // a reply is lost, whether or not the request took effect
	bLate                 // a call lands after its caller has given up
	bWrong                // a refusal; or a final code though the thing was made
	bStale                // a cache lags
	bTorn                 // the world changes between the two requests of a read
	bOver                 // another incarnation takes the lead while this one goes on
	bDelete               // the user deletes
	bFlip                 // the user changes the policy of an object that is being deleted
	bForce                // the user takes the finalizers away
	bAgain                // the object is made again
	bWord                 // an admin decides
	bVanish               // an admin removes a thing in the backend
	budgets
)

var budgetNames = [budgets]string{"crash", "lost", "late", "wrong", "stale", "torn", "over", "delete", "flip", "force", "again", "word", "vanish"}

// Strings by number: no state may cost an allocation.
var (
	idOf    = [maxIDs + 1]string{"", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
	nonceOf = [16]provision.Nonce{"", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"}
	revOf   = [16]string{"", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"}
	setOf   = func() (s [1 << maxIDs]string) {
		for mask := range s {
			var ids []string
			for i := range maxIDs {
				if mask>>i&1 == 1 {
					ids = append(ids, idOf[i+1])
				}
			}
			s[mask] = provision.JoinIDs(ids...)
		}
		return s
	}()
)

const theName provision.Name = "n"

func num[S ~string](s S) uint8 {
	if s == "" {
		return 0
	}
	return s[0] - 'a' + 1
}

func maskOf(set string) (m uint16) {
	for i := 0; i < len(set); i += 2 { // one letter, one separator
		m |= 1 << (set[i] - 'a')
	}
	return m
}

// find gives the place of the thing with this id, or -1.
func (w *world) find(id uint8) int {
	if id != 0 {
		for i := range w.things {
			if w.things[i].id == id {
				return i
			}
		}
	}
	return -1
}

// own gives the place of a thing that was made under our name and whose id is not among those given, or -1.
func (w *world) own(except uint16) int {
	for i, t := range w.things {
		if t.id != 0 && !t.foreign && !t.given && except>>(t.id-1)&1 == 0 {
			return i
		}
	}
	return -1
}

func (w *world) owned() (n int) {
	for _, t := range w.things {
		if t.id != 0 && !t.foreign && !t.given {
			n++
		}
	}
	return n
}

func (w *world) put(t thing) bool {
	for i := range w.things {
		if w.things[i].id == 0 {
			w.things[i] = t
			return true
		}
	}
	return false
}

// freshID gives an id that was never used.
func (w *world) freshID(ids uint8) uint8 { return max(ids, theID) + 1 }

// view is the record as a live read gives it.
func (c *class) view(o object, r provision.Record, old bool) provision.Record {
	r.Name = theName
	r.Goal = o.goal()
	r.Bound, r.Other = o.fin || o.up, o.up && !o.fin
	r.Static = o.static
	r.Shown = idOf[o.shown]
	if o.static {
		r.Given = idOf[theID]
	} else if r.Rev == "" {
		r.Given = idOf[o.shown]
	}
	if r.Rev == "" {
		r.Proven = c.proven
	}
	r.Expired = old && r.Phase == provision.PhaseReleased
	return r
}

// stored strips what is never stored.
func stored(r provision.Record) provision.Record {
	r.Name = ""
	r.Goal, r.Bound, r.Other, r.Static, r.Given, r.Shown = 0, false, false, false, "", ""
	r.Hold, r.Shared, r.Expired = 0, false, false
	return r
}
