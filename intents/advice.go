package intents

import (
	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/provision"
)

// advice says for each reason what a person can do. Reasons that pass by themselves say
// what to look at if they don't.
var advice = map[string][]string{
	v1alpha1.ReasonAPIUnavailable: {"See whether the API server is well; it is tried again by itself."},
	v1alpha1.ReasonAPIRefused:     {"The message has the API server's own words. If they speak of an admission policy, add the sidecar's account to ConfigMap custody-admission."},
	v1alpha1.ReasonSettling:       {"Nothing: this ends by itself after the sidecar's --settle."},
	v1alpha1.ReasonCreateFailed:   {"The message has the driver's words. It is tried again by itself; a class with wrong parameters never gets better: delete the claim and make one of a class that is right."},
	v1alpha1.ReasonDeleteFailed: {"The message has the driver's words. It is tried again by itself.",
		"A bucket that holds objects: empty it, with the keys of an access or of the backend."},
	v1alpha1.ReasonLookupFailed:   {"The message has the driver's words. See whether a bucket of that id exists; it is tried again by itself."},
	v1alpha1.ReasonLookFailed:     {"The message has the driver's words. It is tried again by itself."},
	v1alpha1.ReasonTemplateFailed: {"Mend the sidecar's --bucket-id-template or --account-id-template; the message says what lacks."},
	v1alpha1.ReasonHandsOff:       {"Nothing acts on this record. `kubectl get intent NAME -o yaml` shows whose it is."},
	v1alpha1.ReasonOwnerGone: {"If the object is to come back (a restore that is not finished, an application that makes it again): wait.",
		"If it is gone for good, decide."},
	v1alpha1.ReasonNameTaken: {"Look in the backend who has made what bears this name.",
		"If it is somebody else's: delete the claim and make another; its name will be a new one."},
	v1alpha1.ReasonNoWayToLook: {"Look in the backend for what bears the name above, and delete it there if it is not wanted.",
		"If ids of this driver follow from names, give its sidecar --bucket-id-template or --account-id-template, and no one need look by hand again (docs/upgrade.md has a table of drivers)."},
	v1alpha1.ReasonSharedID: {"Find the other record: custody intents list -o wide. Two claims were bound to one bucket. Delete one of them with policy Retain."},
	v1alpha1.ReasonUnproven: {"Look in the backend whether the id is this object's."},
	v1alpha1.ReasonCredentialsLost: {"Delete the BucketAccess and make it again: the keys of this account can't be had a second time.",
		"Pods that use its Secret need the new one."},
	v1alpha1.ReasonNameSpent:          {"Make a new claim. Names of COSI hold the claim's UID, so this one comes only from a restored or copied Bucket."},
	v1alpha1.ReasonNewerFormat:        {"Upgrade this program and every Custody program in the cluster to the release that wrote the record."},
	v1alpha1.ReasonOtherCluster:       {"docs/backup.md says how to bind here what the record names, and how to remove the record afterwards."},
	v1alpha1.ReasonOtherOwner:         {"Choose another name for the new object, or let go of what the earlier one had. What the record names is the earlier one's."},
	v1alpha1.ReasonOtherDriver:        {"Make a new claim: the name was asked of another driver before."},
	v1alpha1.ReasonClaimGone:          {"Delete the Bucket: nothing was provisioned for it."},
	v1alpha1.ReasonClaimDeleting:      {"Nothing: the Bucket goes with its claim."},
	v1alpha1.ReasonNotHandedOver:      {"See whether `custody cosi controller` runs; it prepares the access."},
	v1alpha1.ReasonBucketMismatch:     {"Delete the BucketAccess and make it again; find out who wrote its status."},
	v1alpha1.ReasonIDRefused:          {"This driver's ids do not fit the COSI API. The bucket is on record and goes when its claim is deleted; the driver must be mended."},
	v1alpha1.ReasonIDFinal:            {"The object's status has another id, which can't be changed. Delete the claim or access and make it again."},
	v1alpha1.ReasonProtocolMissing:    {"The driver does not serve a protocol that the claim asks for. Delete the claim and ask for one that it serves."},
	v1alpha1.ReasonCredentialsMissing: {"The driver answered no credentials. It is asked again by itself; see the driver's log."},
	v1alpha1.ReasonSecretTaken:        {"A Secret of that name belongs to somebody else: remove it, or delete the BucketAccess and make one that names another."},
	v1alpha1.ReasonDriverDown:         {"See whether the driver's Pod runs, and whether driver and sidecar share the folder of the socket."},
	v1alpha1.ReasonWaitsForClaim:      {"Delete the BucketClaim: the Bucket goes with it."},
	v1alpha1.ReasonReleased:           {"Nothing: the tombstone ends by itself when the sidecar's --tombstone is over."},
	v1alpha1.ReasonRetained:           {"To use it again, bind it by its id: docs/backup.md."},
	v1alpha1.ReasonOtherController:    {"Stop the other program: two COSI controllers must not work on the same objects."},
}

// reasonText is what package provision says of one of its reasons.
func reasonText(reason string) string {
	for w := provision.WhyNone; w.String() != "Unknown"; w++ {
		if w.String() == reason && reason != "" {
			return w.Text()
		}
	}
	return ""
}
