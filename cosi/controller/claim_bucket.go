package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// provision gives a claim of a class its Bucket, of a name that holds the claim's UID.
func (r *claims) provision(ctx context.Context, claim *api.BucketClaim) (notice, error) {
	name := api.BucketName(claim)
	if bound := claim.Status.BoundBucketName; bound != "" && bound != name {
		return refuse(ReasonBoundElsewhere, "the status names Bucket %s, which was not made for this claim (its own would be %s); "+
			"the claim was restored or its status forged. Delete it and make it again; to get at the data of %s, set that Bucket aside for a new claim",
			bound, name, bound), nil
	}
	bucket := &api.Bucket{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, bucket); err != nil {
		if apierrors.IsNotFound(err) {
			return r.create(ctx, claim)
		}
		return notice{}, err
	}
	if !boundTo(bucket, claim) {
		return refuse(ReasonBoundElsewhere, "Bucket %s has the name of this claim's Bucket and is meant for %s with UID %q. "+
			"Somebody made it by hand: an admin must remove it", name, claimKey(bucket), bucket.Spec.BucketClaimRef.UID), nil
	}
	if _, err := r.protect(ctx, claim); err != nil {
		return notice{}, err
	}
	return r.show(ctx, claim, bucket)
}

// boundTo tells whether a Bucket is bound to this very claim.
func boundTo(bucket *api.Bucket, claim *api.BucketClaim) bool {
	return claimKey(bucket) == key(claim) && bucket.Spec.BucketClaimRef.UID == claim.UID
}

// create makes the Bucket of a claim, with our finalizer in the same write.
func (r *claims) create(ctx context.Context, claim *api.BucketClaim) (notice, error) {
	class := &api.BucketClass{}
	err := r.client.Get(ctx, types.NamespacedName{Name: claim.Spec.BucketClassName}, class)
	if client.IgnoreNotFound(err) != nil {
		return notice{}, err
	}
	hasClass := err == nil
	spec := api.BucketSpec{
		DriverName:     class.Spec.DriverName,
		DeletionPolicy: class.Spec.DeletionPolicy,
		Parameters:     class.Spec.Parameters,
		Protocols:      claim.Spec.Protocols,
		BucketClaimRef: api.BucketClaimReference{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
	}
	// A claim that had our finalizer before may have had a Bucket before, and the driver
	// may have been asked for it. Then it is the Intent that says of which driver and with
	// which inputs, whatever the class has become (fault 17 of the COSI issues).
	hasIntent := false
	if ours(claim) {
		intent := &v1alpha1.Intent{}
		if hasIntent, err = r.readLive(ctx, types.NamespacedName{Name: api.BucketName(claim)}, "", intent); err != nil {
			return notice{}, err
		}
		if hasIntent {
			if n := remake(&spec, intent, hasClass); !n.empty() {
				return n, nil
			}
		}
	}
	if !hasClass && !hasIntent {
		return refuse(ReasonClassNotFound, "BucketClass %q does not exist; the claim goes on when it is made", claim.Spec.BucketClassName), nil
	}

	if alive, err := r.secure(ctx, claim); err != nil || !alive {
		return notice{}, err // its event is on the way
	}

	bucket := &api.Bucket{
		ObjectMeta: metav1.ObjectMeta{Name: api.BucketName(claim), Finalizers: []string{v1alpha1.ProtectionFinalizer}},
		Spec:       spec,
	}
	err = r.client.Create(ctx, bucket)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		// Told to the user, and tried again: permissions and policies get mended.
		n := refuse(ReasonBucketRefused, "the API server refuses Bucket %s: %v", bucket.Name, err)
		n.after = maxBackoff
		return n, nil
	}
	if err != nil {
		return notice{}, err
	}
	if err := r.leftBehind(ctx, key(claim)); err != nil {
		return notice{}, err
	}
	return r.show(ctx, claim, bucket)
}

// remake fills the spec of a Bucket that is made a second time from the Intent of the
// first. Where the class is gone, nobody says any more that the data may go: Retain.
func remake(spec *api.BucketSpec, intent *v1alpha1.Intent, hasClass bool) notice {
	if err := v1alpha1.ReadFormat(intent); err != nil {
		return refuse(ReasonHandsOff, "%v", err)
	}
	if intent.Spec.Owner.Kind != "Bucket" || intent.Spec.Name != intent.Name {
		return refuse(ReasonHandsOff, "intent %s is not that of this claim's Bucket; see custody intents explain %s", intent.Name, intent.Name)
	}
	spec.DriverName = intent.Spec.Driver
	spec.Parameters = intent.Spec.Inputs.Parameters
	if !hasClass {
		spec.DeletionPolicy = api.DeletionPolicyRetain
	}
	return notice{}
}

