// Package sidecar brings Buckets and BucketAccesses to one COSI driver, by the protocol of package provision. It is
// `custody cosi sidecar`, one beside each driver.
//
// # How it is built
//
// Buckets and BucketAccesses go through the same adapter; each has one of its own:
//
//   - reconcile.go: one name at a time is run through provision.Engine; what was learnt of it stays in an entry.
//   - store.go, record.go: provision.Store, the door to the API server. The Intent is the record; the API object says
//     what is wanted and shows what is there.
//   - backend.go: provision.Backend, the door to the driver.
//   - kind.go says in what the two kinds differ; bucket.go and access.go are the two, secret.go is the Secrets of an
//     access.
//   - report.go: what users and admins see when something is in the way: status.error with a leading reason word, one
//     Warning event, conditions on the Intent, metrics.
//
// # What is written when
//
// A bucket for which all goes well costs three writes: the Intent before the driver is called, the Intent again with the
// id and what the driver said besides, the Bucket's status. An access costs one more for each Secret. Nothing else is
// written on that path, no event and no condition. A restart reads, and calls the driver for nothing that has come to
// rest.
//
// Safety rests on the Intents alone. Finalizers order deletion; annotations are never read; what a tenant can write is
// checked against what he can't (access.go) before the first Intent is made, and the Intent's copy is used from then on.
//
// Secrets are read and written one by one, by name, never listed and never kept. Credentials stay in memory between the
// driver's answer and the Secret.
//
// # Who else acts
//
// One sidecar of a driver has the lead, by a lease of its own. When it loses it, the process ends at once. Nothing breaks
// if two act all the same, see package provision. Objects of other drivers are left alone, at the event and again after
// each read. Another program that writes the status of the same objects is noticed and said.
package sidecar
