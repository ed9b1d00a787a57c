package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

const kindClaim = "BucketClaim"

// claims reconciles BucketClaims.
type claims struct{ base }

func (r *claims) add(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("bucketclaim").
		For(&api.BucketClaim{}).
		Watches(&api.Bucket{}, wake(r.ofBucket)).
		Watches(&api.BucketClass{}, wake(r.ofClass)).
		// Which claims an access names never changes, so it matters when it comes and goes.
		Watches(&api.BucketAccess{}, wake(r.ofAccess), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WithOptions(o).Complete(r)
}

// ofBucket are the claims that may wait for a Bucket: its own, and those that name it.
func (r *claims) ofBucket(ctx context.Context, bucket *api.Bucket) []types.NamespacedName {
	keys := []types.NamespacedName{claimKey(bucket)}
	for _, c := range list(ctx, &r.base, &api.BucketClaimList{}, client.MatchingFields{claimsByBucket: bucket.Name}).Items {
		if key(&c) != keys[0] {
			keys = append(keys, key(&c))
		}
	}
	return keys
}

// ofClass are the claims that have no Bucket yet.
func (r *claims) ofClass(ctx context.Context, class *api.BucketClass) (keys []types.NamespacedName) {
	for _, c := range list(ctx, &r.base, &api.BucketClaimList{}, client.MatchingFields{claimsByClass: class.Name}).Items {
		if !ptr.Deref(c.Status.ReadyToUse, false) {
			keys = append(keys, key(&c))
		}
	}
	return keys
}

func (r *claims) ofAccess(_ context.Context, access *api.BucketAccess) (keys []types.NamespacedName) {
	for _, name := range claimNames(access) {
		keys = append(keys, types.NamespacedName{Namespace: access.Namespace, Name: name})
	}
	return keys
}

// Reconcile brings one claim on.
func (r *claims) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &api.BucketClaim{}
	if err := r.client.Get(ctx, request.NamespacedName, claim); err != nil {
		if apierrors.IsNotFound(err) {
			err = r.leftBehind(ctx, request.NamespacedName)
		}
		return finish(ctx, reconcile.Result{}, err)
	}
	r.watchOther(claim, kindClaim)
	n, err := r.step(ctx, claim)
	if err == nil && !n.empty() {
		err = r.tell(ctx, claim, n)
	}
	return finish(ctx, reconcile.Result{RequeueAfter: n.after}, err)
}

func (r *claims) step(ctx context.Context, claim *api.BucketClaim) (notice, error) {
	switch {
	case !claim.DeletionTimestamp.IsZero():
		return r.release(ctx, claim)
	case claim.Spec.ExistingBucketName != "":
		return r.bind(ctx, claim)
	default:
		return r.provision(ctx, claim)
	}
}

// tell puts a notice into the status of a claim that is not ready.
func (r *claims) tell(ctx context.Context, claim *api.BucketClaim, n notice) error {
	changed, err := r.writeStatus(ctx, claim, func(s *api.BucketClaimStatus) {
		s.ReadyToUse, s.Error = ptr.To(false), n.told(s.Error)
	})
	if changed && err == nil && !n.waits {
		r.warn(claim, kindClaim, "Bind", n.reason, n.text)
	}
	// A claim that is on its last leg may be gone by now.
	return client.IgnoreNotFound(err)
}

// settle says that the claim is ready, in one write.
func (r *claims) settle(ctx context.Context, claim *api.BucketClaim, bucket *api.Bucket) error {
	_, err := r.writeStatus(ctx, claim, func(s *api.BucketClaimStatus) {
		s.BoundBucketName, s.ReadyToUse, s.Error = bucket.Name, ptr.To(true), nil
		if len(bucket.Status.Protocols) > 0 {
			s.Protocols = bucket.Status.Protocols
		}
	})
	return err
}

// appease takes an error off that does not hold any more, while the claim is not ready
// yet. A claim without one is not written.
func (r *claims) appease(ctx context.Context, claim *api.BucketClaim) error {
	if claim.Status.Error == nil && !ptr.Deref(claim.Status.ReadyToUse, false) {
		return nil
	}
	_, err := r.writeStatus(ctx, claim, func(s *api.BucketClaimStatus) { s.ReadyToUse, s.Error = ptr.To(false), nil })
	return err
}

