package exclusive

import (
	"context"
	"errors"
	"time"
)

// Verb is what is asked.
type Verb uint8

const (
	// Stage makes the volume usable on this node, alone.
	Stage Verb = iota + 1
	// Check tells whether a volume that was staged is still this node's.
	Check
	// Unstage gives it back. It needs no secrets but the node's own standing identity.
	Unstage
	// Detach takes it from Request.From, for a CO that says that it is not used there any more.
	Detach
	// Sweep puts in order, at the node's start, what an earlier life has left of the volume.
	Sweep
)

// Request is one verb on one volume. Only one request for a volume is worked on at a time in a process.
type Request struct {
	Verb   Verb
	Volume string
	Me     Who
	From   string // Detach: the node's name
	Format bool   // Stage: make a file system if the hold is blank; otherwise a block device is exposed as it is
	Policy Policy
}

// Memo is all that one incarnation knows while it works on a request. Its zero value is a fresh start. It is
// comparable.
type Memo struct {
	Hold    Hold
	Fresh   bool
	Claim   string // the version of our own claim
	Map     Mapping
	New     bool // Map was made by this incarnation, not found
	Doubt   bool // a call on Map failed: it may be gone
	Cleared bool // no device of the volume is on this node but the one that the hold names, if any
	Sought  bool // that one isn't either
	Reached bool
	Made    bool // the file system was made
	Shown   bool // exposed
	Hidden  bool // withdrawn

	Judged  string // the version of the hold that Verdict speaks of
	Verdict Verdict
	Listed  Instance // listed by us
	Fenced  Instance // fenced by us
	Seen    Instance // read back
	Barrier uint64
	Owed    Instance // fenced, but the hold was not won: it must stand on the list
	OwedWho Who

	Past   Instance // fences up to here were looked at
	Entry  Fence
	Dead   bool // this machine has no device of Entry
	Lifted bool
	Off    bool // off the list
	Walked bool // no further fence

	Tries uint8
	After time.Duration
	Why   Why
}

// Kind says what the caller does next.
type Kind uint8

const (
	// Again: call Step again now.
	Again Kind = iota
	// Wait: call Step again after Next.After, or answer ABORTED and let the CO call again.
	Wait
	// Done: the request is fulfilled.
	Done
	// Refused: it can't be fulfilled as things are; Next.Why and Memo.Hold say who holds it.
	Refused
	// Gone: Check found that the volume is not this node's any more. Tell the workload.
	Gone
)

// Why says why.
type Why uint8

const (
	WhyNone     Why = iota
	WhyDoor         // a door did not answer
	WhyNoHold       // there is no hold
	WhyForeign      // the hold can't be read
	WhyElse         // another node holds it and the policy does not take it
	WhyUnfenced     // the fence could not be read back
	WhyOpaque       // it may be exposed by an instance that nobody knows
)

// String gives the reason word for conditions and metrics.
func (w Why) String() string {
	names := [...]string{"", "StorageUnavailable", "NoHold", "UnknownFormat", "HeldElsewhere", "FenceNotConfirmed", "HeldOpaquely"}
	if int(w) < len(names) {
		return names[w]
	}
	return "Unknown"
}

// Next is what Step hands out.
type Next struct {
	Kind  Kind
	After time.Duration
	Why   Why
}

// Manager runs the protocol. It holds no state of its own.
type Manager struct {
	Registry Registry
	Device   Device
	Fencer   Fencer
	Evidence Evidence
	Now      func() time.Duration // monotonic
	// First and Max are the least and the longest wait after a door that did not answer.
	First, Max time.Duration
}

type door uint8

const (
	toNext door = iota
	toMemo
	toLoad
	toSwap
	toList
	toListed
	toDead
	toUnlist
	toFind
	toOther
	toMap
	toUnmap
	toReach
	toFormat
	toExpose
	toWithdraw
	toFence
	toFenced
	toLift
	toJudge
)

type act struct {
	door  door
	hold  Hold     // toSwap
	fence Fence    // toList, toUnlist
	proof Proof    // toLift
	than  Instance // toOther
	memo  Memo     // toMemo, toSwap: the memo if the act succeeds
	next  Next
}

// Step makes at most one call through one door.
func (g *Manager) Step(ctx context.Context, r Request, m Memo) (Memo, Next) {
	now := g.Now()
	if m.After > now {
		return m, Next{Wait, m.After - now, m.Why}
	}
	m, n, err := g.do(ctx, r, m, decide(r, m))
	switch {
	case err == nil:
		return m, n
	case errors.Is(err, ErrForeign):
		return m, Next{Kind: Refused, Why: WhyForeign}
	case errors.Is(err, ErrStale):
		m.Fresh = false
		return m, Next{}
	}
	m.Fresh = false
	after := g.First << m.Tries
	if after < g.Max && m.Tries < 32 {
		m.Tries++
	} else {
		after = g.Max
	}
	m.After, m.Why = now+after, WhyDoor
	return m, Next{Wait, after, WhyDoor}
}

