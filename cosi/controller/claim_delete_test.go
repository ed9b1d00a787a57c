package controller_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
)

func deletedInBackend(bucket string) bool {
	backend.Lock()
	defer backend.Unlock()
	return backend.deleted[bucket]
}

func TestClaimTakesItsBucketAlong(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("short")
	w.delete(claim)
	w.awaitGone(claim)
	if w.get(bucket) {
		t.Error("the claim went before its Bucket")
	}
	if !deletedInBackend(bucket.Name) {
		t.Error("the backend bucket was not deleted")
	}
	if e := w.events(claim, ""); len(e) > 0 {
		t.Errorf("an event about a deletion without trouble: %s", e[0].Note)
	}
}

// The claim stays as long as its Bucket does, and says why (fault 16 of the COSI issues).
// Upstream's tools are told that the claim goes, and not before.
func TestClaimWaitsForItsBucketToGo(t *testing.T) {
	for _, bucketFirst := range []bool{false, true} {
		t.Run(map[bool]string{true: "Bucket first", false: "claim first"}[bucketFirst], func(t *testing.T) {
			w := newWorld(t)
			w.class(driverManual, api.DeletionPolicyDelete)
			claim := w.newClaim("full")
			bucket := w.bucketOf(claim)
			if err := serve(w.ctx, admin, bucket, api.ProtocolS3); err != nil {
				t.Fatal(err)
			}
			w.awaitReady(claim)
			hinted := func() bool { return w.get(bucket) && api.BucketClaimBeingDeleted(bucket.Annotations) }
			if bucketFirst {
				w.delete(bucket)
				w.awaitError(claim, controller.ReasonBucketDeleting, bucket.Name)
				if hinted() {
					t.Error("the claim is said to be deleted and is not")
				}
			}
			w.delete(claim)
			w.await("the Bucket is being deleted and says why", func() bool { return hinted() && !bucket.DeletionTimestamp.IsZero() })
			w.change(bucket, "status", func() {
				bucket.Status.Error = api.NewError(time.Now(), "DeleteFailed", "the bucket is not empty")
			})
			w.awaitError(claim, "DeleteFailed", "not empty")
			if !slices.Contains(claim.Finalizers, v1alpha1.ProtectionFinalizer) {
				t.Error("the claim has lost its finalizer")
			}
			if err := letGo(w.ctx, admin, bucket); err != nil {
				t.Fatal(err)
			}
			w.awaitGone(claim)
		})
	}
}

// A claim of a driver that nobody serves does not wait in silence to be gone.
func TestUnservedDriverHoldsClaimAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	claim := w.newClaim("unserved")
	bucket := w.bucketOf(claim)
	w.delete(claim)
	w.await("the Bucket is being deleted", func() bool { return w.get(bucket) && !bucket.DeletionTimestamp.IsZero() })
	w.awaitError(claim, controller.ReasonBucketDeleting, driverManual, "sidecar")
	if err := letGo(w.ctx, admin, bucket); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(claim)
}

// Upstream's finalizer is honoured on what was taken over, and goes with ours.
func TestRetainedBucketStays(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyRetain)
	claim := w.claim("kept")
	claim.Finalizers = []string{api.ProtectionFinalizer}
	w.create(claim)
	w.awaitReady(claim)
	bucket := w.bucketOf(claim)
	w.delete(claim)
	w.awaitGone(claim)
	if !w.get(bucket) || !bucket.DeletionTimestamp.IsZero() || deletedInBackend(bucket.Name) {
		t.Errorf("the Bucket did not stay: %v", bucket)
	}
	// Fault 7 of the COSI issues: deleted by hand later, it ends; nothing here holds it.
	w.delete(bucket)
	w.awaitGone(bucket)
	if deletedInBackend(bucket.Name) {
		t.Error("the backend bucket was deleted against the policy")
	}
}

// An admin changes the policy at the last moment.
func TestPolicyCountsAtTheEnd(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("saved")
	w.change(bucket, "", func() { bucket.Spec.DeletionPolicy = api.DeletionPolicyRetain })
	w.delete(claim)
	w.awaitGone(claim)
	if !w.get(bucket) {
		t.Error("the Bucket is gone")
	}
}

func TestStaticBucketFollowsItsPolicy(t *testing.T) {
	w := newWorld(t)
	bucket := w.setAside("doomed", "static")
	claim := w.claimTo("static", bucket.Name)
	w.awaitReady(claim)
	w.change(bucket, "", func() {
		bucket.Spec.DeletionPolicy = api.DeletionPolicyDelete
		bucket.Finalizers = []string{v1alpha1.ProtectionFinalizer} // the real sidecar's doing
	})
	w.delete(claim)
	w.awaitGone(claim)
	if w.get(bucket) {
		t.Error("the claim went before its Bucket")
	}
}

