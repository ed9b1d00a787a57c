package explore

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/custody-storage/custody/explore/search"
)

func TestTry(t *testing.T) {
	for _, access := range []bool{false, true} {
		for _, c := range capabilities() {
			if one := os.Getenv("ONE"); one != "" && one != c.name {
				continue
			}
			c.access = access
			c.ways.Remake = access
			c.settle = 1
			c.left = budgetOf(map[budget]uint8{bCrash: 1, bLost: 1, bLate: 1, bWrong: 1, bDelete: 1})
			m := newModel(&c)
			res := search.Run(context.Background(), m, search.Limits{States: 3e6, Every: 10 * time.Second, Tick: func(a, b, d int) { t.Log(a, b, d) }})
			t.Logf("%s access=%v states %d trans %d depth %d complete %v counts %v in %v (%.0f/s)", c.name, access, res.States, res.Transitions, res.Depth, res.Complete, res.Counts, res.Took, float64(res.Transitions)/res.Took.Seconds())
			for f, tr := range res.Traces {
				t.Logf("--- %v", f)
				for i, l := range newModel(&c).story(tr) {
					t.Logf("   %2d %s", i+1, l)
				}
			}
		}
	}
}
