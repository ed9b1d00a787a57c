package provision

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A set gives back the ids that went into it, whatever a driver has answered.
func TestSetOfIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune("a\\n\n")))).Draw(t, "ids")
		set := JoinIDs(ids...)
		want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
		slices.Sort(want)
		want = slices.Compact(want)
		if got := SplitIDs(set); !slices.Equal(got, want) {
			t.Fatalf("%q became %q", ids, got)
		}
		for _, id := range want {
			if !has(set, id) || has(without(set, id), id) || with(without(set, id), id) != set {
				t.Fatalf("%q in %q: has %v, without it %q", id, set, has(set, id), without(set, id))
			}
		}
	})
}

// What needs no care is left as it is, so that records in a log can be read.
func TestSetOfPlainIDs(t *testing.T) {
	if got := JoinIDs("b/2", "", "a+=", "b/2"); got != strings.Join([]string{"a+=", "b/2"}, sep) {
		t.Errorf("got %q", got)
	}
}

// A line end in an id: it is deleted once, as it was answered, and then it is known to be gone.
func TestLineEndInID(t *testing.T) {
	for _, id := range []string{"bc-1", "bc-1\n", "bc-1\nbc-2", `bc\1`} {
		m := Memo{Rec: Record{ID: id, Strays: JoinIDs("bc-0", id+"x")}}
		asked := []string{}
		for next := m.next(); next != "" && len(asked) < 9; next = m.next() {
			asked = append(asked, next)
			m.Gone = with(m.Gone, next)
		}
		if !slices.Equal(asked, []string{id, "bc-0", id + "x"}) {
			t.Errorf("%q: deletes of %q", id, asked)
		}
	}
}