// writeStatus writes the status if it changes, and tells whether it did.
func (r *claims) writeStatus(ctx context.Context, claim *api.BucketClaim, change func(*api.BucketClaimStatus)) (bool, error) {
	wanted := claim.Status.DeepCopy()
	change(wanted)
	if equality.Semantic.DeepEqual(claim.Status, *wanted) {
		return false, nil
	}
	return true, r.patchStatus(ctx, claim, func() { claim.Status = *wanted })
}

// protect puts our finalizer on a claim, with the hint for upstream's tools in the same
// write, if either is not as it should be. The claim then is as the API server has it at
// this moment or at the last write of this process; fresh tells which.
func (r *claims) protect(ctx context.Context, claim *api.BucketClaim) (fresh bool, err error) {
	inUse := len(r.users(ctx, claim)) > 0
	if _, hint := claim.Annotations[api.AnnotationHasBucketAccessReferences]; ours(claim) && hint == inUse {
		return false, nil
	}
	return true, r.patch(ctx, claim, func() {
		controllerutil.AddFinalizer(claim, v1alpha1.ProtectionFinalizer)
		hint(claim, api.AnnotationHasBucketAccessReferences, inUse)
	})
}

// secure puts the finalizer on and tells whether the API server itself says, from then on,
// that this very claim is there and not being deleted. Only then is anything made for it.
func (r *claims) secure(ctx context.Context, claim *api.BucketClaim) (bool, error) {
	fresh, err := r.protect(ctx, claim) // a patch answers with the claim as it is now
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !fresh {
		if there, err := r.readLive(ctx, key(claim), claim.UID, claim); err != nil || !there {
			return false, err
		}
	}
	return claim.DeletionTimestamp.IsZero(), nil
}

// hint writes or removes an annotation that other tools read. Nothing here is decided by it.
func hint(object client.Object, annotation string, on bool) {
	annotations := object.GetAnnotations()
	if !on {
		delete(annotations, annotation)
	} else if _, ok := annotations[annotation]; !ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotation] = "true"
	}
	object.SetAnnotations(annotations)
}

// users are the accesses that name a claim, by the cache.
func (r *claims) users(ctx context.Context, claim *api.BucketClaim) (names []string) {
	for _, a := range list(ctx, &r.base, &api.BucketAccessList{},
		client.InNamespace(claim.Namespace), client.MatchingFields{accessesByClaims: claim.Name}).Items {
		names = append(names, a.Name)
	}
	return names
}

// leftBehind looks for Buckets of a claim of this name that is gone. Normally there are
// none, or such as their policy keeps. One with policy Delete means that the claim lost its
// finalizer to a replace, or was removed by force. It is not deleted on that evidence: a
// restore brings claims back under new UIDs. It is said.
func (r *claims) leftBehind(ctx context.Context, claim types.NamespacedName) error {
	for _, cached := range list(ctx, &r.base, &api.BucketList{}, client.MatchingFields{bucketsByClaim: claim.String()}).Items {
		if !leaves(&cached) {
			continue
		}
		bucket := &api.Bucket{}
		there, err := r.readLive(ctx, key(&cached), cached.UID, bucket)
		if err != nil {
			return err
		}
		if !there || !leaves(bucket) {
			continue
		}
		uid := bucket.Spec.BucketClaimRef.UID
		if alive, err := r.readLive(ctx, claim, uid, &api.BucketClaim{}); err != nil {
			return err
		} else if alive {
			continue
		}
		r.warnOnce(bucket, "Bucket", "Release", ReasonClaimGone, fmt.Sprintf(
			"BucketClaim %s with UID %s is gone without having released this Bucket, which is kept. "+
				"If nobody needs its data, delete the Bucket; to bind it again, set it aside for a new claim as described in docs/backup.md",
			claim, uid))
	}
	return nil
}

// leaves tells whether a Bucket should have gone with its claim.
func leaves(bucket *api.Bucket) bool {
	return bucket.DeletionTimestamp.IsZero() && bucket.Spec.BucketClaimRef.UID != "" &&
		bucket.Spec.DeletionPolicy == api.DeletionPolicyDelete
}
