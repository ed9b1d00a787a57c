package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Indexes of the cache, by which an event of one kind finds the objects of another that
// wait for it. Nothing waits out a back-off for what an event can tell.
const (
	claimsByClass    = "claimsByClass"    // BucketClaims by spec.bucketClassName
	claimsByBucket   = "claimsByBucket"   // BucketClaims by spec.existingBucketName
	bucketsByClaim   = "bucketsByClaim"   // Buckets by namespace/name of their claim
	accessesByClass  = "accessesByClass"  // BucketAccesses by class
	accessesByClaims = "accessesByClaims" // BucketAccesses by each of their claims; of one namespace
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	for _, index := range []struct {
		kind  client.Object
		name  string
		value client.IndexerFunc
	}{
		{&api.BucketClaim{}, claimsByClass, func(o client.Object) []string { return one(o.(*api.BucketClaim).Spec.BucketClassName) }},
		{&api.BucketClaim{}, claimsByBucket, func(o client.Object) []string { return one(o.(*api.BucketClaim).Spec.ExistingBucketName) }},
		{&api.Bucket{}, bucketsByClaim, func(o client.Object) []string { return one(claimKey(o.(*api.Bucket)).String()) }},
		{&api.BucketAccess{}, accessesByClass, func(o client.Object) []string { return one(o.(*api.BucketAccess).Spec.BucketAccessClassName) }},
		{&api.BucketAccess{}, accessesByClaims, func(o client.Object) []string { return claimNames(o.(*api.BucketAccess)) }},
	} {
		if err := indexer.IndexField(ctx, index.kind, index.name, index.value); err != nil {
			return err
		}
	}
	return nil
}

// claimKey is the claim that a Bucket is for.
func claimKey(bucket *api.Bucket) types.NamespacedName {
	return types.NamespacedName{Namespace: bucket.Spec.BucketClaimRef.Namespace, Name: bucket.Spec.BucketClaimRef.Name}
}

func claimNames(access *api.BucketAccess) []string {
	names := make([]string, 0, len(access.Spec.BucketClaims))
	for _, c := range access.Spec.BucketClaims {
		names = append(names, c.BucketClaimName)
	}
	return names
}

// wake turns a function from an object to keys into an event handler.
func wake[T client.Object](keys func(context.Context, T) []types.NamespacedName) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, key := range keys(ctx, o.(T)) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}

// list reads from the cache as it is. An error is a mistake in this program (an index that
// is not there); the objects that are then not woken are found by the next event.
func list[L client.ObjectList](ctx context.Context, b *base, into L, options ...client.ListOption) L {
	if err := b.cache.List(ctx, into, options...); err != nil {
		log.FromContext(ctx).Error(err, "list from the cache")
	}
	return into
}

func key(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }
