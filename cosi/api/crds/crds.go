// Package crds holds the CustomResourceDefinitions of the group
// objectstorage.k8s.io, made from the types of package cosi/api/v1alpha2, so that
// programs and tests can install them without a file beside the binary.
//
// Install them only where the cluster has none: upstream COSI's definitions of
// v1alpha2 serve just as well, and who installed them owns them.
//
// A cluster that still has upstream's v1alpha1 definitions under these names needs
// those to be dealt with first (objects of v1alpha1 deleted and v1alpha1 taken out
// of status.storedVersions): the API server refuses to drop a stored version.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the definitions, one YAML file for each, named
// objectstorage.k8s.io_<plural>.yaml.
func Files() fs.FS { return files }
