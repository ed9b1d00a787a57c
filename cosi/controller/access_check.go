package controller

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// prepared is what the check of an access has found.
type prepared struct {
	class   *api.BucketAccessClass
	claims  []*api.BucketClaim
	buckets []api.AccessedBucket
}

// check tells whether an access may be handed over, by the cache. A notice that is empty
// but asks for another look means: wait, and say nothing yet.
func (r *accesses) check(ctx context.Context, access *api.BucketAccess) (prepared, notice, error) {
	class := &api.BucketAccessClass{}
	name := access.Spec.BucketAccessClassName
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, class); err != nil {
		if apierrors.IsNotFound(err) {
			return prepared{}, refuse(ReasonClassNotFound, "BucketAccessClass %q does not exist; the access goes on when it is made", name), nil
		}
		return prepared{}, notice{}, err
	}
	if n := allowed(access, class); !n.empty() {
		return prepared{}, n, nil
	}
	p := prepared{class: class}
	for _, wanted := range access.Spec.BucketClaims {
		claim, bucket, n, err := r.claimed(ctx, access, wanted.BucketClaimName)
		if err != nil || bucket == nil {
			return prepared{}, n, err
		}
		if n := fits(access, class, bucket); !n.empty() {
			return prepared{}, n, nil
		}
		p.claims = append(p.claims, claim)
		p.buckets = append(p.buckets, api.AccessedBucket{
			BucketName: bucket.Name, BucketID: bucket.Status.BucketID, BucketClaimName: claim.Name})
	}
	return p, notice{}, nil
}

// allowed checks what the class says of an access, whatever its claims are.
func allowed(access *api.BucketAccess, class *api.BucketAccessClass) notice {
	if n := len(access.Spec.BucketClaims); n > 1 && !class.Spec.AllowsSeveralBuckets() {
		return refuse(ReasonSeveralBuckets, "the access names %d claims and BucketAccessClass %s allows one; "+
			"make one access for each, or use a class with multiBucketAccess: MultipleBuckets", n, class.Name)
	}
	secrets := map[string]string{}
	for _, c := range access.Spec.BucketClaims {
		if !class.Spec.Allows(c.AccessMode) {
			return refuse(ReasonModeDisallowed, "accessMode %s of claim %s is disallowed by BucketAccessClass %s", c.AccessMode, c.BucketClaimName, class.Name)
		}
		if other, taken := secrets[c.AccessSecretName]; taken {
			return refuse(ReasonSecretNameTwice, "claims %s and %s both name Secret %s; give each its own accessSecretName",
				other, c.BucketClaimName, c.AccessSecretName)
		}
		secrets[c.AccessSecretName] = c.BucketClaimName
	}
	if class.Spec.AuthenticationType == api.AuthenticationTypeServiceAccount && access.Spec.ServiceAccountName == "" {
		return refuse(ReasonNoServiceAccount, "BucketAccessClass %s lets in Pods by their ServiceAccount; "+
			"make the access again with a serviceAccountName", class.Name)
	}
	return notice{}
}

// claimed finds a claim of the access and its Bucket. No Bucket: the notice says why, or
// asks for another look.
func (r *accesses) claimed(ctx context.Context, access *api.BucketAccess, name string) (*api.BucketClaim, *api.Bucket, notice, error) {
	claim := &api.BucketClaim{}
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: access.Namespace, Name: name}, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, refuse(ReasonClaimNotFound, "BucketClaim %s does not exist in namespace %s; the access goes on when it is made",
				name, access.Namespace), nil
		}
		return nil, nil, notice{}, err
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil, nil, refuse(ReasonClaimDeleting, "BucketClaim %s is being deleted", name), nil
	}
	if !ptr.Deref(claim.Status.ReadyToUse, false) || claim.Status.BoundBucketName == "" {
		if e := claim.Status.Error; e != nil && e.Message != nil {
			return nil, nil, wait(ReasonClaimNotReady, "BucketClaim %s is not ready: %s", name, *e.Message), nil
		}
		return nil, nil, r.later(access, wait(ReasonClaimNotReady, "BucketClaim %s is not ready yet", name)), nil
	}
	bucket := &api.Bucket{}
	err := r.client.Get(ctx, types.NamespacedName{Name: claim.Status.BoundBucketName}, bucket)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, r.later(access, wait(ReasonBucketNotFound, "Bucket %s of BucketClaim %s does not exist", claim.Status.BoundBucketName, name)), nil
	case err != nil:
		return nil, nil, notice{}, err
	case !boundTo(bucket, claim):
		// A tenant who may write statuses must not get at the bucket of another claim.
		return nil, nil, refuse(ReasonBoundElsewhere, "Bucket %s, which the status of BucketClaim %s names, is not bound to that claim",
			bucket.Name, name), nil
	case !bucket.DeletionTimestamp.IsZero():
		return nil, nil, refuse(ReasonBucketDeleting, "Bucket %s of BucketClaim %s is being deleted", bucket.Name, name), nil
	case !ptr.Deref(bucket.Status.ReadyToUse, false) || bucket.Status.BucketID == "":
		return nil, nil, r.later(access, wait(ReasonBucketNotReady, "Bucket %s of BucketClaim %s is not ready yet", bucket.Name, name)), nil
	}
	return claim, bucket, notice{}, nil
}

// later holds a notice back while the access is young, unless an older one stands there
// that does not hold any more.
func (r *accesses) later(access *api.BucketAccess, n notice) notice {
	if access.Status.Error != nil {
		return n
	}
	if left := r.patience - time.Since(access.CreationTimestamp.Time); left > 0 {
		return pause(left)
	}
	return n
}

// fits checks one Bucket against class and access.
func fits(access *api.BucketAccess, class *api.BucketAccessClass, bucket *api.Bucket) notice {
	if bucket.Spec.DriverName != class.Spec.DriverName {
		return refuse(ReasonOtherDriver, "Bucket %s is served by driver %q and BucketAccessClass %s by %q; use an access class of the bucket's driver",
			bucket.Name, bucket.Spec.DriverName, class.Name, class.Spec.DriverName)
	}
	if !slices.Contains(bucket.Status.Protocols, access.Spec.Protocol) {
		return refuse(ReasonProtocolUnsupported, "Bucket %s does not speak %s, only %s", bucket.Name, access.Spec.Protocol, spoken(bucket.Status.Protocols))
	}
	return notice{}
}
