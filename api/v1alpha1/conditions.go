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

// Reasons of ConditionSettled.
const (
	ReasonAnswered    = "Answered"    // True: the last call was answered and kept
	ReasonReleased    = "Released"    // True: nothing is left, the tombstone is kept
	ReasonRetained    = "Retained"    // True: the thing stays by policy
	ReasonAttemptOpen = "AttemptOpen" // False: a create call is open
	ReasonDeleting    = "Deleting"    // False: ids or names are still to be deleted
	ReasonSettling    = "Settling"    // False: waiting until a lost call can't land any more
	ReasonSweeping    = "Sweeping"    // False: a tombstone is being swept
)

// Reasons of ConditionInDoubt.
const (
	ReasonCallUnanswered  = "CallUnanswered"  // a create call timed out or its answer was lost
	ReasonOtherAttempt    = "OtherAttempt"    // an attempt that this process did not open was found
	ReasonTakenOver       = "TakenOver"       // the object had a finalizer and no Intent
	ReasonEveryCallClosed = "EveryCallClosed" // False: every call was answered
)

// Reasons of ConditionStuck and, for those that pass by themselves, of
// ConditionSettled.
const (
	ReasonNoWayToLook     = "NoWayToLook"     // the driver offers no way to find what may be there
	ReasonNotOurs         = "NotOurs"         // something of this name exists and is not proved to be ours
	ReasonUnproven        = "Unproven"        // an id came from elsewhere and is not proved to be ours
	ReasonSharedID        = "SharedID"        // another Intent holds one of the ids
	ReasonNameSpent       = "NameSpent"       // the name was used before and is under a tombstone
	ReasonOwnerGone       = "OwnerGone"       // the object vanished and nobody said that the thing may go
	ReasonNewerFormat     = "NewerFormat"     // the record is of a newer format
	ReasonOtherCluster    = "OtherCluster"    // the record belongs to another cluster
	ReasonOtherOwner      = "OtherOwner"      // the record belongs to another object of the same name
	ReasonOtherDriver     = "OtherDriver"     // the record belongs to another driver
	ReasonAPIRefuses      = "APIRefuses"      // the API server refuses what is to be written, an id for instance
	ReasonTemplateFails   = "TemplateFails"   // the template for ids gives none
	ReasonCredentialsLost = "CredentialsLost" // credentials are lost and can't be asked for again
	ReasonInputMissing    = "InputMissing"    // a Secret that the driver needs is gone
	ReasonDriverRefuses   = "DriverRefuses"   // the driver answers an error that a repeat won't change
	ReasonDriverDown      = "DriverDown"      // the driver can't be reached
	ReasonNotEmpty        = "NotEmpty"        // the bucket holds objects
	ReasonUnhindered      = "Unhindered"      // False: nothing is in the way
)
