// Package controller is the COSI controller: it gives each BucketClaim its Bucket and
// prepares each BucketAccess for the sidecar of its driver. It calls no driver.
//
// Where to read: claim.go, claim_bucket.go and claim_delete.go for BucketClaims,
// access.go, access_check.go and access_delete.go for BucketAccesses, notice.go for what
// users are told, watch.go for what wakes whom, other.go for a second COSI controller
// in the cluster. rbac/ holds the permissions it runs with (from the markers in
// controller.go), admission/ a policy that keeps everybody else's hands off.
//
// # What is written, in order
//
// For a claim of a class: the finalizer on the claim; the Bucket, with its finalizer in
// the same write; the claim's status, once, when the Bucket is ready. Three writes.
// For a claim to a Bucket that an admin has set aside: the finalizer, the claim's UID
// into the Bucket, the status. For an access: the finalizer; then all that the sidecar
// needs into the status, in one write, which is the hand-off.
//
// # What is never done on hearsay
//
//   - A Bucket is made only for a claim that was read from the API server after its
//     finalizer was on, has the same UID and is not being deleted. What a frozen
//     controller still sends after that makes a Bucket of a dead claim; the sidecar
//     refuses it and it stays visible (kubernetes-csi/external-provisioner#1469 is this
//     race with volumes).
//   - A claim is let go only after the API server itself said that no access names it
//     and that its Bucket is gone, or stays by policy.
//   - An access is handed over only after each of its claims was read live. A claim that
//     is being deleted lists accesses live. Each writes before it reads, so one of the two
//     sees the other.
//   - An access is let go here only if it was never handed over: no driver in its status
//     and no Intent of its name, both read live. After the hand-off it is the sidecar's,
//     to the end. Annotations are hints and free nothing: a tenant can write them.
//   - Nothing is deleted because something else is absent.
//
// # What users are told
//
// status.error, with a reason word first (see the Reason constants), and a Warning
// event where it is about a mistake or a failure. Both are written when the text
// changes, not once for each try. There are no events about success: each is a write,
// see docs/decisions/.
package controller
