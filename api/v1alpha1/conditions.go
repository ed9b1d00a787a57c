package v1alpha1

// Types of the conditions of an Intent.
const (
	// ConditionSettled is True when nothing is open: every call was answered and
	// the record says what is so. False means that work goes on.
	ConditionSettled = "Settled"

	// ConditionStuck is True when the record cannot go on without a person. Its
	// message says what to do.
	ConditionStuck = "Stuck"

	// ConditionInDoubt is True when a create call was never heard of, so that a
	// look in the backend must come before release.
	ConditionInDoubt = "InDoubt"

	// ConditionOverdue is True when the record has been on its way for longer than
	// the threshold that was set for it.
	ConditionOverdue = "Overdue"
)

// Reasons. The same words lead status.error of the object that is served and name
// its events, so that one word finds all that was said of a fault.

// Reasons that say that all is well. They stand where a condition that was raised
// no longer holds.
const (
	ReasonAnswered   = "Answered"   // Settled is True or InDoubt False: what was called was answered and kept
	ReasonUnhindered = "Unhindered" // Stuck or Overdue is False: nothing is in the way
	ReasonReleased   = "Released"   // Settled is True: nothing is left, the tombstone is kept
	ReasonRetained   = "Retained"   // Settled is True: the thing stays by its deletion policy
)

// ReasonCallUnanswered is the reason of ConditionInDoubt.
const ReasonCallUnanswered = "CallUnanswered"

// Reasons of package provision, word for word: provision.Why says when each holds
// and what to do.
const (
	ReasonAPIUnavailable  = "APIUnavailable"  // the API took no read or write
	ReasonAPIRefused      = "APIRefused"      // the API refuses what is to be written
	ReasonSettling        = "Settling"        // a lost create may still land
	ReasonCreateFailed    = "CreateFailed"    // the driver answered a create with an error
	ReasonDeleteFailed    = "DeleteFailed"    // the driver answered a delete with an error
	ReasonLookupFailed    = "LookupFailed"    // the driver could not read the thing by its id
	ReasonLookFailed      = "LookFailed"      // the driver could not look by name
	ReasonTemplateFailed  = "TemplateFailed"  // the template for ids gives none
	ReasonHandsOff        = "HandsOff"        // the record is not ours to act on
	ReasonOwnerGone       = "OwnerGone"       // the object vanished and nobody said that the thing may go
	ReasonNameTaken       = "NameTaken"       // something of this name exists and is not proved to be ours
	ReasonNoWayToLook     = "NoWayToLook"     // the driver offers no way to find what may be there
	ReasonSharedID        = "SharedID"        // another Intent holds one of the ids
	ReasonUnproven        = "Unproven"        // the id came from elsewhere and is not proved to be ours
	ReasonCredentialsLost = "CredentialsLost" // credentials are lost and can't be asked for again
	ReasonNameSpent       = "NameSpent"       // the name was used before and is under a tombstone
)

// Reasons that say more than package provision can know. Each stands in the place
// of one of its words.
const (
	// For HandsOff: whose the record is.
	ReasonNewerFormat  = "NewerFormat"
	ReasonOtherCluster = "OtherCluster"
	ReasonOtherOwner   = "OtherOwner"
	ReasonOtherDriver  = "OtherDriver"

	// For HandsOff: why nothing was asked of the driver at all.
	ReasonClaimGone      = "ClaimGone"      // the object's claim does not exist (any more)
	ReasonClaimDeleting  = "ClaimDeleting"  // the object's claim is being deleted
	ReasonNotHandedOver  = "NotHandedOver"  // the controller has not prepared the access
	ReasonBucketMismatch = "BucketMismatch" // what the access says of a Bucket is not what the Bucket says

	// For APIRefused: what is refused.
	ReasonIDRefused          = "IDRefused"          // the driver's id does not fit the API
	ReasonIDFinal            = "IDFinal"            // status has another id, which can't be changed
	ReasonProtocolMissing    = "ProtocolMissing"    // the driver's answer lacks a protocol
	ReasonCredentialsMissing = "CredentialsMissing" // the driver's answer lacks credentials
	ReasonSecretTaken        = "SecretTaken"        // a Secret of that name belongs to somebody else

	// For what waits.
	ReasonDriverDown    = "DriverDown"    // the driver can't be reached
	ReasonWaitsForClaim = "WaitsForClaim" // the Bucket is deleted, but its claim is not
)

// ReasonOtherController is the reason of an event: another program writes the
// status of the same objects.
const ReasonOtherController = "OtherController"
