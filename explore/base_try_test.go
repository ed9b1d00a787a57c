package explore

import (
	"context"
	"testing"

	"github.com/custody-storage/custody/explore/search"
)

func TestTryBase(t *testing.T) {
	for _, c := range baselines() {
		res := search.Run(context.Background(), newModel(&c), search.Limits{States: 5e6})
		t.Logf("%s states %d trans %d depth %d complete %v counts %v in %v", c.name, res.States, res.Transitions, res.Depth, res.Complete, res.Counts, res.Took)
		for f, tr := range res.Traces {
			t.Logf("--- %v", f)
			for i, l := range newModel(&c).story(tr) {
				t.Logf("   %2d %s", i+1, l)
			}
		}
	}
}
