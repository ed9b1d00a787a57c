package controller_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
)

func TestClaimIsReadyInThreeWrites(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	claim, bucket := w.readyClaim("fast")

	want := api.BucketSpec{
		DriverName: driverFake, DeletionPolicy: api.DeletionPolicyDelete, Parameters: map[string]string{"tier": "gold"},
		Protocols:      []api.ObjectProtocol{api.ProtocolS3},
		BucketClaimRef: api.BucketClaimReference{Namespace: w.name, Name: "fast", UID: claim.UID},
	}
	if d := cmp.Diff(want, bucket.Spec); d != "" {
		t.Errorf("the Bucket is not as it should be (-want +got):\n%s", d)
	}
	for _, f := range [][]string{claim.Finalizers, bucket.Finalizers} {
		if d := cmp.Diff([]string{v1alpha1.ProtectionFinalizer}, f); d != "" {
			t.Errorf("finalizers (-want +got):\n%s", d)
		}
	}
	status := api.BucketClaimStatus{BoundBucketName: bucket.Name, ReadyToUse: ptr.To(true), Protocols: []api.ObjectProtocol{api.ProtocolS3}}
	if d := cmp.Diff(status, claim.Status); d != "" {
		t.Errorf("the claim's status (-want +got):\n%s", d)
	}
	for _, o := range []metav1.Object{claim, bucket} {
		for _, f := range o.GetManagedFields() {
			if f.Manager != v1alpha1.FieldManager {
				t.Errorf("%s was written by field manager %q", o.GetName(), f.Manager)
			}
		}
	}
	// The events of these writes come back to the controller; it must have no more to do.
	budget := []string{"PATCH bucketclaims", "POST buckets", "PATCH bucketclaims/status"}
	w.quiet("there are more writes than three", func() bool { return len(w.writes("/"+w.name+"/", bucket.Name)) > len(budget) })
	if d := cmp.Diff(budget, w.writes("/"+w.name+"/", bucket.Name)); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
	if n := len(line.requests(func(s sent) bool { return s.event() && s.about(string(claim.UID)) })); n > 0 {
		t.Errorf("%d requests for events about a claim that had no trouble", n)
	}
}

// A class that comes later wakes the claims that wait for it.
func TestClaimWaitsForItsClass(t *testing.T) {
	w := newWorld(t)
	claim := w.newClaim("early")
	w.awaitError(claim, controller.ReasonClassNotFound, w.name)
	w.awaitEvent(claim, controller.ReasonClassNotFound)
	if len(claim.Finalizers) > 0 {
		t.Errorf("a claim for which nothing was made has finalizers %v", claim.Finalizers)
	}
	w.class(driverFake, api.DeletionPolicyDelete)
	w.awaitReady(claim)
	if n := len(w.events(claim, "")); n != 1 {
		t.Errorf("%d events about the claim, want 1", n)
	}
}

// Fault 15 of the COSI issues: conflicts are shown to nobody, and readiness does not
// wait out a back-off.
func TestConflictIsShownToNobody(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	for _, path := range []string{"/bucketclaims/torn", "/bucketclaims/torn/status"} {
		line.add(t, &rule{status: http.StatusConflict, match: func(s sent) bool {
			return s.write() && strings.HasSuffix(s.path, "/"+w.name+path)
		}})
	}
	failures := reconcileErrors(t)
	begin := time.Now()
	claim, _ := w.readyClaim("torn")
	if n := reconcileErrors(t) - failures; n != 0 {
		t.Errorf("%v reconciliations count, and are logged, as failed", n)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("ready after %v", took)
	}
	if e := w.events(claim, ""); len(e) > 0 {
		t.Errorf("an event was shown: %s", e[0].Note)
	}
}

