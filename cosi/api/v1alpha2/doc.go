// Package v1alpha2 holds the types of the API group objectstorage.k8s.io,
// version v1alpha2: the Container Object Storage Interface (COSI) as users and
// admins see it. Its JSON form and its validation are those of upstream COSI, so
// a manifest made for upstream applies unchanged, and a program built on these
// types also works on a cluster whose definitions (CRDs) came from upstream.
//
// What to read where: one file for each kind; shared.go for the types that
// several kinds use; constants.go for finalizers, annotations and name prefixes;
// keys.go for the keys of Secrets and of status.bucketInfo; handoff.go for who
// owns a BucketAccess at which moment. The CRDs made from these types are in
// package cosi/api/crds.
//
// # Duties of a program that writes these objects
//
//   - status.readyToUse is a required field of every status. A status that is
//     written without it is refused, here and on upstream's definitions.
//   - Never write a status field that is not in this package: on upstream's
//     definitions the API server drops it in silence. State of our own lives in
//     the Intent (package api/v1alpha1); what a user should know goes to
//     status.error and to events.
//   - Ids (status.bucketID, status.accountID), status.boundBucketName and what
//     status.accessedBuckets, driverName, authenticationType and parameters copy
//     are final once set. Check an id with CheckID before the write: a driver may
//     answer one that the API server refuses.
//   - Empty lists and maps are left out, never written as empty: the schema asks
//     for at least one member. The omitempty tags do that. Only a class may have
//     empty parameters, which some versions of upstream take.
//
// Sources: the COSI API of the upstream repository as of spring 2026, and
// KEP-1979. Only k8s.io/apimachinery is imported.
//
// +kubebuilder:object:generate=true
// +groupName=objectstorage.k8s.io
package v1alpha2

//go:generate go run ../../../hack/tool controller-gen object crd paths=. output:crd:dir=../crds