// Run makes steps until there is nothing to do at once.
func (g *Manager) Run(ctx context.Context, r Request, m Memo) (Memo, Next) {
	for {
		var n Next
		if m, n = g.Step(ctx, r, m); n.Kind != Again || ctx.Err() != nil {
			return m, n
		}
	}
}

// do goes through the door that was decided on and folds what it answers into the memo.
func (g *Manager) do(ctx context.Context, r Request, m Memo, a act) (_ Memo, _ Next, err error) {
	was := m
	switch a.door {
	case toNext:
		return m, a.next, nil
	case toMemo:
		return a.memo, Next{}, nil
	case toLoad:
		if m.Hold, err = g.Registry.Load(ctx, r.Volume); err != nil {
			return was, Next{}, err
		}
		m.Fresh = true
		if m.Hold.Instance != was.Hold.Instance {
			m.Cleared, m.Sought = false, false
		}
	case toSwap:
		rev, err := g.Registry.Swap(ctx, a.hold)
		if err != nil {
			return was, Next{}, err
		}
		m, m.Hold = a.memo, a.hold
		m.Hold.Rev = rev
		if m.Hold.State == Claimed {
			m.Claim = rev
		}
	case toList:
		err = g.Registry.List(ctx, r.Volume, a.fence)
		m.Listed, m.Owed = a.fence.Instance, ""
	case toListed:
		m.Entry, err = g.Registry.Listed(ctx, r.Volume, r.Me.Machine, m.Past)
		m.Walked = m.Entry.Instance == ""
		if !m.Walked {
			m.Past, m.Fresh = m.Entry.Instance, false
		}
	case toDead:
		var f Mapping
		f, err = g.Device.Find(ctx, r.Volume, m.Entry.Instance)
		if m.Dead = f.Device == ""; !m.Dead {
			m.Entry = Fence{}
		}
	case toUnlist:
		err = g.Registry.Unlist(ctx, r.Volume, a.fence)
		m.Lifted, m.Off = false, true
	case toFind:
		m.Map, err = g.Device.Find(ctx, r.Volume, m.Hold.Instance)
		m.New, m.Sought = m.New && m.Map == was.Map, m.Map.Device == ""
		m.Doubt = false
	case toOther:
		m.Map, err = g.Device.Other(ctx, r.Volume, a.than)
		m.New, m.Cleared = false, m.Map.Device == ""
	case toMap:
		m.Map, err = g.Device.Map(ctx, r.Volume)
		m.New = true
		was.Cleared = false // where it fails, it may have been mapped all the same
	case toUnmap:
		err = g.Device.Unmap(ctx, m.Map)
		was.Hidden = false // where it is busy, it was exposed again, or a reply was lost
		m.Map, m.New, m.Cleared, m.Sought = Mapping{}, false, false, false
		m.Doubt, m.Reached, m.Made, m.Shown = false, false, false, false
	case toReach:
		err = g.Device.Reach(ctx, m.Map, m.Hold.Barrier)
		m.Reached, was.Doubt = true, true
	case toFormat:
		err = g.Device.Format(ctx, m.Map)
		m.Made, m.Fresh = true, false
		was.New, was.Doubt = false, true // without an answer the mkfs may go on: as if found
	case toExpose:
		err = g.Device.Expose(ctx, m.Map)
		m.Shown, m.Hidden, was.Doubt = true, false, true
	case toWithdraw:
		err = g.Device.Withdraw(ctx, r.Volume)
		m.Hidden = true
	case toFence:
		was.Owed, was.OwedWho = m.Hold.Instance, m.Hold.Who // it may be set though the answer is lost
		m.Owed, m.OwedWho, m.Fenced = was.Owed, was.OwedWho, m.Hold.Instance
		m.Barrier, err = g.Fencer.Fence(ctx, m.Hold.Instance)
	case toFenced:
		var ok bool
		if ok, err = g.Fencer.Fenced(ctx, m.Hold.Instance); err == nil && !ok {
			was.Fenced = ""
			was.After, was.Why = g.Now()+g.Max, WhyUnfenced
			return was, Next{Wait, g.Max, WhyUnfenced}, nil
		}
		m.Seen, m.Fenced = m.Hold.Instance, ""
	case toLift:
		err = g.Fencer.Lift(ctx, m.Entry.Instance, a.proof)
		if m.Lifted = !m.Off; m.Off {
			m.Entry, m.Dead, m.Off = Fence{}, false, false
		}
	case toJudge:
		m.Verdict, err = g.Evidence.Judge(ctx, m.Hold)
		m.Judged = m.Hold.Rev
	}
	if err != nil {
		return was, Next{}, err
	}
	m.Tries, m.After, m.Why = 0, 0, WhyNone
	return m, Next{}, nil
}
