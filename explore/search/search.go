// Package search visits every state of a model, breadth first, and judges what it finds.
//
// A [Model] is a set of states, each a short string of bytes, and the moves between them. [Run] keeps every state it
// has seen in full, so "visited" is exact and not a matter of hashes, and it keeps each state's parent, so a trace
// that it hands out is a shortest one. When all states are known it checks on the graph itself that nothing waits for
// ever: each state names the one move that happens next once nothing goes wrong any more ([Move.Follow]); following
// those moves ends in a cycle; a cycle without a state of rest is a stall, and the states of rest on a cycle are what
// remains for good, so that is where orphans and doubles are counted.
package search

import (
	"context"
	"math"
	"math/bits"
	"time"
)

// Fault is a set of things that must not be.
type Fault uint8

const (
	// Orphan: something exists that nobody will ever delete.
	Orphan Fault = 1 << iota
	// Double: two where there must be one.
	Double
	// Loss: something was deleted that is wanted, or that is somebody else's.
	Loss
	// Stuck: waiting for ever without saying so.
	Stuck
	// TwoWriters: two whose writes the storage accepts.
	TwoWriters
)

// Kinds is every fault there is, in the order of the columns.
var Kinds = [...]Fault{Orphan, Double, Loss, Stuck, TwoWriters}

// String gives the fault's word.
func (f Fault) String() string {
	switch f {
	case Orphan:
		return "orphan"
	case Double:
		return "double"
	case Loss:
		return "loss"
	case Stuck:
		return "stuck"
	case TwoWriters:
		return "two writers"
	}
	return "clean"
}

// Choice names one move out of a state. The same choice means the same in every state where it can be made.
type Choice uint16

// Move is one move out of a state.
type Move struct {
	Choice Choice
	// Follow: this is what happens next if nothing goes wrong any more. At most one move of a state has it; a state
	// without one follows itself.
	Follow bool
	// Fault is what this very move did wrong.
	Fault Fault
}

// Status is what a model says of a state.
type Status struct {
	// Rest: nothing more happens here but time, and what is said to the user is final: reached, or a visible stop.
	Rest bool
	// Fault is what is wrong if the state is one of rest for good.
	Fault Fault
	// Note is a bit set of what was seen here, summed up in Result.Notes when the state is one of rest for good.
	Note uint32
}

// Model is what is searched. It need not be safe for concurrent use.
type Model interface {
	// Start appends the first state to buf.
	Start(buf []byte) []byte
	// Expand calls emit for every move out of the state and says what the state is. emit copies what it is given.
	Expand(state []byte, emit func(m Move, next []byte)) Status
}

// Limits end a search early.
type Limits struct {
	States int                                 // no more than these are kept; 0: no limit but memory
	First  bool                                // stop at the first move that is a fault of its own
	Every  time.Duration                       // call Tick so often
	Tick   func(states, transitions, todo int) // progress
}

// Result is what was found.
type Result struct {
	States, Transitions int
	Depth               int  // the length of the longest shortest trace
	Complete            bool // every reachable state was visited
	Counts              map[Fault]int
	Traces              map[Fault][]Choice // a shortest trace to each kind of fault
	Notes               uint32
	NoteTraces          map[int][]Choice // a shortest trace to each bit of Notes
	Took                time.Duration
}

// Clean tells whether nothing was found.
func (r Result) Clean() bool { return len(r.Counts) == 0 }

const none = math.MaxUint32

type node struct {
	parent uint32
	next   uint32 // by the move with Follow
	choice Choice
	fault  Fault
	rest   bool
	depth  uint16
	note   uint32
}

