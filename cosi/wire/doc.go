// Package wire talks to COSI drivers, of every dialect in use, through one interface.
//
//	client, err := wire.Dial(ctx, "unix:///var/lib/cosi/cosi.sock", wire.Options{})
//	bucket, err := client.CreateBucket(ctx, wire.BucketRequest{Name: "bc-…", Protocols: …})
//	keep(bucket.ID, wire.MadeID(err)) // first, whatever err says
//
// # Dialects
//
// Three are in use, and which one a driver speaks is found by asking it, never set by a flag:
//
//   - v1alpha1, spoken by every released driver (proto package cosi.v1alpha1);
//   - v1alpha2 in one phase, upstream's main branch in spring 2026 (sigs.k8s.io.cosi.v1alpha2);
//   - v1alpha2 in two phases, the enhancement proposal KEP-1979: an id is generated and written down, then
//     created.
//
// [Dial] asks for the Identity of v1alpha2, then of v1alpha1, then for the capabilities of this project's
// own optional Recovery service (recovery/recovery.proto). Whether a driver has the two-phase calls shows
// at their first use: [ErrNotOffered], remembered until the connection is a new one. UNIMPLEMENTED never
// ends anything here; it says "take the other way".
//
// # What a caller must do
//
//  1. Keep every id at once. A create or grant may answer an id together with an error (the answer was bad
//     otherwise), and an error may carry the id of what was made: [MadeID]. Check the rest afterwards.
//  2. Take no error for proof that nothing was made. [Code] decides whether to call again and what to tell
//     the user, no more.
//  3. Give each call a deadline by its context. Without one, Options.CallTimeout holds.
//  4. Never let two calls of one name overlap. This package neither locks nor repeats calls.
//
// Secrets are of type [Secret], which prints as "[redacted]" by every way of printing.
//
// The generated code lies in v1alpha2/ and recovery/; generate.sh makes it. For v1alpha1 the upstream
// module is used as it is: a driver author's program may link it too, and two registrations of one
// protobuf package in a Go program panic at start.
//
// [Register] is the other side: it serves any Driver over gRPC, in any dialect. Tests use it for doubles;
// package driver, the kit for drivers, builds on it.
//
// This package imports gRPC and protobuf, never Kubernetes.
package wire

//go:generate ./generate.sh
