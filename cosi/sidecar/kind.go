package sidecar

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/provision"
)

// kind is in what Buckets and BucketAccesses differ.
type kind interface {
	// intents is the kind that Intents name, calls the one that the driver's Recovery service names.
	intents() v1alpha1.Kind
	calls() wire.Kind

	// find reads the API object of a name; nil if there is none that is ours. The Intent, if any, says where it was.
	find(ctx context.Context, r client.Reader, name provision.Name, intent *v1alpha1.Intent) (client.Object, error)
	// view reads out of an object what it asks for. It asks the API server, live, for what an answer must not be old
	// for.
	view(ctx context.Context, o client.Object) (view, error)
	// admit says why the driver must not be asked for anything for this object, before anything was. It asks live
	// before it refuses.
	admit(ctx context.Context, o client.Object) (note, error)
	// serve brings what users see up to the record.
	serve(ctx context.Context, e *entry, r provision.Record) error
	// shown gives what the object's status has of readyToUse and of error.
	shown(o client.Object) (ready *bool, err *cosi.TimestampedError)
	// blank makes an empty object to read or patch into.
	blank(key client.ObjectKey) client.Object
	// beforeDelete does what must be over before the driver deletes.
	beforeDelete(ctx context.Context, e *entry) error

	generate(ctx context.Context, name string, in v1alpha1.Inputs) (id string, err error)
	create(ctx context.Context, name, id string, in v1alpha1.Inputs) (payload, error)
	fetch(ctx context.Context, id string, in v1alpha1.Inputs) (payload, error)
	remove(ctx context.Context, id string, in v1alpha1.Inputs) error
	// ways is what of provision.Ways holds for the kind whatever the driver.
	ways(d wire.Info) provision.Ways
}

// view is an API object as the adapter sees it.
type view struct {
	goal   provision.Goal
	note   note // why the goal is not what the user sees
	static bool
	given  string // the id of a static object, or the one in the status
	shown  string // the id in the status
	proven bool   // the name holds the UID of who asked for it
	owner  v1alpha1.Owner
	inputs v1alpha1.Inputs
}

// payload is what a driver answered besides the id.
type payload struct {
	id    string
	info  map[string]string // by the keys of status.bucketInfo; no credentials
	grant *wire.Grant       // an access: with credentials, never stored but in its Secrets
}

// note is one thing to say: a reason word and a text for people.
type note struct{ word, text string }

func (n note) empty() bool { return n.word == "" }

// entry is what this process knows of one name, beside the Intent and the object. It is used by one worker at a time.
type entry struct {
	name provision.Name
	memo provision.Memo
	busy bool // a worker is at it, or has panicked

	object  client.Object    // as last read or written; nil: none
	view    view             // of object
	intent  *v1alpha1.Intent // as last read or written; nil: none
	owner   v1alpha1.Owner   // the object's, else the Intent's
	inputs  v1alpha1.Inputs  // the Intent's, else the object's; kept when both are gone
	payload payload

	hold    note   // why the record is not to be acted on, as last read
	refusal note   // why something can't be written or served
	answer  string // what the driver, or the API server, said last of what failed
	down    bool   // the last call was never sent
	wiped   bool   // beforeDelete is over
	served  versions
	told    note   // last said in an event
	other   string // another program that writes the status
	toldOf  string // the same, as last said in an event
	since   time.Time
}

// rest lets go of what is read anew, or stands in the Intent, when the name comes up again: there may be thousands.
func (e *entry) rest() {
	e.object, e.view, e.intent, e.owner, e.inputs, e.payload = nil, view{}, nil, v1alpha1.Owner{}, v1alpha1.Inputs{}, payload{}
	e.answer, e.down = "", false
}

// versions are those of an object and its Intent.
type versions struct{ object, intent string }

func (e *entry) versions() versions {
	var v versions
	if e.object != nil {
		v.object = e.object.GetResourceVersion()
	}
	if e.intent != nil {
		v.intent = e.intent.ResourceVersion
	}
	return v
}

// entries are those of one kind.
type entries struct {
	mu    sync.Mutex
	all   map[provision.Name]*entry
	state map[provision.Name]state
	where map[types.UID]client.ObjectKey // of namespaced objects, from events
}

// state is what metrics count.
type state struct {
	phase                 string
	doubt, stuck, overdue bool
}

func newEntries() *entries {
	return &entries{all: map[provision.Name]*entry{}, state: map[provision.Name]state{}, where: map[types.UID]client.ObjectKey{}}
}

// get gives the entry of a name, made if need be.
func (s *entries) get(name provision.Name, lead func() time.Duration) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[name]
	if e == nil {
		e = &entry{name: name, memo: provision.Begin(name, lead())}
		s.all[name] = e
	}
	return e
}

// known tells whether there is an entry of a name.
func (s *entries) known(name provision.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[name] != nil
}

func (s *entries) drop(name provision.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
	delete(s.state, name)
}

func (s *entries) note(name provision.Name, st state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[name] = st
}

func (s *entries) states() []state {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]state, 0, len(s.state))
	for _, st := range s.state {
		all = append(all, st)
	}
	return all
}

// place keeps where the object of a UID is; remove forgets it.
func (s *entries) place(uid types.UID, key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.where[uid] = key
}

func (s *entries) displace(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.where, uid)
}

func (s *entries) placed(uid types.UID) (client.ObjectKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, ok := s.where[uid]
	return key, ok
}
