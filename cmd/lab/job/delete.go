package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// deleteSteps delete everything, also after a step that failed.
func (j *job) deleteSteps() []step {
	return []step{
		{"delete", "all claims and accesses at once; buckets hold objects", j.deleteAll},
		{"delete", "empty the buckets", j.emptyAll},
		{"delete", "say Delete for the Buckets that were kept, and delete them", j.deleteKept},
	}
}

// deleteAll deletes claims before accesses, on purpose: the claims wait. Buckets
// that hold objects stay, and say so.
func (j *job) deleteAll(ctx context.Context) (string, error) {
	claims, accesses, err := j.all(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range slices.Concat(claims, accesses) {
		if err := client.IgnoreNotFound(j.client.Delete(ctx, o)); err != nil {
			return "", err
		}
	}
	if err := j.gone(ctx, accesses...); err != nil {
		return "", err
	}
	for _, u := range j.old {
		_, err := u.list(ctx, u.bucket)
		if err := refused(u.who+": a list with the old key", err); err != nil {
			return "", err
		}
	}
	full, err := j.waitFull(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d accesses gone, old keys refused; not empty, so kept and said: %s", len(accesses), strings.Join(full, ", ")), nil
}

// waitFull waits until only such claims are left as have a bucket that holds
// objects, and each says so.
func (j *job) waitFull(ctx context.Context) (full []string, err error) {
	err = j.await(ctx, func(ctx context.Context) (string, error) {
		claims, _, err := j.all(ctx)
		if err != nil {
			return "", err
		}
		full = nil
		for _, o := range claims {
			bucket := &cosi.Bucket{}
			err := j.client.Get(ctx, client.ObjectKey{Name: o.(*cosi.BucketClaim).Status.BoundBucketName}, bucket)
			if client.IgnoreNotFound(err) != nil {
				return "", err
			}
			waiting := "the end of BucketClaim " + o.GetName()
			if bucket.Status.BucketID == "" {
				return waiting, nil
			}
			keys, err := j.root.list(ctx, bucket.Status.BucketID)
			if code(err) == "NoSuchBucket" {
				return waiting, nil
			}
			if err != nil {
				return "", err
			}
			if len(keys) == 0 {
				return waiting, nil
			}
			if _, why := readiness(bucket); why == "" {
				return fmt.Sprintf("a word from Bucket %s, which can't be deleted", bucket.Name), nil
			}
			full = append(full, o.GetName())
		}
		return "", nil
	})
	return full, err
}

// emptyAll deletes what is in the buckets that wait, as their users would.
func (j *job) emptyAll(ctx context.Context) (string, error) {
	claims, _, err := j.all(ctx)
	if err != nil {
		return "", err
	}
	buckets := &cosi.BucketList{}
	if err := j.client.List(ctx, buckets); err != nil {
		return "", err
	}
	for _, b := range buckets.Items {
		if b.DeletionTimestamp != nil && b.Status.BucketID != "" {
			if err := j.root.empty(ctx, b.Status.BucketID); err != nil {
				return "", err
			}
		}
	}
	if err := j.gone(ctx, claims...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d claims gone by themselves", len(claims)), nil
}

// deleteKept ends the Buckets whose policy was Retain: those made here with their
// backend bucket, and the archive without.
func (j *job) deleteKept(ctx context.Context) (string, error) {
	buckets := &cosi.BucketList{}
	if err := j.client.List(ctx, buckets); err != nil {
		return "", err
	}
	var kept []client.Object
	for i := range buckets.Items {
		b := &buckets.Items[i]
		if b.Spec.ExistingBucketID == "" {
			keys, err := j.root.list(ctx, b.Status.BucketID)
			if err != nil {
				return "", fmt.Errorf("the bucket was to be kept: %w", err)
			}
			if len(keys) == 0 {
				return "", fmt.Errorf("bucket %s was to be kept with what is in it, and it is empty", b.Status.BucketID)
			}
			if err := j.root.empty(ctx, b.Status.BucketID); err != nil {
				return "", err
			}
			policy := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Delete"}}`))
			if err := j.client.Patch(ctx, b, policy); err != nil {
				return "", err
			}
		}
		if err := j.client.Delete(ctx, b); err != nil {
			return "", err
		}
		kept = append(kept, b)
	}
	if err := j.gone(ctx, kept...); err != nil {
		return "", err
	}
	if err := j.archiveIsThere(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d Buckets gone; %s, not made here, untouched", len(kept), archive), nil
}
