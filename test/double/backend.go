package double

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is what a thing in the backend is.
type Kind string

const (
	Bucket  Kind = "bucket"
	Account Kind = "account"
)

// Thing is a bucket or an account that exists.
type Thing struct {
	Kind Kind
	ID   string
	// Name is the name it was asked for by. A two-phase driver is told none at the
	// create; there it is what the id was generated for.
	Name string
	// Driver made it.
	Driver string
	// Nonce tells this thing from one that had the same id before it.
	Nonce int
	// Keys are the live secret keys of an account, the newest last.
	Keys []string
	// Data is what a test has put into a bucket.
	Data map[string]string
}

// Event is one change of the backend.
type Event struct {
	At    time.Time
	What  string // "made", "key added", "deleted"
	Kind  Kind
	ID    string
	Name  string
	Nonce int
	Late  bool // done after the call had been answered
}

func (e Event) String() string {
	late := ""
	if e.Late {
		late = " late"
	}
	return fmt.Sprintf("%s %s%s %s %q (name %q, nonce %d)", e.At.Format("15:04:05.000"), e.What, late, e.Kind, e.ID, e.Name, e.Nonce)
}

// Status is how the backend answers to work.
type Status string

const (
	Done   Status = "done"
	Exists Status = "exists" // a create met one of the same name
	Absent Status = "absent" // there is none
	Full   Status = "not empty"
)

// Request is work for the backend.
type Request struct {
	Op     Op
	Kind   Kind
	Name   string
	ID     string // of a delete or get; of a create, the generated id
	Region string
	// LateBy has the work done after that time; the answer comes at once and is empty.
	LateBy time.Duration
}

// Result is what came of it.
type Result struct {
	Status Status
	Things []Thing
}

// Storage is what a driver needs of the backend.
type Storage interface {
	// Setup tells which driver this is. Asked once, at the driver's start.
	Setup() (Config, error)
	// Plan says what befalls a call.
	Plan(op Op) (Plan, error)
	Do(r Request) (Result, error)
}

// Backend is the storage of one driver. Its methods may be called from any
// goroutine.
type Backend struct {
	config Config

	mu      sync.Mutex
	dice    *rand.Rand
	calm    bool
	next    int
	things  map[string]*Thing // by kind and id
	log     []Event
	faults  map[string]int
	calls   map[Op]int
	pending int // late work that is not done yet
	gate    func(Op) Plan
}

// NewBackend makes an empty storage for the driver that the config describes.
// The seed decides which call meets which fault.
func NewBackend(c Config, seed uint64) (*Backend, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Backend{
		config: c, dice: rand.New(rand.NewPCG(seed, 1)),
		things: map[string]*Thing{}, faults: map[string]int{}, calls: map[Op]int{},
	}, nil
}

// Setup implements Storage.
func (b *Backend) Setup() (Config, error) { return b.config, nil }

// Plan implements Storage.
func (b *Backend) Plan(op Op) (Plan, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[op]++
	var p Plan
	switch {
	case b.gate != nil:
		p = b.gate(op)
	case b.calm:
		p = Plan{Before: b.config.Faults.Delay}
	default:
		p = b.config.Faults.plan(b.dice, op)
	}
	if p.Work == "" {
		p.Work = Now
	}
	if p.Fault != "" {
		b.faults[p.Fault]++
	}
	return p, nil
}

// Script has f decide what befalls each call from now on, instead of the dice.
// With nil the dice are back. f must not call the Backend.
func (b *Backend) Script(f func(Op) Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = f
}

// Calm ends the faults of the dice.
func (b *Backend) Calm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// Do implements Storage.
func (b *Backend) Do(r Request) (Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.LateBy > 0 {
		b.pending++
		time.AfterFunc(r.LateBy, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.pending--
			b.work(r, true)
		})
		return Result{}, nil
	}
	return b.work(r, false), nil
}

func (b *Backend) work(r Request, late bool) Result {
	switch r.Op {
	case Generate:
		return Result{Done, []Thing{{Kind: r.Kind, ID: b.generate(r), Name: r.Name}}}
	case Create:
		return b.create(r, late)
	case Get:
		if t := b.things[key(r.Kind, r.ID)]; t != nil {
			return Result{Done, []Thing{t.clone()}}
		}
		return Result{Status: Absent}
	case Delete:
		t := b.things[key(r.Kind, r.ID)]
		if t == nil {
			return Result{Status: Absent}
		}
		return b.remove([]*Thing{t}, late)
	case DeleteByName:
		return b.remove(b.named(r.Kind, r.Name), late)
	case Find:
		return Result{Done, clones(b.named(r.Kind, r.Name))}
	case List:
		return Result{Done, b.list(r.Kind)}
	}
	return Result{Status: Absent}
}

// generate makes up an id that holds the name, so that the name is known once the
// thing exists: the create is told the id only.
func (b *Backend) generate(r Request) string {
	trait := b.config.trait(r.Kind)
	switch {
	case trait.IDs == ByName:
		return r.Name
	case trait.IDs == ByRegion:
		return r.Region + "/" + r.Name
	case trait.Repeat == Anew:
		return fmt.Sprintf("%s.%08x", r.Name, b.dice.Uint32())
	}
	sum := fnv.New32a()
	sum.Write([]byte(r.Name))
	return fmt.Sprintf("%s.%08x", r.Name, sum.Sum32())
}

