// Package v1alpha1 holds what Custody adds to Kubernetes: the Intent, of the API
// group custody.dev.
//
// An Intent is the durable record behind "every bucket has exactly one owner,
// never none". It is written before the first call to a driver, holds each id the
// moment it is known, outlives the object it serves, and is what a deletion is
// read from. The protocol that keeps it is package provision; this package is its
// stored form. The CRD made from it is in package api/crds.
//
// # Duties of a program that touches Intents
//
//   - Call ReadFormat first, before anything else of the Intent is believed. An
//     Intent of a newer format is left alone: not written, not deleted, not acted
//     on. It does not decode into these types in full, and writing it back would
//     lose what the newer program has put there.
//   - Compare spec.clusterUID, spec.driver and spec.owner.uid with your own world.
//     A record of another cluster (a restored backup), another driver or another
//     owner is somebody else's.
//   - All that safety rests on is in spec, so that one write is one request: create
//     to make one, update with the resourceVersion that was read to change one.
//     Never patch it without a resourceVersion.
//   - status is for people: conditions, written rarely and by Custody only. Nothing
//     is ever decided from it.
//   - No owner reference, ever: garbage collection would take the record away with
//     the object that it has to outlive.
//   - Secrets are named, never held. What a driver answers besides ids goes to info
//     only if it is no credential.
//
// Only k8s.io/apimachinery is imported.
//
// +kubebuilder:object:generate=true
// +groupName=custody.dev
package v1alpha1

//go:generate go run ../../hack/tool controller-gen object crd paths=. output:crd:dir=../crds
