package double

import (
	"fmt"
	"time"

	"github.com/custody-storage/custody/cosi/wire"
)

// Dialect is the interface that the driver speaks.
type Dialect string

const (
	V1alpha1 Dialect = "v1alpha1"
	OnePhase Dialect = "v1alpha2"
	TwoPhase Dialect = "v1alpha2-two-phase" // asks for the id first
)

// IDs says how an id comes about.
type IDs string

const (
	// ByName: the id is the name (Ceph, Scality, NooBaa).
	ByName IDs = "name"
	// ByRegion: the id is "region/name", with the region from parameters (Linode).
	ByRegion IDs = "region"
	// Assigned: the server makes up an id that nobody can guess (Garage, Linode's keys).
	Assigned IDs = "assigned"
)

// Repeat says what a second create of the same name does.
type Repeat string

const (
	// Same: answers the same id and, for an account, the same key.
	Same Repeat = "same"
	// Taken: answers ALREADY_EXISTS to its own (Ceph and Scality, v1alpha1).
	Taken Repeat = "taken"
	// Anew: makes another one, where ids are assigned; for an account with a fixed id,
	// one more key that stays alive beside the first (Linode, garage-operator#271).
	Anew Repeat = "anew"
)

// Trait is how the driver handles one kind.
type Trait struct {
	IDs    IDs
	Repeat Repeat
	// Offers is what the driver's Recovery service has for the kind.
	Offers wire.Capabilities
}

// Config says which driver this is.
type Config struct {
	Name     string
	Dialect  Dialect
	Buckets  Trait
	Accounts Trait
	// KeepFull refuses to delete a bucket that holds objects.
	KeepFull bool
	Faults   Faults
}

// DefaultRegion is used where parameters name none.
const DefaultRegion = "here"

// check refuses drivers that can't be.
func (c Config) check() error {
	if c.Name == "" {
		return fmt.Errorf("double: a driver needs a name")
	}
	switch c.Dialect {
	case V1alpha1, OnePhase, TwoPhase:
	default:
		return fmt.Errorf("double: driver %s: no dialect %q", c.Name, c.Dialect)
	}
	for kind, t := range map[Kind]Trait{Bucket: c.Buckets, Account: c.Accounts} {
		switch t.IDs {
		case ByName, ByRegion, Assigned:
		default:
			return fmt.Errorf("double: driver %s: no ids %q for a %s", c.Name, t.IDs, kind)
		}
		switch t.Repeat {
		case Same, Taken, Anew:
		default:
			return fmt.Errorf("double: driver %s: no repeat %q for a %s", c.Name, t.Repeat, kind)
		}
		if t.Offers.CreateRepeatSafe && t.Repeat != Same {
			return fmt.Errorf("double: driver %s: says that repeats of a %s are safe, which %q is not", c.Name, kind, t.Repeat)
		}
	}
	return nil
}

// Faults gives the probability of each thing that may befall a call, 0 to 1, and
// the times that go with them. At most one befalls a call.
type Faults struct {
	Slow   float64 // the answer comes after up to SlowBy; nothing is wrong with it
	Lost   float64 // the work is done, the answer comes too late for anybody (LostBy)
	Late   float64 // UNAVAILABLE is answered at once, the work is done after up to LateBy
	Wrong  float64 // the work is done, the code says that it was not (INVALID_ARGUMENT, INTERNAL)
	Detail float64 // as Wrong, but the error carries the id of what was made
	Refuse float64 // nothing is done, and the code says so
	Die    float64 // the process kills itself, before or after the work

	SlowBy, LostBy, LateBy time.Duration

	// Delay is added to every call, before the work.
	Delay time.Duration
}
