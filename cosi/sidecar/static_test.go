package sidecar_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
)

// lent makes a Bucket by hand for a bucket that exists, and a claim that is bound to it.
func (w *world) lent(id string, policy cosi.DeletionPolicy) (*cosi.BucketClaim, *cosi.Bucket) {
	w.Helper()
	claim := w.claim("it")
	b := &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-lent"}, Spec: cosi.BucketSpec{
		DriverName: w.driver.info.Name, DeletionPolicy: policy, ExistingBucketID: id,
		BucketClaimRef: cosi.BucketClaimReference{Namespace: w.ns, Name: "it"},
	}}
	w.create(b)
	return claim, b
}

// A bucket that exists is looked at and served, never created; policy Retain lets go of it without a word to the driver.
func TestStaticRetain(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, b := w.lent("precious", cosi.DeletionPolicyRetain)
	w.says(b, "LookupFailed") // it does not exist yet
	w.driver.put("precious", "somebody's")
	w.isReady(b)
	w.edit(b, false, func() { b.Spec.BucketClaimRef.UID = claim.UID })
	w.delete(b)
	w.says(b, v1alpha1.ReasonWaitsForClaim)
	w.delete(claim)
	w.edit(b, false, func() { metav1.SetMetaDataAnnotation(&b.ObjectMeta, "x", "y") })
	w.gone(b)
	w.eventually("no Intent is left", func() bool { return w.intent(b) == nil })
	if w.driver.called("create")+w.driver.called("delete") != 0 || len(w.driver.bucketIDs()) != 1 {
		t.Errorf("calls %v", w.driver.log())
	}
}

// Policy Delete is the admin's word to delete it, by its id.
func TestStaticDelete(t *testing.T) {
	w := newWorld(t)
	w.driver.recovers(wire.Capabilities{DeleteByName: true, FindByName: true})
	w.driver.put("precious", "somebody's")
	w.driver.put("other", w.ns+"-lent") // of the Bucket's name, and not ours
	w.sidecar()
	claim, b := w.lent("precious", cosi.DeletionPolicyDelete)
	w.isReady(b)
	w.deleteBoth(claim, b)
	w.gone(b)
	if got := w.driver.bucketIDs(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("buckets %v, want only the other", got)
	}
}

// Made by hand again after it was removed by force, with the same id: it is served again. With another: hands off.
func TestStaticMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.driver.put("precious", "somebody's")
	w.driver.put("second", "somebody's")
	c := w.sidecar()
	_, b := w.lent("precious", cosi.DeletionPolicyDelete)
	w.isReady(b)
	c.stop(w)
	again := func(id string) *cosi.Bucket {
		w.delete(b)
		w.edit(b, false, func() { b.Finalizers = nil })
		w.gone(&cosi.Bucket{ObjectMeta: b.ObjectMeta})
		b = &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: b.Name}, Spec: b.Spec}
		b.Spec.ExistingBucketID = id
		w.create(b)
		return b
	}
	again("precious")
	c = w.sidecar()
	w.isReady(b)
	c.stop(w)
	again("second")
	w.sidecar()
	w.says(b, v1alpha1.ReasonOtherOwner)
	// An admin lets go of what the earlier one had: the new one is served.
	i := w.intent(b)
	w.edit(i, false, func() { i.Spec.Word = v1alpha1.WordRelease })
	w.isReady(b)
	if i = w.intent(b); i.Spec.ID != "second" || i.Spec.Word != "" {
		t.Errorf("the record is %+v", i.Spec)
	}
	if got := w.driver.bucketIDs(); !slices.Equal(got, []string{"precious", "second"}) {
		t.Errorf("buckets %v, want both", got)
	}
}

// Two Buckets by hand for one backend bucket: neither deletes it while the other has it.
func TestSharedID(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, made := w.readyBucket("made")
	b := &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-lent"}, Spec: cosi.BucketSpec{
		DriverName: w.driver.info.Name, DeletionPolicy: cosi.DeletionPolicyDelete, ExistingBucketID: made.Status.BucketID,
		BucketClaimRef: cosi.BucketClaimReference{Namespace: w.ns, Name: "other"},
	}}
	w.create(b)
	w.isReady(b)
	w.deleteBoth(claim, made)
	w.says(made, v1alpha1.ReasonSharedID)
	w.stays("it stays", func() bool { return len(w.driver.bucketIDs()) == 1 })
	w.edit(b, false, func() { b.Spec.DeletionPolicy = cosi.DeletionPolicyRetain })
	w.delete(b)
	w.gone(b)
	w.nothingLeft(made)
}

// A Bucket that neither names what exists nor is named by a claim's UID is refused: a driver that takes over a bucket of
// that name would hand out somebody else's, and one day delete it (rustfs operator#219).
func TestHandNamedBucket(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	name := w.ns + "-byhand"
	w.driver.put("precious", name)
	w.claim("it")
	b := &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cosi.BucketSpec{
		DriverName: w.driver.info.Name, DeletionPolicy: cosi.DeletionPolicyDelete,
		BucketClaimRef: cosi.BucketClaimReference{Namespace: w.ns, Name: "it"},
	}}
	w.create(b)
	w.says(b, v1alpha1.ReasonUnproven)
	w.delete(b)
	w.gone(b)
	if w.driver.called("create")+w.driver.called("delete") != 0 || len(w.driver.bucketIDs()) != 1 {
		t.Errorf("calls %v", w.driver.log())
	}
}
