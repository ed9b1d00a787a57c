package show

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	Table(&out, []string{"what", "n"}, []string{"é", "1"}, []string{"longer", "22"})
	want := "what    n\n------  --\né       1\nlonger  22\n"
	if got := out.String(); got != want {
		t.Errorf("table is\n%swant\n%s", got, want)
	}
}

func TestWork(t *testing.T) {
	var out bytes.Buffer
	w := To(&out).Begin("baking %d loaves", 2)
	w.Note("too soon to say")
	failed := errors.New("the oven is cold")
	if err := w.End(failed); !errors.Is(err, failed) {
		t.Errorf("End returns %v", err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "baking 2 loaves ...\n") || !strings.Contains(got, "baking 2 loaves: failed (0.") || strings.Contains(got, "too soon") {
		t.Errorf("it says %q", got)
	}
}
