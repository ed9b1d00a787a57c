package holds

import (
	"context"
	"errors"
	"time"

	"github.com/custody-storage/custody/csi/rbd"
)

// ErrNoCeph says that this program was built without Ceph.
var ErrNoCeph = errors.New("this program was built without Ceph block storage; build one with it: " +
	"install librados-dev and librbd-dev, then CGO_ENABLED=1 go build -tags ceph,RELEASE ./cmd/custody, " +
	"where RELEASE is Ceph's, such as pacific (docs/rbd.md)")

// Client reads holds and acts on them, in all clusters of one configuration file.
type Client interface {
	// List gives the images that the filter takes, by cluster, pool, namespace and name. Where a cluster or a pool does
	// not answer it gives the others', and the error.
	List(ctx context.Context, f Filter) ([]Row, error)
	// Find gives the one image of that name. See [Row.named].
	Find(ctx context.Context, name string, f Filter) (Row, error)
	// Fence fences whoever holds the volume, and lets go of the hold. Nothing is undone when ctx ends: what was begun is
	// carried on by whoever wants the volume next.
	Fence(ctx context.Context, r Row) (Fenced, error)
	// Plan says which fences there are to lift and what proves that each may be lifted. It changes nothing.
	Plan(ctx context.Context, l Lift) ([]Lifting, error)
	// Lift lifts one. Without proof it needs a reason, which is durable before the fence goes.
	Lift(ctx context.Context, l Lifting, reason string) error
	// Close ends the connections.
	Close()
}

// Filter says which images are wanted. Its zero value takes all that have a hold; what is set must hold all together.
type Filter struct {
	Cluster string
	Pool    string // POOL, or POOL/NAMESPACE
	Node    string // holds it, or has a fence that is not lifted
	State   string
	// Held leaves out what nobody holds and nobody is fenced for.
	Held bool
	// Listen to the heartbeats for so long, to tell whether they move. 0: they are read once.
	Listen time.Duration
}

// States are what Filter takes.
var States = []string{"none", "free", "claimed", "opaque", "mapped", "fencing", unreadable}

// unreadable is the state of a hold that is garbage or of a newer format.
const unreadable = "unreadable"

// Row is one image. The JSON names are kept from release to release.
type Row struct {
	Cluster   string     `json:"cluster"`
	Pool      string     `json:"pool"`
	Namespace string     `json:"namespace"`
	Image     string     `json:"image"`
	ImageID   string     `json:"imageID"`
	State     string     `json:"state"`
	Epoch     uint64     `json:"epoch"`
	Node      string     `json:"node,omitempty"`
	Machine   string     `json:"machine,omitempty"`
	Boot      string     `json:"boot,omitempty"`
	Instance  string     `json:"instance,omitempty"`
	Fencer    string     `json:"fencer,omitempty"`
	Barrier   uint64     `json:"barrier,omitempty"`
	Formatted bool       `json:"formatted"`
	Since     *time.Time `json:"since,omitempty"` // when the hold was last written, by the clock of whoever did
	Heartbeat Heartbeat  `json:"heartbeat"`
	Fences    []Fence    `json:"fences"`
	Error     string     `json:"error,omitempty"` // why the hold can't be read
	// Words are of fences that were lifted without proof. Only Find reads them.
	Words []Word `json:"words,omitempty"`

	volume string // of package exclusive
}

// Heartbeat is what the owner's machine shows.
type Heartbeat struct {
	// State: "" without an owner; missing; thisBoot or otherBoot of what the hold names; with Filter.Listen also moving
	// or still, of this boot.
	State string `json:"state,omitempty"`
	Node  string `json:"node,omitempty"`
	Boot  string `json:"boot,omitempty"`
	Count uint64 `json:"count,omitempty"`
}

// What Heartbeat.State may be.
const (
	beatMissing = "missing"
	beatThis    = "thisBoot"
	beatOther   = "otherBoot"
	beatMoving  = "moving"
	beatStill   = "still"
)

// Fence is a client that was fenced, or is about to be, and not lifted yet.
type Fence struct {
	Instance string `json:"instance"`
	Node     string `json:"node"`
	Machine  string `json:"machine"`
	Boot     string `json:"boot"`
	// Standing: the entry is on the blocklist, for years.
	Standing bool `json:"standing"`
}

// Fenced is what a fence by hand has done.
type Fenced struct {
	Cluster  string `json:"cluster"`
	Volume   string `json:"volume"`
	Node     string `json:"node"`
	Instance string `json:"instance"` // "" if the volume was never mapped, so that nothing had to be fenced
	Barrier  uint64 `json:"osdmapEpoch"`
	Epoch    uint64 `json:"epoch"` // of the hold that nobody has now
	Error    string `json:"error,omitempty"`
}

// Lift says what is to be lifted: all fences of a volume, or one client's wherever it is listed.
type Lift struct {
	Volume   string
	Instance string
	Cluster  string
	// Listen for so long to the heartbeat of the machine.
	Listen time.Duration
}

// Lifting is one fence that could be lifted.
type Lifting struct {
	Cluster string `json:"cluster"`
	Volume  string `json:"volume,omitempty"` // "" if no list has it
	Fence
	// Proof is "rebooted", or "" for none.
	Proof string `json:"proof,omitempty"`
	// Lacks says what the proof lacks.
	Lacks string `json:"lacks,omitempty"`
	// Refused says why it is not lifted with a reason either.
	Refused string `json:"refused,omitempty"`
	Lifted  bool   `json:"lifted"`
	Error   string `json:"error,omitempty"`

	volume string
}

// Word is a fence that was lifted without proof, and why.
type Word struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Instance string    `json:"instance"`
	Node     string    `json:"node,omitempty"`
	Reason   string    `json:"reason"`
}

// Spec is the image as Ceph's tools write it, with the cluster before it.
func (r Row) Spec() string {
	at := r.Cluster + ":" + r.Pool + "/"
	if r.Namespace != "" {
		at += r.Namespace + "/"
	}
	return at + r.Image
}

// named tells whether a person may mean this image: by its name, [CLUSTER:]POOL/[NAMESPACE/]NAME, its id, or the volume
// handle or the name of its PersistentVolume.
func (r Row) named(name string) bool {
	switch name {
	case r.Image, r.ImageID, r.Spec(), r.Spec()[len(r.Cluster)+1:], r.volume:
		return true
	case rbd.ID{Cluster: r.Cluster, Pool: r.Pool, Namespace: r.Namespace, Image: r.Image}.String():
		return true
	}
	return r.Image == rbd.VolumeImage(name)
}

func (f Filter) takes(r Row) bool {
	onNode := f.Node == "" || r.Node == f.Node
	for _, fence := range r.Fences {
		onNode = onNode || fence.Node == f.Node
	}
	held := len(r.Fences) > 0 || (r.State != "none" && r.State != "free")
	return onNode && (f.State == "" || f.State == r.State) && (!f.Held || held) &&
		(r.State != "none" || f.State == "none" || len(r.Fences) > 0)
}

// in tells whether a pool of a cluster is wanted.
func (f Filter) in(cluster, pool, namespace string) bool {
	at := pool
	if namespace != "" {
		at += "/" + namespace
	}
	return (f.Cluster == "" || f.Cluster == cluster) && (f.Pool == "" || f.Pool == at || f.Pool == pool)
}
