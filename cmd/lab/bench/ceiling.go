package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// clients is how many send requests at once, for the ceiling and for the load.
const clients = 32

// ceiling is how many claims a second the API server takes when their bare writes
// are sent one after the other, by 32 clients, with nothing between them: the
// claim's own create and six more, of the kinds and sizes that COSI needs. These
// are upstream's less one: a claim gets its finalizer, its Bucket is made, gets
// its finalizer and its status, and the claim's status is written twice.
//
// done is called when they are written, before they are removed again.
//
// The yardstick stays what it is when Custody comes to need fewer writes.
func ceiling(ctx context.Context, c client.Client, namespace string, claims int, done func() error) (perSecond float64, err error) {
	if err := makeNamespace(ctx, c, namespace); err != nil {
		return 0, err
	}
	start := time.Now()
	err = each(ctx, numbers(claims), func(ctx context.Context, n int) error {
		if err := bareWrites(ctx, c, namespace, n); err != nil {
			return fmt.Errorf("bare writes of claim %d: %w", n, err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	perSecond = float64(claims) / time.Since(start).Seconds()
	if err := done(); err != nil {
		return 0, err
	}
	return perSecond, removeBare(ctx, c, namespace)
}

func bareWrites(ctx context.Context, c client.Client, namespace string, n int) error {
	ready := true
	claim := newClaim(namespace, n, ClassName)
	claim.Labels = map[string]string{bareLabel: ""}
	bkt := &v1alpha2.Bucket{
		// Not the claim's UID: nothing may come to serve this bucket.
		ObjectMeta: meta.ObjectMeta{Name: v1alpha2.BucketNamePrefix + uuid.NewString(), Labels: map[string]string{bareLabel: ""}},
		Spec: v1alpha2.BucketSpec{
			DriverName: "nobody." + DriverName, DeletionPolicy: v1alpha2.DeletionPolicyDelete, Protocols: claim.Spec.Protocols,
			BucketClaimRef: v1alpha2.BucketClaimReference{Namespace: namespace, Name: claim.Name, UID: types.UID(uuid.NewString())},
		},
	}
	const finalizer = "bench.custody.dev/bare"
	for _, write := range []func() error{
		func() error { return c.Create(ctx, claim) },
		func() error { claim.Finalizers = []string{finalizer}; return c.Update(ctx, claim) },
		func() error { return c.Create(ctx, bkt) },
		func() error { bkt.Finalizers = []string{finalizer}; return c.Update(ctx, bkt) },
		func() error {
			bkt.Status = v1alpha2.BucketStatus{ReadyToUse: &ready, BucketID: bkt.Name, Protocols: bkt.Spec.Protocols, BucketInfo: map[string]string{
				v1alpha2.KeyS3BucketID: bkt.Name, v1alpha2.KeyS3Endpoint: "http://127.0.0.1:1", v1alpha2.KeyS3Region: "us-east-1", v1alpha2.KeyS3AddressingStyle: "path"}}
			return c.Status().Update(ctx, bkt)
		},
		func() error {
			no := false
			claim.Status = v1alpha2.BucketClaimStatus{BoundBucketName: bkt.Name, ReadyToUse: &no}
			return c.Status().Update(ctx, claim)
		},
		func() error {
			claim.Status.ReadyToUse, claim.Status.Protocols = &ready, claim.Spec.Protocols
			return c.Status().Update(ctx, claim)
		},
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// bareLabel marks the objects of the ceiling.
const bareLabel = "bench.custody.dev/bare"

// removeBare deletes what the ceiling left, so that it is no load on what is
// measured next.
func removeBare(ctx context.Context, c client.Client, namespace string) error {
	bare := client.HasLabels{bareLabel}
	claims, buckets := &v1alpha2.BucketClaimList{}, &v1alpha2.BucketList{}
	if err := c.List(ctx, claims, client.InNamespace(namespace), bare); err != nil {
		return err
	}
	if err := c.List(ctx, buckets, bare); err != nil {
		return err
	}
	var all []client.Object
	for i := range claims.Items {
		all = append(all, &claims.Items[i])
	}
	for i := range buckets.Items {
		all = append(all, &buckets.Items[i])
	}
	return each(ctx, all, func(ctx context.Context, o client.Object) error {
		if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		return client.IgnoreNotFound(c.Delete(ctx, o))
	})
}

// each does something with every object, by as many clients as there are.
func each[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	var next atomic.Int64
	workers, working := errgroup.WithContext(ctx)
	for range clients {
		workers.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(all) {
					return nil
				}
				if err := do(working, all[n]); err != nil {
					return err
				}
			}
		})
	}
	return workers.Wait()
}

// numbers are 1 to n.
func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

func makeNamespace(ctx context.Context, c client.Client, name string) error {
	return client.IgnoreAlreadyExists(c.Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}))
}

func newClaim(namespace string, n int, class string) *v1alpha2.BucketClaim {
	return &v1alpha2.BucketClaim{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("claim-%05d", n)},
		Spec:       v1alpha2.BucketClaimSpec{BucketClassName: class, Protocols: []v1alpha2.ObjectProtocol{v1alpha2.ProtocolS3}},
	}
}