// Run visits every state, or stops when ctx ends or a limit is reached.
func Run(ctx context.Context, m Model, lim Limits) Result {
	begun := time.Now()
	t := newTable()
	nodes := make([]node, 0, 1<<12)
	res := Result{Complete: true, Counts: map[Fault]int{}, Traces: map[Fault][]Choice{}}
	trace := func(i uint32, last ...Choice) []Choice {
		var back []Choice
		for ; nodes[i].parent != none; i = nodes[i].parent {
			back = append(back, nodes[i].choice)
		}
		out := make([]Choice, 0, len(back)+len(last))
		for j := len(back) - 1; j >= 0; j-- {
			out = append(out, back[j])
		}
		return append(out, last...)
	}
	t.add(m.Start(nil))
	nodes = append(nodes, node{parent: none, next: none})

	var cur uint32
	found := false
	emit := func(mv Move, next []byte) {
		res.Transitions++
		i, isNew := t.add(next)
		if isNew {
			nodes = append(nodes, node{parent: cur, next: none, choice: mv.Choice, depth: nodes[cur].depth + 1})
		}
		if mv.Follow {
			nodes[cur].next = i
		}
		for f := mv.Fault; f != 0; f &= f - 1 {
			k := f & -f
			if res.Counts[k]++; res.Traces[k] == nil {
				res.Traces[k] = trace(cur, mv.Choice)
			}
			found = true
		}
	}
	ticked := begun
	for ; int(cur) < len(nodes); cur++ {
		if cur&0xfff == 0 {
			if ctx.Err() != nil {
				res.Complete = false
				break
			}
			if lim.Tick != nil && lim.Every > 0 && time.Since(ticked) > lim.Every {
				ticked = time.Now()
				lim.Tick(len(nodes), res.Transitions, len(nodes)-int(cur))
			}
		}
		if lim.States > 0 && len(nodes) >= lim.States || lim.First && found {
			res.Complete = false
			break
		}
		s := m.Expand(t.get(cur), emit)
		nodes[cur].rest, nodes[cur].fault, nodes[cur].note = s.Rest, s.Fault, s.Note
	}
	res.States = len(nodes)
	for _, n := range nodes {
		res.Depth = max(res.Depth, int(n.depth))
	}
	settle(nodes[:cur], &res, trace)
	res.Took = time.Since(begun)
	return res
}

// settle follows every state to its end and judges what stays.
func settle(nodes []node, res *Result, trace func(uint32, ...Choice) []Choice) {
	const (
		white uint8 = iota
		grey
		black
	)
	colour := make([]uint8, len(nodes))
	ends, notes := map[Fault]uint32{}, map[int]uint32{}
	end := func(i uint32, f Fault) {
		res.Counts[f]++
		if first, ok := ends[f]; !ok || i < first {
			ends[f] = i
		}
	}
	var path []uint32
	for i := range nodes {
		at := uint32(i)
		path = path[:0]
		for int(at) < len(nodes) && colour[at] == white {
			colour[at] = grey
			path = append(path, at)
			if nodes[at].next == none {
				break
			}
			at = nodes[at].next
		}
		if int(at) < len(nodes) && colour[at] == grey { // a new cycle, from at to the end of the path
			rest := false
			for j := len(path) - 1; ; j-- {
				n := nodes[path[j]]
				if n.rest {
					rest = true
					res.Notes |= n.note
					for b := n.note; b != 0; b &= b - 1 {
						bit := bits.TrailingZeros32(b)
						if first, ok := notes[bit]; !ok || path[j] < first {
							notes[bit] = path[j]
						}
					}
					for f := n.fault; f != 0; f &= f - 1 {
						end(path[j], f&-f)
					}
				}
				if path[j] == at {
					break
				}
			}
			if !rest {
				end(at, Stuck)
			}
		}
		for _, p := range path {
			colour[p] = black
		}
	}
	res.NoteTraces = map[int][]Choice{}
	for bit, i := range notes {
		res.NoteTraces[bit] = trace(i)
	}
	for f, i := range ends {
		if t := trace(i); res.Traces[f] == nil || len(t) < len(res.Traces[f]) {
			res.Traces[f] = t
		}
	}
}
