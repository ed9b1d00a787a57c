package exclusive

// State is how far a hold has come.
type State uint8

const (
	// None: there is no hold. The volume's past is not known: it is neither staged nor formatted.
	None State = iota
	// Free: nobody holds the volume. With Formatted false it is blank: nothing was ever written to it.
	Free
	// Claimed: a node is about to map it. Nothing was exposed, whoever is named.
	Claimed
	// Opaque: a node is in a call that maps and exposes at once (a guarded driver). It may be exposed, by an instance
	// that nobody knows.
	Opaque
	// Mapped: Instance may write.
	Mapped
	// Fencing: Instance is being fenced. Machine, Node and Boot are still those of the owner that is fenced.
	Fencing
)

// String gives the state's name as custody holds prints it and the registry stores it.
func (s State) String() string {
	names := [...]string{"none", "free", "claimed", "opaque", "mapped", "fencing"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Instance is one client of the storage cluster as the cluster knows it, such as a Ceph address with its nonce. It is
// recorded when it is seen, never derived from watchers, addresses, names or from what is mapped now
// (rook#14832: a fence by watchers hit the new owner).
type Instance string

// Who is a node as the protocol knows it.
type Who struct {
	Machine string // system UUID; a node's name may be taken by another machine
	Node    string // for people and for the CO
	Boot    string // boot id: another one proves that everything of the earlier boot is dead
}

// Hold says who may write a volume. It lives in the storage cluster beside the image and as long as the image. It is
// comparable.
type Hold struct {
	Volume    string
	State     State
	Who       Who
	Instance  Instance
	Epoch     uint64 // only grows
	Fencer    string // node that fences, for people; it decides nothing
	Barrier   uint64 // a client must have seen this point of the cluster's history before it touches the volume
	Formatted bool   // something may have been written: never format from here on
	Rev       string // version of the whole hold; a swap compares it, never the epoch alone
}

// Mapping is a device on this node.
type Mapping struct {
	Device   string
	Volume   string
	Instance Instance
}

// Fence is an instance that was fenced, or is about to be, and not lifted yet.
type Fence struct {
	Instance Instance
	Who      Who // the owner that was fenced
}

// Proof says why a fence may be lifted: it outlives the mapping, and nothing else ends it. Where a fence ends early, queued
// writes of the old owner land: the data-path test in ceph/mapper shows it with the fence off.
type Proof uint8

const (
	// Unmapped: the same machine says that it has no device of that instance any more.
	Unmapped Proof = iota + 1
	// Rebooted: the same machine shows another boot id.
	Rebooted
)

// Verdict is what is known of an owner.
type Verdict uint8

const (
	// Alive: it was heard of lately, or nothing is known against it.
	Alive Verdict = iota
	// Silent: its heartbeat has not moved for the set time, by the observer's own monotonic clock.
	Silent
	// Reborn: its machine shows another boot id.
	Reborn
	// Lost: the CO says so (out-of-service taint, Node object gone).
	Lost
	// Severed: the whole machine is fenced or off, by the admin's word.
	Severed
)

// Policy says when a volume is taken from an owner that has not released it. Safety does not rest on it: a wrong guess
// costs a live workload its volume, never a byte.
type Policy uint8

const (
	// FromLost takes over from an owner that is silent, reborn, lost or severed.
	FromLost Policy = iota
	// Refuse never takes over.
	Refuse
	// Always takes over.
	Always
)

// allows tells whether a hold in this state may be taken on such a verdict. A hold without an instance that may be
// exposed can't be fenced, so only proof that its machine has stopped will do.
func (p Policy) allows(h Hold, v Verdict) bool {
	if h.State == Opaque {
		return v == Reborn || v == Severed
	}
	return p == Always || p == FromLost && v != Alive
}
