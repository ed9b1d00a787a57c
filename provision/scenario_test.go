package provision_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/custody-storage/custody/explore"
)

// TestScenarios plays each race in testdata, in words, with the code that ships. See explore.Scenario for the language.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			script, err := os.Open(f)
			if err != nil {
				t.Fatal(err)
			}
			defer script.Close()
			if err := explore.Scenario(script); err != nil {
				t.Error(err)
			}
		})
	}
}
