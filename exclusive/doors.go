package exclusive

import (
	"context"
	"errors"
)

// What a Registry may answer, other than success. Any other error of any door means that the outcome is not known.
var (
	// ErrStale: the hold has another version. Nothing was written.
	ErrStale = errors.New("the hold has changed since it was read")
	// ErrForeign: the hold can't be read: garbage, or of a newer format. Nobody touches it.
	ErrForeign = errors.New("the hold is not in a form that this version knows")
)

// Registry is the door to the holds, in the storage cluster.
type Registry interface {
	// Load answers a hold with State None where there is none.
	Load(ctx context.Context, volume string) (Hold, error)
	// Swap writes the hold if it still has version h.Rev: one request. What it has answered is durable.
	Swap(ctx context.Context, h Hold) (rev string, err error)
	// List adds a fence to the volume's list, which has a key of its own: an edit fails nobody's Swap. Idempotent.
	List(ctx context.Context, volume string, f Fence) error
	// Listed gives the first fence of that machine after the given instance, in a fixed order; Instance "" if none.
	Listed(ctx context.Context, volume, machine string, after Instance) (Fence, error)
	// Unlist takes a fence off the list. Idempotent.
	Unlist(ctx context.Context, volume string, f Fence) error
}

// Device is the door to this node's kernel. Each call is bounded in time.
type Device interface {
	// Find gives the device of the volume with exactly that instance, by what the kernel has; Device "" if none.
	Find(ctx context.Context, volume string, i Instance) (Mapping, error)
	// Other gives a device of the volume with any other instance; Device "" if none.
	Other(ctx context.Context, volume string, than Instance) (Mapping, error)
	// Map maps the volume by a client of its own and gives the instance that the cluster knows.
	Map(ctx context.Context, volume string) (Mapping, error)
	// Unmap removes exactly this mapping: a device of the same number with another instance is left alone and counts
	// as removed.
	Unmap(ctx context.Context, m Mapping) error
	// Reach returns when the mapping's own client has seen the barrier. (The fencer's connection says nothing of it.)
	Reach(ctx context.Context, m Mapping, barrier uint64) error
	// Format makes a file system through a descriptor whose instance it has compared with m's.
	Format(ctx context.Context, m Mapping) error
	// Expose lets the workload at the device (mount, bind), through such a descriptor. Idempotent.
	Expose(ctx context.Context, m Mapping) error
	// Withdraw undoes Expose for whatever is exposed of the volume on this node. Idempotent.
	Withdraw(ctx context.Context, volume string) error
}

// Fencer is the door to the cluster's fence.
type Fencer interface {
	// Fence shuts exactly this instance out, for years, and gives the barrier behind which no write of it lands.
	Fence(ctx context.Context, i Instance) (barrier uint64, err error)
	// Fenced reads back whether the cluster has the entry (csi-addons#380: reported done, nothing blocked).
	Fenced(ctx context.Context, i Instance) (bool, error)
	// Lift removes our entry. Only on proof. No entry: nil.
	Lift(ctx context.Context, i Instance, p Proof) error
}

// Evidence is the door to what is known of an owner.
type Evidence interface {
	Judge(ctx context.Context, h Hold) (Verdict, error)
}
