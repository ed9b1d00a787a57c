package provision

import (
	"testing"

	"github.com/custody-storage/custody/internal/shape"
)

func TestShape(t *testing.T) {
	faults, files, err := shape.Dir(".", "codes", "whys")
	if err != nil || files < 5 {
		t.Fatalf("read %d files: %v", files, err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestComparable(t *testing.T) {
	compare := func(a, b Memo) bool { return a == b } // does not compile otherwise
	if !compare(Begin("a", 1), Begin("a", 1)) {
		t.Fatal("equal memos differ")
	}
}
