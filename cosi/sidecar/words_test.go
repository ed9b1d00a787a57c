package sidecar_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/custody-storage/custody/provision"
)

// Every word of the protocol is one of the API's reasons.
func TestWords(t *testing.T) {
	text, err := os.ReadFile("../../api/v1alpha1/conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for why := provision.WhyNone + 1; why.String() != "Unknown"; why++ {
		n++
		if !strings.Contains(string(text), "= "+strconv.Quote(why.String())) {
			t.Errorf("package api/v1alpha1 has no reason %q", why)
		}
	}
	if n < 10 {
		t.Errorf("%d words seen", n)
	}
}
