// Package s3 is a COSI driver for an S3 server with accounts of its own: versitygw, by its admin API. It is
// also the model for driver authors: what it does for each promise of package driver is said here.
//
//	err := s3.Run(ctx, options) // serves until ctx ends
//
// # Buckets
//
// The id of a bucket is its name in S3 is the name that it was asked for by. CreateBucket makes it with two
// tags in the same request: the name and the owner (Options.Owner) that this driver was set up as. The tags
// are the owner mark. A bucket that lacks the mark is not ours: creating it again is ALREADY_EXISTS, and
// delete-by-name leaves it alone. Delete by id takes the caller's word, since an administrator may have
// named the bucket; only a bucket that bears another owner's mark is refused.
//
// A bucket that holds objects cannot be deleted: FAILED_PRECONDITION. Nothing here ever deletes an object.
//
// versitygw makes a bucket in four steps on its disk: the folder, its owner, its ownership rule, its tags.
// Killed in between, it leaves a folder that it shows as a bucket without ownership rule and refuses to
// make again. Such a half-made bucket, if it is empty, is finished by a repeated create, and deleted by
// name. (Killed in the few microseconds before the last step, it leaves an unmarked bucket that a person
// must look at: it is reported as ALREADY_EXISTS, never deleted.)
//
// # Accounts
//
// The id of an account is its access key id is the name that it was asked for by. Its secret key is derived
// from a seed that the driver holds (HMAC-SHA256 over owner and name), so that a repeated grant answers the
// same key without a database, and every answer that was lost is as good as the one that arrived. The other
// way, a new secret at each repeat, would cut off a workload that already uses the first. An account has
// one key, always.
//
// To rotate keys, change the seed and grant again: the account's key is replaced, under the same id, by
// that grant, not before. Without a seed it is derived from the driver's own secret key, so rotating that
// one has the same effect.
//
// The owner mark of an account is its project number, a hash of owner and name. (versitygw uses project
// numbers on ScoutFS only, and there for counting.)
//
// # Access
//
// A grant adds the account to the policy of each bucket, in statements of this driver's own, one set per
// access mode; other statements in the policy stay as they are.
//
//   - ReadWrite: list, get, put, delete, multi-part uploads.
//   - ReadOnly: list, get.
//   - WriteOnly: put, multi-part uploads, and where the bucket is; not list, get or delete.
//
// A policy is read, changed and written, and S3 has no condition on that write. So calls about one bucket
// take turns here, one driver process is meant to run at a time, and whoever edits policies by hand should
// not do it while grants are made.
//
// Revoke takes the account out of the policies and then deletes it, which ends the credential, also if a
// policy could not be written. versitygw refuses a policy that names an account which is gone; if such
// names were left in our statements, the next change of that policy drops them.
//
// # Configuration
//
// Keys come from the environment or from files, never from flags, where every user of the machine could
// read them: see Options.LoadKeys.
package s3
