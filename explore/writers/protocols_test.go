package writers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/custody-storage/custody/explore/search"
)

// TestProtocols: every row has what the table needs, and a wide model can be walked at random.
func TestProtocols(t *testing.T) {
	seen := map[string]bool{}
	for i, p := range Protocols() {
		if seen[p.Name] || p.What == "" || p.Bound == "" || p.Kind != "shipped" && p.Kind != "baseline" || !strings.HasPrefix(p.Name, "writers/") {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
		ctx, cancel := context.WithTimeout(bg, 150*time.Millisecond)
		seed := uint64(i + 1)
		choices, fault, _ := search.Walk(ctx, p.New(true), seed, 120)
		cancel()
		if p.Kind == "shipped" && fault != 0 {
			t.Errorf("%s, seed %d: %v", p.Name, seed, fault)
			for _, l := range p.New(true).Story(choices) {
				t.Log(l)
			}
		}
	}
}
