package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// end lets an access go that is being deleted, if it was never handed over. Otherwise
// the sidecar revokes it and takes the finalizer off itself, once its Intent says that
// nothing is left.
func (r *accesses) end(ctx context.Context, access *api.BucketAccess) (notice, error) {
	if !protected(access) {
		return notice{}, nil
	}
	// Live: another controller may have handed it over a moment ago.
	if there, err := r.readLive(ctx, key(access), access.UID, access); err != nil || !there || !protected(access) {
		return notice{}, err
	}
	intent := &v1alpha1.Intent{}
	there, err := r.readLive(ctx, types.NamespacedName{Name: api.AccountName(access)}, "", intent)
	if err != nil {
		return notice{}, err
	}
	released := there && tombstone(intent)
	_, override := access.Annotations[api.AnnotationControllerManagementOverride]
	switch {
	case access.Status.DriverName == "" && (!there || released):
		return notice{}, r.free(ctx, access)
	case access.Status.DriverName != "" && override && released:
		// An admin took the access from the sidecar, and the Intent says that it is done.
		return notice{}, r.free(ctx, access)
	case access.Status.DriverName != "":
		r.refuseHints(access, there, intent)
		return r.unserved(access, access.DeletionTimestamp.Time), nil
	default:
		return r.handBack(ctx, access, intent)
	}
}

// refuseHints says that an annotation which claims the clean-up to be done, or asks the
// controller to see to it, frees nothing while nothing else says so.
func (r *accesses) refuseHints(access *api.BucketAccess, there bool, intent *v1alpha1.Intent) {
	for _, annotation := range []string{api.AnnotationSidecarCleanupFinished, api.AnnotationControllerManagementOverride} {
		if !metav1.HasAnnotation(access.ObjectMeta, annotation) {
			continue
		}
		state := fmt.Sprintf("no Intent %s says that nothing was granted", api.AccountName(access))
		if there {
			if tombstone(intent) {
				continue // the sidecar is about to take the finalizer off
			}
			state = fmt.Sprintf("Intent %s is %s", intent.Name, intent.Spec.Phase)
		}
		r.warnOnce(access, kindAccess, "Release", ReasonAnnotationIgnored, fmt.Sprintf(
			"annotation %s is not taken as proof: %s. The sidecar of driver %q revokes the access and lets it go; see that it runs, or custody intents explain %s",
			annotation, state, access.Status.DriverName, api.AccountName(access)))
	}
}

// handBack gives an access to the sidecar again whose status was lost, by a restore or by
// somebody's hand, though an Intent says that the driver was asked. What the sidecar
// revokes it reads from the Intent.
func (r *accesses) handBack(ctx context.Context, access *api.BucketAccess, intent *v1alpha1.Intent) (notice, error) {
	n := notice{}
	if err := v1alpha1.ReadFormat(intent); err != nil {
		n = refuse(ReasonHandsOff, "%v", err)
	} else if intent.Spec.Owner.UID != access.UID || intent.Spec.Kind != v1alpha1.KindAccess {
		n = refuse(ReasonHandsOff, "intent %s is not that of this access; see custody intents explain %s", intent.Name, intent.Name)
	}
	if !n.empty() {
		n.after = intentPoll
		return n, nil
	}
	return notice{}, r.patchStatus(ctx, access, func() {
		access.Status.ReadyToUse = ptr.To(false)
		access.Status.DriverName = intent.Spec.Driver
		access.Status.AuthenticationType = api.AuthenticationType(intent.Spec.Inputs.AuthenticationType)
		access.Status.Parameters = intent.Spec.Inputs.Parameters
	})
}

// tombstone tells whether an Intent says that nothing is left of what it stood for.
func tombstone(intent *v1alpha1.Intent) bool {
	return v1alpha1.ReadFormat(intent) == nil &&
		(intent.Spec.Phase == v1alpha1.PhaseReleased || intent.Spec.Phase == v1alpha1.PhaseSweeping)
}
