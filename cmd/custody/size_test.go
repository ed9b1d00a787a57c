package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoTemplates holds what the Makefile's build tag is for. Packages text/template
// and html/template call methods by their names, so where they are linked every method
// of every Kubernetes type is. Cobra imports the first, and is made so that the linker
// drops it again as long as nobody sets a usage template.
func TestNoTemplates(t *testing.T) {
	const format = `{{.ImportPath}}:{{range .Imports}} {{.}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-tags", "grpcnotrace", "-deps", "-f", format, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		importer, imports, _ := strings.Cut(line, ":")
		if importer == "github.com/spf13/cobra" {
			continue
		}
		for _, path := range strings.Fields(imports) {
			if path == "text/template" || path == "html/template" {
				t.Errorf("%s imports %s", importer, path)
			}
		}
	}
}
