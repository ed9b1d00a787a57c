// Package rbac holds the role of what Custody's CSI drivers ask of Kubernetes, on nodes and in the controller. The
// sidecars beside them have roles of their own, in the chart.
package rbac

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the role, in role.yaml.
func Files() fs.FS { return files }