// nameInID is the name that an id was generated for.
func nameInID(id string) string {
	if _, after, found := strings.Cut(id, "/"); found {
		id = after
	}
	name, _, _ := strings.Cut(id, ".")
	return name
}

func (b *Backend) create(r Request, late bool) Result {
	trait := b.config.trait(r.Kind)
	id := r.ID
	switch {
	case id != "": // generated
	case trait.IDs == ByName:
		id = r.Name
	case trait.IDs == ByRegion:
		id = r.Region + "/" + r.Name
	}
	var old *Thing
	if id != "" {
		old = b.things[key(r.Kind, id)]
	} else if named := b.named(r.Kind, r.Name); len(named) > 0 && trait.Repeat != Anew {
		old = named[0]
	}
	switch {
	case old != nil && (old.Driver != b.config.Name || trait.Repeat == Taken):
		return Result{Status: Exists}
	case old != nil && trait.Repeat == Anew && r.Kind == Account:
		old.Keys = append(old.Keys, b.secret())
		b.note("key added", old, late)
		return Result{Done, []Thing{old.clone()}}
	case old != nil:
		return Result{Done, []Thing{old.clone()}}
	}
	b.next++
	if id == "" {
		id = fmt.Sprintf("%s-%08x", r.Kind, b.dice.Uint32())
	}
	t := &Thing{Kind: r.Kind, ID: id, Name: r.Name, Driver: b.config.Name, Nonce: b.next, Data: map[string]string{}}
	if r.Kind == Account {
		t.Keys = []string{b.secret()}
	}
	b.things[key(r.Kind, id)] = t
	b.note("made", t, late)
	return Result{Done, []Thing{t.clone()}}
}

func (b *Backend) remove(all []*Thing, late bool) Result {
	for _, t := range all {
		if t.Driver != b.config.Name && b.config.trait(t.Kind).Offers.OwnerMark {
			continue // not ours: not touched
		}
		if len(t.Data) > 0 && b.config.KeepFull {
			return Result{Status: Full}
		}
		delete(b.things, key(t.Kind, t.ID))
		b.note("deleted", t, late)
	}
	return Result{Status: Done}
}

func (b *Backend) named(kind Kind, name string) []*Thing {
	var found []*Thing
	for _, t := range b.things {
		if t.Kind == kind && t.Name == name {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(x, y *Thing) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return found
}

func (b *Backend) list(kind Kind) []Thing {
	var found []*Thing
	for _, t := range b.things {
		if t.Kind == kind {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(x, y *Thing) int { return cmp.Compare(x.Nonce, y.Nonce) })
	return clones(found)
}

func (b *Backend) note(what string, t *Thing, late bool) {
	b.log = append(b.log, Event{At: time.Now(), What: what, Kind: t.Kind, ID: t.ID, Name: t.Name, Nonce: t.Nonce, Late: late})
}

func (b *Backend) secret() string { return fmt.Sprintf("key-%d-%016x", b.next, b.dice.Uint64()) }

// Things lists what exists, oldest first.
func (b *Backend) Things(kind Kind) []Thing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list(kind)
}

// Thing gives the thing with this id.
func (b *Backend) Thing(kind Kind, id string) (Thing, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.things[key(kind, id)]; t != nil {
		return t.clone(), true
	}
	return Thing{}, false
}

// Plant puts a thing there that the driver did not make.
func (b *Backend) Plant(kind Kind, id, name, owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	t := &Thing{Kind: kind, ID: id, Name: name, Driver: owner, Nonce: b.next, Data: map[string]string{}}
	b.things[key(kind, id)] = t
	b.note("made", t, false)
}

// Put writes an object into a bucket, as one of its users does.
func (b *Backend) Put(id, object, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.things[key(Bucket, id)]
	if t == nil {
		return fmt.Errorf("double: no bucket %q", id)
	}
	t.Data[object] = text
	return nil
}

// Log gives all that has changed, in order.
func (b *Backend) Log() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// Faults counts what has befallen calls, by fault.
func (b *Backend) Faults() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.faults)
}

// Calls counts the calls that the driver got, by op.
func (b *Backend) Calls() map[Op]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.calls)
}

// Pending is how much late work is not done yet.
func (b *Backend) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending
}

// Name is the driver's.
func (b *Backend) Name() string { return b.config.Name }

func (c Config) trait(k Kind) Trait {
	if k == Account {
		return c.Accounts
	}
	return c.Buckets
}

func (t *Thing) clone() Thing {
	c := *t
	c.Keys, c.Data = slices.Clone(t.Keys), maps.Clone(t.Data)
	return c
}

func clones(all []*Thing) []Thing {
	var out []Thing
	for _, t := range all {
		out = append(out, t.clone())
	}
	return out
}

func key(kind Kind, id string) string { return string(kind) + " " + id }
