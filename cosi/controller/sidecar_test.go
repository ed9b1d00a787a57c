package controller_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
	"github.com/custody-storage/custody/manager"
)

// Drivers of the tests. What is of driverFake is served at once by the fake sidecar;
// what is of driverManual is left to the test.
const (
	driverFake   = "fake.test"
	driverManual = "manual.test"
)

// fake is as much of a sidecar as the controller can see: it makes Buckets and accesses
// ready, and lets them go as KEP-1979 says. It has no driver and no Intents.
type fake struct {
	client client.Client
}

// backend is what the fake sidecar did to the buckets of its backend.
var backend = struct {
	sync.Mutex
	deleted map[string]bool
}{deleted: map[string]bool{}}

func startSidecar() (stop func() error, err error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	options := manager.Defaults()
	options.MetricsAddress, options.HealthAddress, options.LeaderElect = "0", "0", false
	mgr, err := manager.New(kube.Config(), options, manager.Program{Lease: "fake-sidecar", Scheme: scheme}, logr.Discard())
	if err != nil {
		return nil, err
	}
	f := &fake{mgr.GetClient()}
	err = errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("bucket").For(&api.Bucket{}).Complete(reconcile.AsReconciler(f.client, reconcile.ObjectReconciler[*api.Bucket](bucketFake{f}))),
		ctrl.NewControllerManagedBy(mgr).Named("access").For(&api.BucketAccess{}).Complete(reconcile.AsReconciler(f.client, reconcile.ObjectReconciler[*api.BucketAccess](accessFake{f}))),
	)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error { cancel(); return <-ended }, nil
}

type bucketFake struct{ *fake }

func (f bucketFake) Reconcile(ctx context.Context, bucket *api.Bucket) (reconcile.Result, error) {
	if bucket.Spec.DriverName != driverFake {
		return reconcile.Result{}, nil
	}
	if bucket.DeletionTimestamp.IsZero() {
		if ptr.Deref(bucket.Status.ReadyToUse, false) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, serve(ctx, f.client, bucket, api.ProtocolS3)
	}
	claim, ref := &api.BucketClaim{}, bucket.Spec.BucketClaimRef
	err := f.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if err == nil && claim.UID == ref.UID && claim.DeletionTimestamp.IsZero() {
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	if bucket.Spec.DeletionPolicy == api.DeletionPolicyDelete {
		backend.Lock()
		backend.deleted[bucket.Name] = true
		backend.Unlock()
	}
	return reconcile.Result{}, letGo(ctx, f.client, bucket)
}

// serve makes a Bucket ready.
func serve(ctx context.Context, c client.Client, bucket *api.Bucket, protocols ...api.ObjectProtocol) error {
	before := bucket.DeepCopy()
	bucket.Status = api.BucketStatus{ReadyToUse: ptr.To(true), BucketID: "id-" + bucket.Name, Protocols: protocols}
	return client.IgnoreNotFound(c.Status().Patch(ctx, bucket, client.MergeFrom(before)))
}

func letGo(ctx context.Context, c client.Client, object client.Object) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(object, v1alpha1.ProtectionFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(c.Patch(ctx, object, client.MergeFrom(before)))
}

type accessFake struct{ *fake }

func (f accessFake) Reconcile(ctx context.Context, access *api.BucketAccess) (reconcile.Result, error) {
	if access.Status.DriverName != driverFake {
		return reconcile.Result{}, nil
	}
	if !access.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, letGo(ctx, f.client, access)
	}
	if ptr.Deref(access.Status.ReadyToUse, false) {
		return reconcile.Result{}, nil
	}
	before := access.DeepCopy()
	access.Status.ReadyToUse, access.Status.AccountID = ptr.To(true), "id-"+api.AccountName(access)
	return reconcile.Result{}, client.IgnoreNotFound(f.client.Status().Patch(ctx, access, client.MergeFrom(before)))
}