// Fault 8 of the COSI issues: Bucket and claim are both deleted by hand, in any order.
func TestBothDeletedByHand(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionPolicyDelete, api.DeletionPolicyRetain} {
		for _, bucketFirst := range []bool{true, false} {
			t.Run(string(policy)+map[bool]string{true: ", Bucket first", false: ", claim first"}[bucketFirst], func(t *testing.T) {
				w := newWorld(t)
				w.class(driverFake, policy)
				claim, bucket := w.readyClaim("both")
				if bucketFirst {
					w.delete(bucket)
					w.awaitError(claim, controller.ReasonBucketDeleting, bucket.Name)
					w.quiet("the Bucket went before its claim", func() bool { return !w.get(bucket) })
					w.delete(claim)
				} else {
					w.delete(claim)
					w.delete(bucket)
				}
				w.awaitGone(claim)
				w.awaitGone(bucket)
				if got, want := deletedInBackend(bucket.Name), policy == api.DeletionPolicyDelete; got != want {
					t.Errorf("backend bucket deleted: %v, want %v", got, want)
				}
			})
		}
	}
}

// A claim without a Bucket goes at once, and one whose Bucket is bound to another claim
// leaves that alone.
func TestUnboundClaimGoes(t *testing.T) {
	w := newWorld(t)
	bucket := w.setAside("others", "first")
	first := w.claimTo("first", bucket.Name)
	w.awaitReady(first)
	w.change(bucket, "", func() { bucket.Spec.DeletionPolicy = api.DeletionPolicyDelete })

	second := &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "second", Finalizers: []string{api.ProtectionFinalizer}},
		Spec: api.BucketClaimSpec{ExistingBucketName: bucket.Name}}
	w.create(second)
	w.awaitError(second, controller.ReasonBoundElsewhere)
	w.delete(second)
	w.awaitGone(second)
	if !w.get(bucket) || !bucket.DeletionTimestamp.IsZero() {
		t.Error("the Bucket of another claim was deleted")
	}
}

// The hint for upstream's tools comes and goes, and the last access that goes wakes the
// claim. A forged hint holds nobody.
func TestClaimWaitsForItsAccesses(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(nil)
	claim, bucket := w.readyClaim("used")
	hinted := func() bool {
		return w.get(claim) && metav1.HasAnnotation(claim.ObjectMeta, api.AnnotationHasBucketAccessReferences)
	}
	access := w.access("user", "used")
	w.create(access)
	w.await("upstream's tools are told of the access", hinted)
	w.delete(access)
	w.awaitGone(access)
	w.await("upstream's tools are told that it is gone", func() bool { return !hinted() })

	access = w.access("user", "used")
	w.create(access)
	w.await("the access is ready", func() bool { return w.get(access) && ptr.Deref(access.Status.ReadyToUse, false) })
	w.delete(claim)
	w.awaitError(claim, controller.ReasonInUse, "user")
	w.awaitEvent(claim, controller.ReasonInUse)
	if !w.get(bucket) || !bucket.DeletionTimestamp.IsZero() {
		t.Error("the Bucket goes under an access")
	}
	w.delete(access)
	w.awaitGone(claim)
}

func TestForgedHintHoldsNobody(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, _ := w.readyClaim("hinted")
	w.change(claim, "", func() {
		claim.Annotations = map[string]string{api.AnnotationHasBucketAccessReferences: "true"}
	})
	w.delete(claim)
	w.awaitGone(claim)
}

// The cache has not seen an access yet; the claim asks the API server.
func TestClaimLooksForAccessesLive(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("seen")
	thaw := line.freeze(t, "bucketaccesses")
	access := w.access("unseen", "seen")
	w.create(access)
	w.delete(claim)
	w.awaitError(claim, controller.ReasonInUse, "unseen")
	w.delete(access)
	w.awaitGone(access)
	if !w.get(bucket) || !bucket.DeletionTimestamp.IsZero() {
		t.Error("the Bucket goes under an access")
	}
	thaw()
	w.awaitGone(claim)
}

// A replace has dropped the finalizer of a claim: it comes back, and while it is off and
// the claim is removed, the Bucket is kept and somebody hears of it.
func TestClaimWithoutFinalizer(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("stripped")
	w.change(claim, "", func() { claim.Finalizers = nil })
	w.await("the finalizer is back", func() bool { return w.get(claim) && len(claim.Finalizers) > 0 })

	thaw := line.freeze(t, "bucketclaims")
	w.change(claim, "", func() { claim.Finalizers = nil })
	w.delete(claim)
	w.awaitGone(claim)
	thaw()
	w.awaitEvent(bucket, controller.ReasonClaimGone)
	if !w.get(bucket) || !bucket.DeletionTimestamp.IsZero() {
		t.Error("the Bucket was deleted because its claim is absent")
	}
}

// A Bucket whose UID is not the one that was looked at is not deleted.
func TestDeleteNamesTheUID(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("exact")
	w.delete(claim)
	w.awaitGone(claim)
	deletes := line.requests(func(s sent) bool { return s.method == "DELETE" && s.about(bucket.Name) })
	if len(deletes) != 1 || !deletes[0].about(string(bucket.UID)) {
		t.Errorf("deletes of the Bucket: %+v; want one, with the UID as a precondition", deletes)
	}
}
