package explore

import (
	"context"
	"testing"

	"github.com/custody-storage/custody/explore/search"
)

func BenchmarkSearch(b *testing.B) {
	for b.Loop() {
		c := capabilities()[0]
		c.settle = 1
		c.left = budgetOf(map[budget]uint8{bCrash: 1, bLost: 1, bLate: 1, bWrong: 1, bDelete: 1})
		res := search.Run(context.Background(), newModel(&c), search.Limits{})
		b.ReportMetric(float64(res.Transitions)/res.Took.Seconds(), "transitions/s")
	}
}
