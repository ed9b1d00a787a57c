package search

import (
	"context"
	"slices"
	"testing"
)

// graph is a model given by hand: its states are single bytes.
type graph map[byte]struct {
	to     []byte // choices are numbered in this order
	follow int    // 1 + the place in to, 0: none
	bad    int    // 1 + the place in to of a move that is a fault of its own
	rest   bool
	fault  Fault
}

func (g graph) Start(buf []byte) []byte { return append(buf, 0) }

func (g graph) Expand(state []byte, emit func(Move, []byte)) Status {
	n := g[state[0]]
	for i, to := range n.to {
		m := Move{Choice: Choice(i), Follow: n.follow == i+1}
		if n.bad == i+1 {
			m.Fault = Loss
		}
		emit(m, []byte{to})
	}
	return Status{Rest: n.rest, Fault: n.fault}
}

type edges = struct {
	to     []byte
	follow int
	bad    int
	rest   bool
	fault  Fault
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		g     graph
		want  map[Fault]int
		trace []Choice
	}{
		"a state of rest that is passed is not judged": {g: graph{0: edges{to: []byte{1}, follow: 1, rest: true, fault: Orphan}, 1: edges{rest: true}}},
		"a state of rest that stays is":                {g: graph{0: edges{to: []byte{1}, follow: 1}, 1: edges{rest: true, fault: Orphan}}, want: map[Fault]int{Orphan: 1}, trace: []Choice{0}},
		"turning for ever without rest is being stuck": {g: graph{0: edges{to: []byte{1}, follow: 1}, 1: edges{to: []byte{0}, follow: 1}}, want: map[Fault]int{Stuck: 1}, trace: []Choice{}},
		"standing still without rest is, too":          {g: graph{0: edges{to: []byte{1}}, 1: edges{rest: true}}, want: map[Fault]int{Stuck: 1}, trace: []Choice{}},
		"a cycle with one state of rest is fine":       {g: graph{0: edges{to: []byte{1}, follow: 1}, 1: edges{to: []byte{0}, follow: 1, rest: true}}},
		"every state of rest on a cycle is judged": {g: graph{0: edges{to: []byte{1}, follow: 1, rest: true}, 1: edges{to: []byte{0}, follow: 1, rest: true, fault: Double}},
			want: map[Fault]int{Double: 1}, trace: []Choice{0}},
		"the shortest trace wins": {g: graph{0: edges{to: []byte{1, 2}, follow: 1}, 1: edges{to: []byte{2}, follow: 1}, 2: edges{to: []byte{3}, follow: 1, bad: 1}, 3: edges{rest: true}},
			want: map[Fault]int{Loss: 1}, trace: []Choice{1, 0}},
	} {
		res := Run(context.Background(), c.g, Limits{})
		if !res.Complete || len(res.Counts) != len(c.want) {
			t.Errorf("%s: %+v", name, res)
		}
		for f, n := range c.want {
			if res.Counts[f] != n || !slices.Equal(res.Traces[f], c.trace) {
				t.Errorf("%s: %v %d times by %v", name, f, res.Counts[f], res.Traces[f])
			}
			if got, ok := Play(c.g, res.Traces[f]); !ok || got&f == 0 {
				t.Errorf("%s: played again it is %v", name, got)
			}
		}
	}
}

// TestTable: many states, each found again under its number.
func TestTable(t *testing.T) {
	tab := newTable()
	key := func(i uint32) []byte {
		b := make([]byte, 3+i%200)
		b[0], b[1], b[2] = byte(i), byte(i>>8), byte(i>>16)
		return b
	}
	const n = 100_000
	for i := uint32(0); i < n; i++ {
		if got, isNew := tab.add(key(i)); !isNew || got != i {
			t.Fatalf("state %d is number %d, new: %v", i, got, isNew)
		}
	}
	for i := uint32(0); i < n; i++ {
		if got, isNew := tab.add(key(i)); isNew || got != i {
			t.Fatalf("state %d is number %d, new: %v", i, got, isNew)
		}
	}
}

func TestLimits(t *testing.T) {
	long := graph{}
	for i := byte(0); i < 200; i++ {
		long[i] = edges{to: []byte{i + 1}, follow: 1}
	}
	long[200] = edges{rest: true}
	if res := Run(context.Background(), long, Limits{States: 50}); res.Complete || res.States < 50 || !res.Clean() {
		t.Errorf("%+v", res)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if res := Run(ctx, long, Limits{}); res.Complete {
		t.Error("an ended search calls itself complete")
	}
}
