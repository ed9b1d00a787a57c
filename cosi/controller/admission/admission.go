// Package admission holds the ValidatingAdmissionPolicy that lets only Custody's accounts
// write Intents, put on or take off the finalizer custody.dev/protection, or change COSI's
// hand-off annotations. Which accounts those are, and which groups of admins may step in,
// is in a ConfigMap beside it, in the namespace custody-system.
//
// It is a guard against accidents and tenants, not a part of the protocol: without it, a
// forged annotation or a stripped finalizer still frees nothing.
package admission

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the policies, their bindings and their ConfigMap, in policy.yaml.
func Files() fs.FS { return files }