// reconcileErrors is how many reconciliations of claims have failed so far.
func reconcileErrors(t *testing.T) (sum float64) {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "bucketclaim" {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// The reply to the creation of the Bucket is lost: there is one Bucket all the same, and
// nobody hears of it.
func TestLostReplyOfBucketCreate(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	line.add(t, &rule{lost: true, match: func(s sent) bool {
		return s.method == http.MethodPost && strings.HasSuffix(s.path, "/buckets") && s.about(`"`+w.name+`"`)
	}})
	claim, _ := w.readyClaim("unheard")
	if n := len(w.bucketsOfWorld()); n != 1 {
		t.Errorf("%d Buckets, want 1", n)
	}
	if e := w.events(claim, ""); len(e) > 0 {
		t.Errorf("an event was shown: %s", e[0].Note)
	}
}

func (w *world) bucketsOfWorld() (names []string) {
	w.Helper()
	all := &api.BucketList{}
	if err := admin.List(w.ctx, all); err != nil {
		w.Fatal(err)
	}
	for _, b := range all.Items {
		if b.Spec.BucketClaimRef.Namespace == w.name {
			names = append(names, b.Name)
		}
	}
	return names
}

// A claim whose driver nobody serves says so, after a while and once. When somebody does
// at last, nothing but the Bucket's event can wake the claim.
func TestClaimOfUnservedDriver(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	claim := w.newClaim("unserved")
	bucket := w.bucketOf(claim)
	if w.get(claim); claim.Status.Error != nil {
		t.Errorf("the wait was spoken of at once: %s", *claim.Status.Error.Message)
	}
	w.awaitError(claim, controller.ReasonBucketNotReady, driverManual, "sidecar")
	if e := w.events(claim, ""); len(e) > 0 {
		t.Errorf("a wait got an event: %s", e[0].Note)
	}
	if err := serve(w.ctx, admin, bucket, api.ProtocolS3); err != nil {
		t.Fatal(err)
	}
	w.awaitReady(claim)
}

// What the sidecar says of a Bucket reaches the user, who can't read Buckets, and is
// gone when it does not hold any more (fault 14 of the COSI issues).
func TestBucketErrorIsHandedOn(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	claim := w.newClaim("troubled")
	bucket := w.bucketOf(claim)
	w.change(bucket, "status", func() {
		bucket.Status.ReadyToUse = ptr.To(false)
		bucket.Status.Error = api.NewError(time.Now(), "CreateFailed", "the driver says: quota is used up")
	})
	w.awaitError(claim, "CreateFailed", bucket.Name, "quota is used up")
	w.awaitEvent(claim, "CreateFailed")
	if err := serve(w.ctx, admin, bucket, api.ProtocolS3); err != nil {
		t.Fatal(err)
	}
	w.awaitReady(claim)
}

func TestBucketLacksProtocol(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	claim := w.newClaim("polyglot")
	if err := serve(w.ctx, admin, w.bucketOf(claim), api.ProtocolAzure); err != nil {
		t.Fatal(err)
	}
	w.awaitError(claim, controller.ReasonProtocolUnsupported, "S3", "Azure")
}

// A Bucket by the name of this claim's that was made for another is not taken.
func TestForgedBucketIsNotTaken(t *testing.T) {
	w := newWorld(t)
	claim := w.newClaim("victim") // no class yet, so no Bucket yet
	w.awaitError(claim, controller.ReasonClassNotFound)
	w.create(&api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: api.BucketName(claim)}, Spec: api.BucketSpec{
		DriverName: driverManual, DeletionPolicy: api.DeletionPolicyRetain,
		BucketClaimRef: api.BucketClaimReference{Namespace: "elsewhere", Name: "victim"}}})
	w.awaitError(w.reclass(claim), controller.ReasonBoundElsewhere, "by hand")
}

// reclass makes the class of the world, which wakes its claims.
func (w *world) reclass(claim *api.BucketClaim) *api.BucketClaim {
	w.Helper()
	w.class(driverFake, api.DeletionPolicyDelete)
	return claim
}

func (w *world) setAside(name, claim string) *api.Bucket {
	w.Helper()
	bucket := &api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name}, Spec: api.BucketSpec{
		DriverName: driverFake, DeletionPolicy: api.DeletionPolicyRetain, ExistingBucketID: "there-already",
		BucketClaimRef: api.BucketClaimReference{Namespace: w.name, Name: claim}}}
	w.create(bucket)
	return bucket
}

func (w *world) claimTo(name string, bucket string) *api.BucketClaim {
	claim := &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec: api.BucketClaimSpec{ExistingBucketName: bucket, Protocols: []api.ObjectProtocol{api.ProtocolS3}}}
	w.create(claim)
	return claim
}

func TestStaticClaimIsReadyInThreeWrites(t *testing.T) {
	w := newWorld(t)
	bucket := w.setAside("old", "static")
	w.await("the Bucket is served", func() bool { return w.get(bucket) && ptr.Deref(bucket.Status.ReadyToUse, false) })
	claim := w.claimTo("static", bucket.Name)
	w.awaitReady(claim)
	if w.get(bucket); bucket.Spec.BucketClaimRef.UID != claim.UID || claim.Status.BoundBucketName != bucket.Name {
		t.Errorf("not bound to each other: %v, %v", bucket.Spec.BucketClaimRef, claim.Status)
	}
	budget := []string{"PATCH bucketclaims", "PATCH buckets", "PATCH bucketclaims/status"}
	w.quiet("there are more writes than three", func() bool { return len(w.writes("/"+w.name+"/", bucket.Name)) > len(budget) })
	if d := cmp.Diff(budget, w.writes("/"+w.name+"/", bucket.Name)); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
}

// A claim to a Bucket that is not there, then there for somebody else, then right.
func TestStaticClaimFollowsItsBucket(t *testing.T) {
	w := newWorld(t)
	name := w.name + "-later"
	claim := w.claimTo("patient", name)
	w.awaitError(claim, controller.ReasonBucketNotFound, name)

	other := w.setAside("later", "somebody")
	w.awaitError(claim, controller.ReasonBoundElsewhere, w.name, "patient")
	w.delete(other)
	w.awaitGone(other)

	right := w.setAside("later", "patient")
	w.awaitReady(claim)

	// The Bucket was bound once; a later claim of the same name does not get it.
	w.delete(claim)
	w.awaitGone(claim)
	if !w.get(right) || right.Spec.BucketClaimRef.UID != claim.UID {
		t.Fatalf("the Bucket with policy Retain is not as it was: %v", right.Spec.BucketClaimRef)
	}
	w.awaitError(w.claimTo("patient", name), controller.ReasonBoundElsewhere, string(claim.UID), "existingBucketID")
}

