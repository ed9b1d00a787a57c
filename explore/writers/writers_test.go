package writers

import (
	"testing"

	"github.com/custody-storage/custody/explore/search"
)

func tell(t *testing.T, c *class, r search.Result) {
	t.Helper()
	for f, tr := range r.Traces {
		t.Logf("%v, in %d steps", f, len(tr))
		for i, l := range newModel(c).Story(tr) {
			t.Logf("%3d %s", i+1, l)
		}
	}
}

// TestShipped: every state within the bound is visited, and nothing is found.
func TestShipped(t *testing.T) {
	for _, c := range shipped() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := search.Run(bg, newModel(&c), search.Limits{States: 3e6})
			t.Logf("%d states, %d transitions, %v", r.States, r.Transitions, r.Took)
			if !r.Clean() || !r.Complete {
				t.Errorf("complete: %v; %v", r.Complete, r.Counts)
				tell(t, &c, r)
			}
		})
	}
}

// TestBaselines: each breaks in the way that is written here, and in no other.
func TestBaselines(t *testing.T) {
	want := map[string]search.Fault{
		"annotation":           search.TwoWriters | search.Stuck,
		"list-and-remove-lock": search.Loss,
		"advisory-lock":        search.Stuck,
		"advisory-lock-broken": search.TwoWriters,
		"break-lock-then-map":  search.TwoWriters,
		"exclusive-map":        search.Stuck,
		"fence-by-address":     search.Loss,
		"watchers":             search.TwoWriters,
	}
	for _, c := range baselines() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := search.Run(bg, newModel(&c), search.Limits{})
			var got search.Fault
			for f := range r.Counts {
				got |= f
			}
			if tell(t, &c, r); got != want[c.name] || !r.Complete {
				t.Errorf("found %v", r.Counts)
			}
		})
	}
}

// TestCodec: a state that is read and written again is the same state.
func TestCodec(t *testing.T) {
	c := class{nodes: 2, format: true, left: allow("stage=2 silent=1 crash=1 late=1 over=1 puff=3")}
	m := newModel(&c)
	seen := map[string]bool{}
	todo := []string{string(m.Start(nil))}
	for i := 0; i < len(todo) && len(todo) < 30_000; i++ {
		m.Expand([]byte(todo[i]), func(_ search.Move, next []byte) {
			if !seen[string(next)] {
				seen[string(next)] = true
				todo = append(todo, string(next))
			}
		})
	}
	for _, s := range todo {
		var w world
		m.cd.read([]byte(s), &w)
		if got := m.cd.write(nil, &w); string(got) != s {
			t.Fatalf("% x\nread and written again\n% x", s, got)
		}
	}
}