// bind gives a claim the Bucket that an admin has set aside for it.
func (r *claims) bind(ctx context.Context, claim *api.BucketClaim) (notice, error) {
	name := claim.Spec.ExistingBucketName
	if bound := claim.Status.BoundBucketName; bound != "" && bound != name {
		return refuse(ReasonBoundElsewhere, "the status names Bucket %s and the spec %s: the status was restored or forged. "+
			"Delete the claim and make it again", bound, name), nil
	}
	bucket := &api.Bucket{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, bucket); err != nil {
		if apierrors.IsNotFound(err) {
			return refuse(ReasonBucketNotFound, "Bucket %q does not exist; the claim goes on when an admin has made it", name), nil
		}
		return notice{}, err
	}
	ref := bucket.Spec.BucketClaimRef
	switch {
	case claimKey(bucket) != key(claim):
		return refuse(ReasonBoundElsewhere, "Bucket %s is set aside for another claim: its bucketClaimRef must name this one (namespace %s, name %s)",
			name, claim.Namespace, claim.Name), nil
	case ref.UID != "" && ref.UID != claim.UID:
		return refuse(ReasonBoundElsewhere, "Bucket %s was bound to an earlier claim of this name, with UID %s. To use its data again, "+
			"an admin makes a new Bucket with the same existingBucketID, without a UID in bucketClaimRef", name, ref.UID), nil
	}
	if n := speaks(name, bucket.Spec.Protocols, claim.Spec.Protocols); len(bucket.Spec.Protocols) > 0 && !n.empty() {
		return n, nil
	}
	if n := speaks(name, bucket.Status.Protocols, claim.Spec.Protocols); len(bucket.Status.Protocols) > 0 && !n.empty() {
		return n, nil
	}

	if ref.UID == "" && bucket.DeletionTimestamp.IsZero() {
		if alive, err := r.secure(ctx, claim); err != nil || !alive {
			return notice{}, err
		}
		// The patch names the version in which there is no UID yet: of two claims one gets it.
		if err := r.patch(ctx, bucket, func() { bucket.Spec.BucketClaimRef.UID = claim.UID }); err != nil {
			return notice{}, err
		}
	}
	if !boundTo(bucket, claim) {
		return refuse(ReasonBucketDeleting, "Bucket %s is being deleted", name), nil
	}
	if _, err := r.protect(ctx, claim); err != nil {
		return notice{}, err
	}
	return r.show(ctx, claim, bucket)
}

// show tells a claim how its Bucket is. Of a Bucket that is on its way nothing is said at
// first: on the fast path the status is written once.
func (r *claims) show(ctx context.Context, claim *api.BucketClaim, bucket *api.Bucket) (notice, error) {
	if !bucket.DeletionTimestamp.IsZero() {
		return refuse(ReasonBucketDeleting, "Bucket %s is being deleted and waits for this claim. A deletion can't be taken back: "+
			"save the data, then delete the claim", bucket.Name), nil
	}
	if ptr.Deref(bucket.Status.ReadyToUse, false) {
		if n := speaks(bucket.Name, bucket.Status.Protocols, claim.Spec.Protocols); !n.empty() {
			return n, nil
		}
		return notice{}, r.settle(ctx, claim, bucket)
	}
	if n := troubled(bucket); !n.empty() {
		return n, nil
	}
	if left := r.patience - time.Since(bucket.CreationTimestamp.Time); left > 0 {
		return pause(left), r.appease(ctx, claim)
	}
	return wait(ReasonBucketNotReady, "Bucket %s is not ready and driver %q has not said why; see that a sidecar of this driver is running",
		bucket.Name, bucket.Spec.DriverName), nil
}

// troubled hands on what stands in the way of a Bucket: users can't read Buckets.
func troubled(bucket *api.Bucket) notice {
	e := bucket.Status.Error
	if e == nil || e.Message == nil {
		return notice{}
	}
	reason := e.Reason()
	if reason == "" {
		reason = ReasonBucketNotReady
	}
	return refuse(reason, "Bucket %s: %s", bucket.Name, e.Text())
}

// speaks refuses if a bucket lacks a protocol that is asked for.
func speaks(bucket string, has, wants []api.ObjectProtocol) notice {
	var lacks []string
	for _, p := range wants {
		if !slices.Contains(has, p) {
			lacks = append(lacks, string(p))
		}
	}
	if lacks == nil {
		return notice{}
	}
	return refuse(ReasonProtocolUnsupported, "Bucket %s does not speak %s, only %s", bucket, strings.Join(lacks, ", "), spoken(has))
}

func spoken(protocols []api.ObjectProtocol) string {
	if len(protocols) == 0 {
		return "no protocol that it has named"
	}
	return strings.Trim(fmt.Sprint(protocols), "[]")
}
