package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

const kindAccess = "BucketAccess"

// handedOver is kept of an access from when it was first seen as the sidecar's. Its own age
// says nothing: it may have waited for its claim for days.
const handedOver = "handed over"

// accesses reconciles BucketAccesses up to their hand-off to the sidecar.
type accesses struct{ base }

func (r *accesses) add(mgr ctrl.Manager, o controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("bucketaccess").
		For(&api.BucketAccess{}).
		Watches(&api.BucketClaim{}, wake(r.ofClaim)).
		Watches(&api.Bucket{}, wake(r.ofBucket)).
		Watches(&api.BucketAccessClass{}, wake(r.ofClass)).
		WithOptions(o).Complete(r)
}

// pending are the keys of the accesses that still wait for something.
func (r *accesses) pending(ctx context.Context, options ...client.ListOption) (keys []types.NamespacedName) {
	for _, a := range list(ctx, &r.base, &api.BucketAccessList{}, options...).Items {
		if a.DeletionTimestamp.IsZero() && a.Status.DriverName == "" {
			keys = append(keys, key(&a))
		}
	}
	return keys
}

func (r *accesses) ofClaim(ctx context.Context, claim *api.BucketClaim) []types.NamespacedName {
	return r.pending(ctx, client.InNamespace(claim.Namespace), client.MatchingFields{accessesByClaims: claim.Name})
}

func (r *accesses) ofBucket(ctx context.Context, bucket *api.Bucket) []types.NamespacedName {
	claim := claimKey(bucket)
	return r.pending(ctx, client.InNamespace(claim.Namespace), client.MatchingFields{accessesByClaims: claim.Name})
}

func (r *accesses) ofClass(ctx context.Context, class *api.BucketAccessClass) []types.NamespacedName {
	return r.pending(ctx, client.MatchingFields{accessesByClass: class.Name})
}

// Reconcile brings one access to its hand-off, or lets it go if there was none.
func (r *accesses) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	access := &api.BucketAccess{}
	if err := r.client.Get(ctx, request.NamespacedName, access); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.watchOther(access, kindAccess)
	n, err := r.step(ctx, access)
	if err == nil && !n.empty() {
		err = r.tell(ctx, access, n)
	}
	return finish(ctx, reconcile.Result{RequeueAfter: n.after}, err)
}

func (r *accesses) step(ctx context.Context, access *api.BucketAccess) (notice, error) {
	switch {
	case !access.DeletionTimestamp.IsZero():
		return r.end(ctx, access)
	case access.Status.DriverName != "":
		// Handed over. With the override annotation the KEP gives it back to the controller;
		// what was handed over is final, so there is nothing to do but to keep off.
		return r.unserved(access, r.said.since(access.UID, handedOver)), nil
	default:
		return r.prepare(ctx, access)
	}
}

// unserved says it, after a while, where nobody says anything of an access that the sidecar
// has to serve or to revoke: there may be no sidecar that could. since is when its turn
// began.
func (r *accesses) unserved(access *api.BucketAccess, since time.Time) notice {
	going := !access.DeletionTimestamp.IsZero()
	if access.Status.Error != nil || !going && ptr.Deref(access.Status.ReadyToUse, false) {
		return notice{}
	}
	if left := r.patience - time.Since(since); left > 0 {
		return pause(left)
	}
	return wait(ReasonNotServed, "driver %q has to serve this access and has not said why it does not; see that a sidecar of this driver is running",
		access.Status.DriverName)
}

// prepare checks an access and hands it over to the sidecar.
func (r *accesses) prepare(ctx context.Context, access *api.BucketAccess) (notice, error) {
	p, n, err := r.check(ctx, access)
	if err != nil || !n.empty() || n.after > 0 {
		return n, err
	}
	if !ours(access) {
		err := r.patch(ctx, access, func() { controllerutil.AddFinalizer(access, v1alpha1.ProtectionFinalizer) })
		if err != nil {
			return notice{}, client.IgnoreNotFound(err)
		}
		if !access.DeletionTimestamp.IsZero() {
			return notice{}, nil
		}
	}
	// The claims as they are now. A claim that is being deleted lists the accesses, of which
	// this is one, before its Bucket goes; so either it sees this access or this sees that.
	for _, claim := range p.claims {
		now := &api.BucketClaim{}
		there, err := r.readLive(ctx, key(claim), claim.UID, now)
		if err != nil {
			return notice{}, err
		}
		if !there || !now.DeletionTimestamp.IsZero() {
			return refuse(ReasonClaimDeleting, "BucketClaim %s is being deleted", claim.Name), nil
		}
	}
	// All in one write, and worked out from this very version: this is the hand-off.
	return notice{}, r.patchStatus(ctx, access, func() {
		access.Status.ReadyToUse = ptr.To(false)
		access.Status.AccessedBuckets = p.buckets
		access.Status.DriverName = p.class.Spec.DriverName
		access.Status.AuthenticationType = p.class.Spec.AuthenticationType
		access.Status.Parameters = p.class.Spec.Parameters
		access.Status.Error = nil
	})
}

// tell puts a notice into the status of an access that is not the sidecar's.
func (r *accesses) tell(ctx context.Context, access *api.BucketAccess, n notice) error {
	told := n.told(access.Status.Error)
	if told == access.Status.Error && access.Status.ReadyToUse != nil && !*access.Status.ReadyToUse {
		return nil
	}
	err := r.patchStatus(ctx, access, func() { access.Status.ReadyToUse, access.Status.Error = ptr.To(false), told })
	if err == nil && !n.waits {
		r.warn(access, kindAccess, "Prepare", n.reason, n.text)
	}
	return client.IgnoreNotFound(err)
}
