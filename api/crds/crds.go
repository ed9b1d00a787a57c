// Package crds holds the CustomResourceDefinition of the Intent, made from the
// types of package api/v1alpha1, so that programs and tests can install it without
// a file beside the binary.
//
// Never install an older definition over a newer one: newer fields would be kept
// (spec preserves what it does not know), but newer rules would be lost.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the definitions, one YAML file for each, named
// custody.dev_<plural>.yaml.
func Files() fs.FS { return files }
