package writers

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/custody-storage/custody/explore/search"
)

func TestTry(t *testing.T) {
	if os.Getenv("B") == "" {
		t.Skip("a bench for trying bounds out: set B")
	}
	n, _ := strconv.Atoi(os.Getenv("N"))
	c := class{name: "try", nodes: max(2, n), format: os.Getenv("BLOCK") == "", left: allow(os.Getenv("B"))}
	lim, _ := strconv.ParseFloat(os.Getenv("MAX"), 64)
	if lim == 0 {
		lim = 3e6
	}
	m := newModel(&c)
	res := search.Run(context.Background(), m, search.Limits{States: int(lim), First: os.Getenv("FIRST") != "", Every: 30 * time.Second, Tick: func(a, b, d int) { t.Log(a, b, d) }})
	t.Logf("states %d trans %d depth %d complete %v counts %v in %v (%.0f/s) judged %d", res.States, res.Transitions, res.Depth, res.Complete, res.Counts, res.Took, float64(res.Transitions)/res.Took.Seconds(), len(m.judged))
	for f, tr := range res.Traces {
		t.Logf("--- %v", f)
		for i, l := range newModel(&c).Story(tr) {
			t.Logf("   %2d %s", i+1, l)
		}
	}
}
