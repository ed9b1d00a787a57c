package explore

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/explore/search"
)

func parseBudget(s string) (b [budgets]uint8) {
	for _, kv := range strings.Fields(s) {
		k, v, _ := strings.Cut(kv, "=")
		for i, n := range budgetNames {
			if n == k {
				x, _ := strconv.Atoi(v)
				b[i] = uint8(x)
			}
		}
	}
	return b
}

func TestTry(t *testing.T) {
	kinds := os.Getenv("KINDS")
	for _, access := range []bool{false, true} {
		if kinds == "bucket" && access || kinds == "access" && !access {
			continue
		}
		for _, c := range capabilities() {
			if one := os.Getenv("ONE"); one != "" && !strings.Contains(","+one+",", ","+c.name+",") {
				continue
			}
			c.access = access
			c.ways.Remake = access
			c.settle = 1
			c.puff = 5
			c.left = parseBudget(os.Getenv("B"))
			c.keep = os.Getenv("KEEP") != ""
			c.reuse = os.Getenv("REUSE") != ""
			c.upstream = os.Getenv("UP") != ""
			c.known = os.Getenv("UP") == "known"
			c.static = os.Getenv("STATIC") != ""
			if os.Getenv("FOREIGN") != "" {
				c.foreign, c.proven = true, false
			}
			m := newModel(&c)
			res := search.Run(context.Background(), m, search.Limits{States: 30e6, Every: 60 * time.Second, Tick: func(a, b, d int) { t.Log(a, b, d) }})
			var why []string
			for i := 0; i < 32; i++ {
				if res.Notes>>i&1 == 1 {
					why = append(why, provisionWhy(i))
				}
			}
			t.Logf("%s access=%v states %d trans %d depth %d complete %v counts %v in %v (%.0f/s) %v", c.name, access, res.States, res.Transitions, res.Depth, res.Complete, res.Counts, res.Took, float64(res.Transitions)/res.Took.Seconds(), why)
			for f, tr := range res.Traces {
				t.Logf("--- %v", f)
				for i, l := range newModel(&c).story(tr) {
					t.Logf("   %2d %s", i+1, l)
				}
			}
		}
	}
}
