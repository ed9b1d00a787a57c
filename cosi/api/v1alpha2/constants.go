package v1alpha2

// ProtectionFinalizer is the finalizer that upstream COSI puts on BucketClaims,
// Buckets and BucketAccesses. On an object that has no Intent it means that
// upstream may have asked a driver for something: such an object is in doubt and
// is not let go without a look at the backend.
const ProtectionFinalizer = "objectstorage.k8s.io/protection"

// Annotations of the COSI API. Anybody who may edit an object can write them and
// a replace drops them: they are hints for the hand-off between controllers,
// never a reason to delete something in a backend.
const (
	// AnnotationBucketClaimBeingDeleted on a Bucket says that its BucketClaim is
	// being deleted. This is the KEP's spelling, and the one to write.
	AnnotationBucketClaimBeingDeleted = "objectstorage.k8s.io/bucketclaim-being-deleted"

	// AnnotationBucketClaimBeingDeletedMisspelt is what upstream's code writes
	// (k8 for k8s). It is read, never written.
	AnnotationBucketClaimBeingDeletedMisspelt = "objectstorage.k8.io/bucketclaim-being-deleted"

	// AnnotationHasBucketAccessReferences on a BucketClaim says that at least one
	// BucketAccess names it. Deletion of the claim waits while it stands.
	AnnotationHasBucketAccessReferences = "objectstorage.k8s.io/has-bucketaccess-references"

	// AnnotationSidecarCleanupFinished on a BucketAccess that is being deleted
	// says that the sidecar has revoked the access; the controller does the rest.
	AnnotationSidecarCleanupFinished = "objectstorage.k8s.io/sidecar-cleanup-finished"

	// AnnotationControllerManagementOverride on a BucketAccess gives it back to
	// the controller for as long as it stands.
	AnnotationControllerManagementOverride = "objectstorage.k8s.io/controller-management-override"
)

// Prefixes of the names that are derived from a UID. See BucketName and
// AccountName.
const (
	BucketNamePrefix  = "bc-"
	AccountNamePrefix = "ba-"
)

// Limits of the API, in bytes for ASCII fields and in members for lists and maps.
const (
	MaxNameLength       = 253
	MaxDriverNameLength = 63
	MaxIDLength         = 2048
	MaxParameters       = 512
	MaxBucketClaims     = 128
	MaxBucketInfo       = 128
	MaxErrorMessage     = 1572864
)

// BucketClaimBeingDeleted tells whether a Bucket's annotations say that its claim
// is being deleted, in either spelling.
func BucketClaimBeingDeleted(annotations map[string]string) bool {
	if _, ok := annotations[AnnotationBucketClaimBeingDeleted]; ok {
		return true
	}
	_, ok := annotations[AnnotationBucketClaimBeingDeletedMisspelt]
	return ok
}

// BucketName is the name of the Bucket object and of the backend bucket that a
// BucketClaim asks for. It holds the claim's UID, so no other claim ever gets it.
// The claim must have been read from the API server: without a UID the answer is
// the empty string.
func BucketName(claim *BucketClaim) string {
	if claim.UID == "" {
		return ""
	}
	return BucketNamePrefix + string(claim.UID)
}

// AccountName is the name of the backend account that a BucketAccess asks for. It
// holds the UID of the access. Without a UID the answer is the empty string.
func AccountName(access *BucketAccess) string {
	if access.UID == "" {
		return ""
	}
	return AccountNamePrefix + string(access.UID)
}
