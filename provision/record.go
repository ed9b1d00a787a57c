package provision

import (
	"slices"
	"strings"
)

// Name is the idempotency key of one resource. For COSI it is "bc-" or "ba-" and the UID of the claim or access that
// asked (KEP-1979); it is never used for two different resources.
type Name string

// Nonce names one attempt to create. It is minted anew for every attempt and never used twice.
type Nonce string

// Goal is what the API object asks for at the moment it is read. It is never stored.
type Goal uint8

const (
	// GoalGone: there is no API object of this name (or only one with another UID).
	GoalGone Goal = iota
	// GoalWant: the object exists and is not being deleted.
	GoalWant
	// GoalDelete: the object is being deleted and its policy says that the resource goes with it.
	GoalDelete
	// GoalKeep: the object is being deleted and its policy says that the resource stays.
	GoalKeep
)

// Phase is how far a record has come. It is stored.
type Phase uint8

const (
	// PhaseNone: there is no record. Nothing was called under this name by anyone who keeps the protocol.
	PhaseNone Phase = iota
	// PhaseMaking: the record is durable, a create may have been called; nothing was shown to a user.
	PhaseMaking
	// PhaseLive: a create of Record.ID was answered OK. It may have been shown to a user, so it is never deleted
	// because its object is merely absent.
	PhaseLive
	// PhaseDeleting: deletion was asked for and is durable. No create may be called to keep its result from here on.
	PhaseDeleting
	// PhaseReleased: a tombstone. The name is spent, what arrives late under it is deleted by the sweep.
	PhaseReleased
	// PhaseSweeping: a tombstone whose sweep is about to delete by name. The name takes no new intent meanwhile.
	PhaseSweeping
	// PhaseRetained: the object was deleted with policy Retain; the resource stays and this says so. Never deleted.
	PhaseRetained
)

// Origin says who made the resource.
type Origin uint8

const (
	// OriginCreated: made under this record.
	OriginCreated Origin = iota
	// OriginStatic: made elsewhere and bound by an admin, by id. Deleted only on the admin's word, and only by that id.
	OriginStatic
	// OriginAdopted: found on an object that carries a finalizer (another orchestrator's, or ours from a backup) but
	// has no record: intended, and in doubt.
	OriginAdopted
)

// Word is an admin's decision on a record that has stopped (custody intents resolve). It is stored until acted on.
type Word uint8

const (
	WordNone Word = iota
	// WordDelete: the owner is gone for good, or the id is ours after all: go on and delete.
	WordDelete
	// WordRelease: an admin has looked, nothing of ours is left: stop looking and release.
	WordRelease
	// WordRetry: an admin has looked, nothing was made: create again without a look.
	WordRetry
)

// Hold says why nobody here may act on a record.
type Hold uint8

const (
	HoldNone Hold = iota
	// HoldFormat: the record is of a newer format.
	HoldFormat
	// HoldCluster: the record belongs to another cluster (a restored backup).
	HoldCluster
	// HoldOwner: the record belongs to another object of the same name.
	HoldOwner
	// HoldDriver: the record belongs to another driver.
	HoldDriver
)

// Record is all that is known of one name: what its API object asks (read at each Load, never stored) and what its
// Intent keeps. It is comparable, so that an explorer can hold it in a state.
type Record struct {
	Name Name

	// Read from the API object.
	Goal   Goal
	Bound  bool   // a finalizer of ours or of another COSI controller is on the object
	Other  bool   // the finalizer is another controller's: it may have called the driver
	Static bool   // the object names a resource that exists already: Given
	Given  string // that id, or the id another orchestrator has put into the object's status
	Shown  string // the id in the object's status, where it can't be changed any more

	// Kept in the Intent.
	Phase   Phase
	Origin  Origin
	ID      string // the id that serves
	Strays  string // further ids, see IDs; each is to be deleted
	Attempt Nonce  // the attempt that is open, if any
	Doubt   bool   // some attempt was never heard of: never cleared
	Proven  bool   // the name holds the owner's UID, nothing else may create it: looks by name are allowed
	Missed  bool   // an attempt was answered, but not with success: a look is due before release, though no wait
	Linger  bool   // a delete of another incarnation may be in flight: release leaves a tombstone
	Word    Word

	// Worked out when the Intent is read.
	Hold    Hold
	Shared  bool // another Intent holds one of these ids
	Expired bool // a tombstone that has been kept long enough

	Rev string // the Intent's version; "" where there is none
}

// IDs gives every id that the record holds, the serving one first.
func (r Record) IDs() []string {
	var ids []string
	if r.ID != "" {
		ids = append(ids, r.ID)
	}
	return append(ids, split(r.Strays)...)
}

// Open tells whether a create of this name may still land: nothing but time and a look can tell.
func (r Record) Open() bool { return r.Doubt || r.Attempt != "" }

// Holds tells whether the record knows the id.
func (r Record) Holds(id string) bool { return id != "" && (r.ID == id || has(r.Strays, id)) }

// sep keeps ids apart in a set. A driver may answer it within an id, such as one that a script has left a line end on:
// taken apart there, it would be two ids, neither of them the one to delete, and perhaps one of somebody else's.
const (
	sep    = "\n"
	escape = `\`
	sepIn  = escape + "n"
)

// JoinIDs makes the form that Record.Strays has out of ids: sorted, each once.
func JoinIDs(ids ...string) string {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i, id := range ids {
		if strings.ContainsAny(id, sep+escape) {
			ids[i] = strings.NewReplacer(escape, escape+escape, sep, sepIn).Replace(id)
		}
	}
	return strings.Join(ids, sep)
}

// SplitIDs is the inverse of JoinIDs.
func SplitIDs(set string) []string { return split(set) }

func split(set string) []string {
	if set == "" {
		return nil
	}
	ids := strings.Split(set, sep)
	for i, id := range ids {
		if strings.Contains(id, escape) {
			ids[i] = strings.NewReplacer(escape+escape, escape, sepIn, sep).Replace(id)
		}
	}
	return ids
}

func has(set, id string) bool { return set != "" && slices.Contains(split(set), id) }

func with(set, id string) string { return JoinIDs(append(split(set), id)...) }

func without(set, id string) string {
	return JoinIDs(slices.DeleteFunc(split(set), func(s string) bool { return s == id })...)
}
