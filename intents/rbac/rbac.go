// Package rbac holds two roles for people: custody-intents-view reads Intents,
// custody-intents-admin also decides about those that have stopped.
package rbac

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the roles, in role.yaml.
func Files() fs.FS { return files }
