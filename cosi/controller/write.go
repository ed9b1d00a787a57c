package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Every patch names the version it was worked out from, and so the UID: it never hits an
// object that was deleted and made again under the same name (fault 13 of the COSI
// issues), and it never takes off a finalizer that somebody put on meanwhile.

// patch sends what change does to the object, its status left out. The object then is as
// the API server answered.
func (b *base) patch(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	return b.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// patchStatus sends what change does to the status.
func (b *base) patchStatus(ctx context.Context, object client.Object, change func()) error {
	before := object.DeepCopyObject().(client.Object)
	change()
	return b.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// protected tells whether a finalizer of ours or of upstream's is on the object.
func protected(object client.Object) bool {
	return ours(object) || controllerutil.ContainsFinalizer(object, api.ProtectionFinalizer)
}

func ours(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, v1alpha1.ProtectionFinalizer)
}

// free takes both finalizers off. The object may be gone already.
func (b *base) free(ctx context.Context, object client.Object) error {
	if !protected(object) {
		return nil
	}
	return client.IgnoreNotFound(b.patch(ctx, object, func() {
		controllerutil.RemoveFinalizer(object, v1alpha1.ProtectionFinalizer)
		controllerutil.RemoveFinalizer(object, api.ProtectionFinalizer)
	}))
}

// readLive reads an object from the API server. It answers false if there is none, or only
// one with another UID; an empty uid takes any.
func (b *base) readLive(ctx context.Context, key client.ObjectKey, uid types.UID, into client.Object) (bool, error) {
	if err := b.live.Get(ctx, key, into); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return uid == "" || into.GetUID() == uid, nil
}

// finish turns the outcome of a reconciliation into a request to the queue. That
// somebody else wrote first is no failure and is shown to nobody (fault 15 of the COSI
// issues): the next look decides anew.
func finish(ctx context.Context, next reconcile.Result, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).V(1).Info("somebody else wrote first", "answer", err.Error())
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	return next, err
}
