package ceph

import "strings"

// Role is what an identity is for.
type Role string

const (
	// Node maps images, fences, and lifts the fences of its own machine.
	Node Role = "node"
	// Controller makes and removes images and fences; it lifts nothing.
	Controller Role = "controller"
)

// Caps gives the least that an identity of that role needs, by service, for RBD images in these pools; a pool's
// namespace is written POOL/NAMESPACE. docs/ceph-caps.md says why.
func Caps(role Role, pools ...string) map[string]string {
	mon := "profile rbd"
	if role == Node {
		mon += `, allow command "osd blocklist" with blocklistop=rm addr regex "^[^/]+/[0-9]+$"`
	}
	osd := []string{}
	for _, p := range pools {
		pool, namespace, ok := strings.Cut(p, "/")
		cap := "profile rbd pool=" + pool
		if ok {
			cap += " namespace=" + namespace
		}
		osd = append(osd, cap)
	}
	return map[string]string{"mon": mon, "osd": strings.Join(osd, ", ")}
}
