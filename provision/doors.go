package provision

import (
	"context"
	"errors"
)

// What a Store may answer, other than success. Every other error means that the outcome is not known: the engine loads
// again, live, and never assumes either way.
var (
	// ErrStale: the record has another version, or exists already where it was to be created. Nothing was written.
	ErrStale = errors.New("the record has changed since it was read")
	// ErrGone: the record (Save, Drop) or the API object (Serve) does not exist any more. Nothing was written.
	ErrGone = errors.New("the object is gone")
	// ErrRefused: the API refuses the content for good: validation, permission, a Secret name that is taken.
	ErrRefused = errors.New("the API refuses this")
	// ErrLost: what is to be served (credentials) is not at hand any more and must be asked of the driver again.
	ErrLost = errors.New("the payload is lost")
)

// Store is the door to the API. Each method that carries safety is one API request; deadlines are the store's own.
type Store interface {
	// Load reads object and Intent. With live it asks the API server and nothing in between; without, a cache may
	// answer, but never with something older than what this process has written itself.
	Load(ctx context.Context, name Name, live bool) (Record, error)
	// Save writes the Intent: create-only where r.Rev is "", else a compare-and-swap on r.Rev. It answers the new
	// version. What it has answered is durable.
	Save(ctx context.Context, r Record) (rev string, err error)
	// Owner reads the API object, live, and says what it asks for.
	Owner(ctx context.Context, r Record) (Goal, error)
	// Serve brings what users see up to the record: status, Secrets. It is idempotent, and no orphan comes of it. It
	// writes to the object that the last Load has read (by its UID), never to another that has taken the name, and
	// credentials that this process has put into a Secret once it does not put over others again.
	Serve(ctx context.Context, r Record) error
	// Free takes the finalizers off the API object that the last Load has read. The record stays. No object, another
	// one of that name, or no finalizer: nil.
	Free(ctx context.Context, r Record) error
	// Drop removes the Intent if it still has version r.Rev.
	Drop(ctx context.Context, r Record) error
}

// Op is a call to the driver.
type Op uint8

const (
	// Generate asks for the id that a create of this name will use. It may make state in the backend.
	Generate Op = iota + 1
	// Create makes the resource, under Call.ID where one was generated.
	Create
	// Fetch reads the resource with Call.ID, for what users need to know of it.
	Fetch
	// Find looks for a resource of this name other than the ids in Call.ID (as joined by JoinIDs). OK without an id:
	// there is none.
	Find
	// Derive works out the id from the admin's template; it does not leave the process.
	Derive
	// Delete deletes the resource with Call.ID. OK: it does not exist.
	Delete
	// DeleteByName deletes whatever has this name. OK: nothing has, and no create that the driver's process received
	// before may still land.
	DeleteByName
)

// Call is one call to the driver.
type Call struct {
	Op   Op
	Name Name
	ID   string
}

// Answer is what came back: a code, and an id wherever one was seen, in an answer or in an error's details.
type Answer struct {
	Code Code
	ID   string
}

// Ways is what a driver can do for one kind of resource, found out by asking it and by what the admin declared.
type Ways struct {
	Generate     bool // ids are known before the create (two phases)
	DeleteByName bool
	FindByName   bool
	Template     bool // the id follows from name and parameters: Derive answers it
	Repeat       bool // a create that is repeated is known to answer the same id
	Fetch        bool
	Mark         bool // Find and DeleteByName touch only what carries our owner mark: as good as Record.Proven
	Remake       bool // holds no data (credentials): may be deleted and made anew while it is still wanted
}

// Backend is the door to the driver.
type Backend interface {
	// Ways must not leave the process and must answer the same until the driver is dialled anew.
	Ways() Ways
	// Do makes one call and owns its deadline. A call that ran into it is answered DeadlineExceeded.
	Do(ctx context.Context, c Call) Answer
}
