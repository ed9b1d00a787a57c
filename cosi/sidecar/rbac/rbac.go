// Package rbac holds the permissions of a COSI sidecar: a ClusterRole, and a Role for its lease in the namespace
// custody-system, made from the markers in package cosi/sidecar. Who runs it in another namespace changes that of the
// Role.
package rbac

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the roles, in role.yaml.
func Files() fs.FS { return files }
