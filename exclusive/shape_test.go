package exclusive

import (
	"testing"

	"github.com/custody-storage/custody/internal/shape"
)

func TestShape(t *testing.T) {
	faults, files, err := shape.Dir(".")
	if err != nil || files < 5 {
		t.Fatalf("read %d files: %v", files, err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestComparable(t *testing.T) {
	compare := func(a, b Memo, c, d Hold) bool { return a == b && c == d } // does not compile otherwise
	if !compare(Memo{}, Memo{}, Hold{}, Hold{}) {
		t.Fatal("equal memos differ")
	}
}