func TestStaticBucketLacksProtocol(t *testing.T) {
	w := newWorld(t)
	bucket := w.setAside("mute", "static")
	w.await("the Bucket is served", func() bool { return w.get(bucket) && ptr.Deref(bucket.Status.ReadyToUse, false) })
	claim := &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "static"},
		Spec: api.BucketClaimSpec{ExistingBucketName: bucket.Name, Protocols: []api.ObjectProtocol{api.ProtocolGCS}}}
	w.create(claim)
	w.awaitError(claim, controller.ReasonProtocolUnsupported, "GCS")
	if w.get(bucket); bucket.Spec.BucketClaimRef.UID != "" {
		t.Error("the Bucket was bound all the same")
	}
}

// A cache that is behind shows a claim that is long gone. Nothing is made for it, nor
// for another one of the same name in its stead (fault 13 of the COSI issues,
// kubernetes-csi/external-provisioner#1469).
func TestNothingIsMadeForADeadClaim(t *testing.T) {
	for _, again := range []bool{false, true} {
		name := map[bool]string{false: "deleted", true: "made again"}[again]
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dead := w.newClaim("ghost")
			w.awaitError(dead, controller.ReasonClassNotFound)
			thaw := line.freeze(t, "bucketclaims")
			w.delete(dead)
			w.awaitGone(dead)
			if again {
				w.newClaim("ghost")
			}
			w.class(driverFake, api.DeletionPolicyDelete)
			// It must have tried, or this proves nothing.
			w.await("the controller takes up the dead claim", func() bool {
				return slices.Contains(w.writes("/"+w.name+"/bucketclaims/ghost"), "PATCH bucketclaims")
			})
			w.quiet("a Bucket was made", func() bool { return len(w.bucketsOfWorld()) > 0 })
			thaw()
			if again {
				claim := w.claim("ghost")
				w.awaitReady(claim)
			}
			for _, b := range w.bucketsOfWorld() {
				if b == api.BucketName(dead) {
					t.Errorf("Bucket %s was made for a claim that was gone", b)
				}
			}
		})
	}
}

// Fault 17 of the COSI issues: a Bucket that was removed by force is made again under the
// same name, and for the same driver though the class is another one by now.
func TestBucketIsMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		intent bool // the first Bucket left an Intent
		class  bool // there is a class of that name again, of another driver
		driver string
		policy api.DeletionPolicy
	}{
		"intent":             {true, true, driverFake, api.DeletionPolicyDelete},
		"intent, no class":   {true, false, driverFake, api.DeletionPolicyRetain},
		"control: no intent": {false, true, driverManual, api.DeletionPolicyDelete},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			class := w.class(driverFake, api.DeletionPolicyDelete)
			claim, bucket := w.readyClaim("keeper")
			if c.intent {
				w.intent(bucket.Name, func(i *v1alpha1.IntentSpec) {
					i.Inputs.Parameters = map[string]string{"tier": "gold"}
				})
			}
			w.delete(class)
			w.awaitGone(class)
			if c.class {
				w.class(driverManual, api.DeletionPolicyDelete)
			}
			w.change(bucket, "", func() { bucket.Finalizers = nil })
			w.delete(claimless(bucket))
			w.await("the Bucket is there again", func() bool {
				again := &api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: bucket.Name}}
				if !w.get(again) || again.UID == bucket.UID {
					return false
				}
				want := bucket.Spec.DeepCopy()
				want.DriverName, want.DeletionPolicy = c.driver, c.policy
				if d := cmp.Diff(*want, again.Spec); d != "" {
					t.Errorf("the Bucket made again (-want +got):\n%s", d)
				}
				return true
			})
			if c.driver == driverFake {
				w.awaitReady(claim)
			}
		})
	}
}

func claimless(b *api.Bucket) *api.Bucket {
	return &api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: b.Name}}
}

// intent makes the Intent of a Bucket or account, as a sidecar would have.
func (w *world) intent(name string, change func(*v1alpha1.IntentSpec)) *v1alpha1.Intent {
	w.Helper()
	kind, owner := v1alpha1.KindBucket, "Bucket"
	if strings.HasPrefix(name, api.AccountNamePrefix) {
		kind, owner = v1alpha1.KindAccess, "BucketAccess"
	}
	intent := &v1alpha1.Intent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: v1alpha1.Labels(kind, driverFake)},
		Spec: v1alpha1.IntentSpec{
			FormatVersion: v1alpha1.FormatVersion, ClusterUID: "this", Kind: kind, Driver: driverFake, Name: name,
			Owner: v1alpha1.Owner{APIVersion: api.GroupVersion().String(), Kind: owner, Name: name},
			Phase: v1alpha1.PhaseLive, Origin: v1alpha1.OriginCreated, ID: "id-" + name, Proven: true,
		},
	}
	change(&intent.Spec)
	w.create(intent)
	return intent
}
