package shape

import "testing"

func TestSource(t *testing.T) {
	const bad = `package p
import ("sync"; "time"; "context")
var x, table int
var ErrX error
func f(c chan int) { defer g(); go g(); select {}; time.Sleep(1); _ = time.Now(); context.WithCancel(nil); _ = map[string]int{} }`
	got, err := Source("bad.go", bad, "table")
	if err != nil || len(got) != 10 {
		t.Fatalf("found %d faults of 10: %v, %v", len(got), got, err)
	}
	if got, err := Source("good.go", "package p\nimport \"time\"\nfunc f(time.Duration) {}"); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	if _, err := Source("broken.go", "package"); err == nil {
		t.Fatal("a file that is no Go was read")
	}
}
