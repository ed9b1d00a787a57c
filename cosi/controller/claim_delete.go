package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// release lets a claim go that is being deleted: when no access names it any more, and its
// Bucket is gone or stays by policy.
func (r *claims) release(ctx context.Context, claim *api.BucketClaim) (notice, error) {
	if !protected(claim) {
		return notice{}, nil
	}
	// Clean-up that the cache sees is waited for without asking the API server.
	users := r.users(ctx, claim)
	if len(users) == 0 {
		var err error
		if users, err = r.liveUsers(ctx, claim); err != nil {
			return notice{}, err
		}
	}
	if len(users) > 0 {
		return r.inUse(ctx, claim, users)
	}

	bucket, err := r.bucketOf(ctx, claim)
	if err != nil {
		return notice{}, err
	}
	if bucket == nil {
		return notice{}, r.free(ctx, claim)
	}
	going, goes := !bucket.DeletionTimestamp.IsZero(), bucket.Spec.DeletionPolicy == api.DeletionPolicyDelete
	// Upstream's sidecar waits for this hint, also if the Bucket was deleted first; ours asks
	// the API server about the claim, and is woken by it.
	if (going || goes) && !api.BucketClaimBeingDeleted(bucket.Annotations) {
		if err := r.patch(ctx, bucket, func() { hint(bucket, api.AnnotationBucketClaimBeingDeleted, true) }); err != nil {
			return notice{}, client.IgnoreNotFound(err)
		}
	}
	switch {
	case !goes:
		return notice{}, r.free(ctx, claim)
	case going:
		return r.leaving(bucket), nil
	}
	// The event of its end wakes this claim, which then asks the API server once more.
	return notice{}, client.IgnoreNotFound(r.client.Delete(ctx, bucket, client.Preconditions{UID: &bucket.UID}))
}

// leaving says why a Bucket that is being deleted is still there. Where no sidecar of its
// driver runs, nobody else would ever say anything.
func (r *claims) leaving(bucket *api.Bucket) notice {
	if n := troubled(bucket); !n.empty() {
		return n
	}
	if left := r.patience - time.Since(bucket.DeletionTimestamp.Time); left > 0 {
		return pause(left)
	}
	return wait(ReasonBucketDeleting, "Bucket %s is being deleted and driver %q has not said why it is still there; see that a sidecar of this driver is running",
		bucket.Name, bucket.Spec.DriverName)
}

// bucketOf is the Bucket that is bound to a claim, from the API server, or nil.
func (r *claims) bucketOf(ctx context.Context, claim *api.BucketClaim) (*api.Bucket, error) {
	name := claim.Spec.ExistingBucketName
	if name == "" {
		name = api.BucketName(claim)
	}
	bucket := &api.Bucket{}
	there, err := r.readLive(ctx, types.NamespacedName{Name: name}, "", bucket)
	if err != nil || !there || !boundTo(bucket, claim) {
		return nil, err
	}
	return bucket, nil
}

// liveUsers are the accesses that name a claim, by the API server. An access that is made
// after this finds the claim deleting, since it reads it live, too.
func (r *claims) liveUsers(ctx context.Context, claim *api.BucketClaim) (names []string, err error) {
	all := &api.BucketAccessList{}
	if err := r.live.List(ctx, all, client.InNamespace(claim.Namespace)); err != nil {
		return nil, err
	}
	for _, access := range all.Items {
		if slices.Contains(claimNames(&access), claim.Name) {
			names = append(names, access.Name)
		}
	}
	return names, nil
}

const namesShown = 5

// inUse says which accesses a claim waits for, also to upstream's tools.
func (r *claims) inUse(ctx context.Context, claim *api.BucketClaim, users []string) (notice, error) {
	if !metav1.HasAnnotation(claim.ObjectMeta, api.AnnotationHasBucketAccessReferences) {
		if err := r.patch(ctx, claim, func() { hint(claim, api.AnnotationHasBucketAccessReferences, true) }); err != nil {
			return notice{}, err
		}
	}
	slices.Sort(users)
	shown := strings.Join(users[:min(len(users), namesShown)], ", ")
	if len(users) > namesShown {
		shown += ", ..."
	}
	return refuse(ReasonInUse, "the claim is deleted when no BucketAccess names it; %d do: %s", len(users), shown), nil
}
