package sidecar_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/cosi/wire"
)

// A Bucket made late, by a controller with an old view, for a claim that is gone: nothing is provisioned.
func TestClaimGone(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim := w.claim("it")
	w.edit(claim, false, func() { claim.Finalizers = nil })
	w.delete(claim)
	b := w.bucket(claim)
	if text := w.says(b, v1alpha1.ReasonClaimGone); !contains(text, "Retain") {
		t.Errorf("a restored Bucket is to be deleted, with no word of its policy: %s", text)
	}
	again := w.claim("it") // another of the same name is another
	w.stays("nothing is asked of the driver", func() bool { return w.driver.called("") == 0 && w.intent(b) == nil })
	w.delete(again)
}

// A claim that is being deleted: the same, until the controller deletes the Bucket too.
func TestClaimDeleting(t *testing.T) {
	w := newWorld(t)
	w.driver.recovers(wire.Capabilities{DeleteByName: true})
	w.sidecar()
	claim := w.claim("it")
	w.delete(claim)
	b := w.bucket(claim)
	w.says(b, v1alpha1.ReasonClaimDeleting)
	w.delete(b)
	w.nothingLeft(b)
	if w.driver.called("create") != 0 {
		t.Errorf("calls %v", w.driver.log())
	}
}

// What an access says of its Buckets is compared with the Buckets: whoever can write its status must not get into
// another's bucket.
func TestForgedAccessedBuckets(t *testing.T) {
	for name, forge := range map[string]func(own, other *cosi.Bucket, a *cosi.BucketAccess){
		"another's bucket": func(_, other *cosi.Bucket, a *cosi.BucketAccess) {
			a.Status.AccessedBuckets[0].BucketName, a.Status.AccessedBuckets[0].BucketID = other.Name, other.Status.BucketID
		},
		"another's id": func(_, other *cosi.Bucket, a *cosi.BucketAccess) {
			a.Status.AccessedBuckets[0].BucketID = other.Status.BucketID
		},
		"no such bucket":  func(_, _ *cosi.Bucket, a *cosi.BucketAccess) { a.Status.AccessedBuckets[0].BucketName = "none" },
		"no bucket":       func(_, _ *cosi.Bucket, a *cosi.BucketAccess) { a.Status.AccessedBuckets = nil },
		"another claim's": func(_, _ *cosi.Bucket, a *cosi.BucketAccess) { a.Status.AccessedBuckets[0].BucketClaimName = "other" },
		"and an id of its own": func(_, other *cosi.Bucket, a *cosi.BucketAccess) {
			a.Status.AccessedBuckets[0].BucketID, a.Status.AccountID = other.Status.BucketID, "root"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sidecar()
			_, own := w.readyBucket("own")
			_, other := w.readyBucket("other")
			a := w.access("it", own, func(a *cosi.BucketAccess) { forge(own, other, a) })
			w.says(a, v1alpha1.ReasonBucketMismatch)
			w.stays("nothing is granted", func() bool { return w.driver.called("grant") == 0 && w.intent(a) == nil })
		})
	}
}

// A Bucket of an earlier claim of the same name: the claim that is there now has no right to it.
func TestAccessToEarlierClaimsBucket(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, b := w.readyBucket("it", func(b *cosi.Bucket) { b.Spec.DeletionPolicy = cosi.DeletionPolicyRetain })
	w.edit(claim, false, func() { claim.Finalizers = nil })
	w.delete(claim)
	w.gone(&cosi.BucketClaim{ObjectMeta: claim.ObjectMeta})
	w.claim("it")
	a := w.access("it", b)
	w.says(a, v1alpha1.ReasonBucketMismatch)
}

// An account id that somebody has put into the status is not believed: it is neither served nor revoked.
func TestForgedAccountID(t *testing.T) {
	w := newWorld(t)
	w.driver.accounts["root"] = "root"
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b, func(a *cosi.BucketAccess) { a.Status.AccountID = "root" })
	w.eventually("it is looked at", func() bool { return w.intent(a) != nil })
	w.delete(a)
	w.says(a, "Unproven")
	w.edit(a, false, func() { metav1.SetMetaDataAnnotation(&a.ObjectMeta, cosi.AnnotationSidecarCleanupFinished, "") })
	w.stays("root stays, and so does the object", func() bool { return slices.Equal(w.driver.accountIDs(), []string{"root"}) && w.get(a) })
}

// Annotations of the hand-off, written by anybody, change nothing: what is live is not revoked, what is deleted is.
func TestForgedAnnotations(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	a, _ := w.readyAccess("it")
	forge := func() {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, cosi.AnnotationSidecarCleanupFinished, "")
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, cosi.AnnotationControllerManagementOverride, "")
	}
	w.edit(a, false, forge)
	w.stays("it serves", func() bool { return len(w.driver.accountIDs()) == 1 })
	w.delete(a)
	w.gone(a)
	w.eventually("it is revoked", func() bool { return len(w.driver.accountIDs()) == 0 })
}

// The finalizer that was taken off comes back while the object is wanted.
func TestFinalizerStripped(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.sidecar()
		o := s.want()
		w.isReady(o)
		w.edit(o, false, func() { o.SetFinalizers(nil) })
		w.eventually("it is on again", func() bool { w.get(o); return slices.Contains(o.GetFinalizers(), v1alpha1.ProtectionFinalizer) })
	})
}

// Another orchestrator was here: its finalizer, no Intent. What it may have made is looked for before the object goes.
func TestTakenOverInDoubt(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.recovers(wire.Capabilities{DeleteByName: true})
		o := s.want()
		w.edit(o, false, func() { o.SetFinalizers([]string{cosi.ProtectionFinalizer}) })
		id := o.GetName()
		if a, ok := o.(*cosi.BucketAccess); ok {
			id = cosi.AccountName(a)
			w.driver.mu.Lock()
			w.driver.accounts[id] = id
			w.driver.mu.Unlock()
		} else {
			w.driver.put(id, id)
		}
		s.drop(o)
		w.sidecar()
		w.gone(o)
		w.eventually("what upstream made is gone", func() bool { return !slices.Contains(s.ids(), id) })
	})
}

// A Secret name that somebody else has: it is left as it is, the credentials are not lost, and all is well once the name
// is free.
func TestSecretTaken(t *testing.T) {
	w := newWorld(t)
	theirs := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "it-0", Annotations: map[string]string{"custody.dev/account-id": "x"}},
		Data: map[string][]byte{"mine": []byte("1")}}
	w.create(theirs)
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b)
	if text := w.says(a, v1alpha1.ReasonSecretTaken); !contains(text, w.ns+"/it-0") {
		t.Errorf("%q does not name it", text)
	}
	w.get(theirs)
	if len(theirs.Data) != 1 || string(theirs.Data["mine"]) != "1" {
		t.Errorf("it was overwritten: %v", theirs.Data)
	}
	w.delete(theirs)
	w.isReady(a)
	if w.driver.called("grant") != 1 {
		t.Errorf("calls %v", w.driver.log())
	}
	w.edit(theirs2(a), false, func() {})
	w.delete(a)
	w.gone(a)
	w.gone(theirs2(a))
}

func theirs2(a *cosi.BucketAccess) *core.Secret {
	return &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name + "-0"}}
}

// Upstream's sidecar puts its finalizer on Secrets. One of an access that was taken over goes all the same.
func TestSecretWithUpstreamFinalizer(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	a, _ := w.readyAccess("it")
	secret := theirs2(a)
	w.edit(secret, false, func() { secret.SetFinalizers([]string{cosi.ProtectionFinalizer}) })
	w.delete(a)
	w.gone(a)
	w.gone(secret)
}

// A taken Secret that is not the access's stays when the access goes.
func TestForeignSecretStays(t *testing.T) {
	w := newWorld(t)
	theirs := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "it-0"}}
	w.create(theirs)
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b)
	w.says(a, v1alpha1.ReasonSecretTaken)
	w.delete(a)
	w.gone(a)
	if !w.get(theirs) {
		t.Error("the Secret of somebody else is gone")
	}
	if len(w.driver.accountIDs()) != 0 {
		t.Errorf("left: %v", w.driver.accountIDs())
	}
}

// A Secret that a user has deleted is made again, with one live account: where a repeat is safe by asking again, else by
// revoking and granting anew, if the id comes back the same.
func TestSecretDeleted(t *testing.T) {
	for name, can := range map[string]func(*sidecar.Options){
		"repeat":   func(o *sidecar.Options) { o.RepeatSafe = []string{"access"} },
		"template": func(o *sidecar.Options) { o.AccountIDTemplate = "{{.Name}}" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.sidecar(can)
			a, _ := w.readyAccess("it")
			c.stop(w)
			w.delete(theirs2(a))
			w.sidecar(can)
			w.eventually("it is back", func() bool { return w.get(theirs2(a)) })
			w.eventually("it holds a key that works", func() bool {
				s := theirs2(a)
				return w.get(s) && string(s.Data[cosi.KeyS3AccessSecretKey]) == w.driver.key(a.Status.AccountID)
			})
			if got := w.driver.accountIDs(); !slices.Equal(got, []string{a.Status.AccountID}) {
				t.Errorf("accounts %v", got)
			}
		})
	}
	t.Run("no way", func(t *testing.T) {
		w := newWorld(t)
		w.driver.assigned()
		c := w.sidecar()
		a, _ := w.readyAccess("it")
		c.stop(w)
		w.delete(theirs2(a))
		w.sidecar()
		w.says(a, v1alpha1.ReasonCredentialsLost)
		w.eventually("it is not ready", func() bool { w.get(a); ready, _, _ := statusOf(a); return !ready })
		w.delete(a)
		w.gone(a)
		w.eventually("nothing is left", func() bool { return len(w.driver.accountIDs()) == 0 })
	})
}

// Intents that are not ours to act on: of a newer format, of another cluster, of another driver, written by hand.
func TestHandsOff(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.IntentSpec){
		v1alpha1.ReasonNewerFormat:  func(s *v1alpha1.IntentSpec) { s.FormatVersion = 2; s.Phase = "Hibernating" },
		v1alpha1.ReasonOtherCluster: func(s *v1alpha1.IntentSpec) { s.ClusterUID = "00000000-0000-0000-0000-000000000000" },
		v1alpha1.ReasonOtherDriver:  func(s *v1alpha1.IntentSpec) { s.Driver = "other.test" },
		v1alpha1.ReasonOtherOwner:   func(s *v1alpha1.IntentSpec) { s.Name = "bc-of-another" },
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			claim := w.claim("it")
			ns := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
			w.get(ns)
			i := &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: cosi.BucketName(claim), Labels: v1alpha1.Labels(v1alpha1.KindBucket, w.driver.info.Name)}}
			i.Spec = v1alpha1.IntentSpec{
				FormatVersion: 1, ClusterUID: string(ns.UID), Driver: w.driver.info.Name, Kind: v1alpha1.KindBucket, Name: cosi.BucketName(claim),
				Owner: v1alpha1.Owner{Kind: "Bucket", Name: cosi.BucketName(claim)}, Phase: v1alpha1.PhaseDeleting, Origin: v1alpha1.OriginCreated, ID: "precious", Proven: true,
			}
			change(&i.Spec)
			w.create(i)
			w.driver.put("precious", "precious")
			w.sidecar()
			b := w.bucket(claim)
			w.says(b, reason)
			w.deleteBoth(claim, b)
			w.stays("nothing is touched", func() bool { return w.driver.called("") == 0 && w.get(b) })
			before := i.ResourceVersion
			if w.get(i); i.ResourceVersion != before {
				t.Error("the Intent was written")
			}
		})
	}
}

// A driver that answers nonsense, by code and by content.
func TestNonsense(t *testing.T) {
	for name, answer := range map[string]struct {
		hook   hook
		reason string
	}{
		"no id":               {fails(codes.Internal, "answered OK without an id"), v1alpha1.ReasonNoWayToLook},
		"unimplemented":       {fails(codes.Unimplemented, "what?"), "CreateFailed"},
		"megabytes of bytes":  {fails(codes.ResourceExhausted, strings.Repeat("full \xff", 1<<18)), v1alpha1.ReasonNoWayToLook},
		"a code that is none": {fails(codes.Code(77), "seventy-seven"), v1alpha1.ReasonNoWayToLook},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver.onBefore("create", answer.hook)
			w.sidecar()
			claim := w.claim("it")
			b := w.bucket(claim)
			if answer.reason == "CreateFailed" {
				w.eventually("it is said", func() bool { w.get(b); return b.Status.Error.Reason() != "" })
				return
			}
			w.says(b, answer.reason)
			w.eventually("the Intent says it, too", func() bool { return condition(w.intent(b), v1alpha1.ConditionStuck) == answer.reason })
		})
	}
}

// A driver that can't be reached is told from one that answers: nothing was made, so no look is needed later.
func TestDriverDown(t *testing.T) {
	w := newWorld(t)
	w.driver.onBefore("create", func(context.Context, string) error { return unreachable() })
	w.sidecar()
	claim := w.claim("it")
	b := w.bucket(claim)
	w.says(b, v1alpha1.ReasonDriverDown)
	w.driver.onBefore("create", nil)
	w.isReady(b)
	if i := w.intent(b); i.Spec.Doubt || i.Spec.Missed || i.Spec.Attempt != "" {
		t.Errorf("the intent is in doubt: %+v", i.Spec)
	}
	w.deleteBoth(claim, b)
	w.nothingLeft(b)
}

// The account's role does not go beyond what is needed.
func TestRole(t *testing.T) {
	w := newWorld(t)
	c := clientFor(t, account)
	for name, try := range map[string]func() error{
		"list Secrets":    func() error { return c.List(w.Context(), &core.SecretList{}) },
		"change a Bucket": func() error { return c.Update(w.Context(), &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: "x"}}) },
		"change a claim": func() error {
			return c.Update(w.Context(), &cosi.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "x"}})
		},
		"list claims":     func() error { return c.List(w.Context(), &cosi.BucketClaimList{}) },
		"read namespaces": func() error { return c.List(w.Context(), &core.NamespaceList{}) },
	} {
		if err := try(); !forbidden(err) {
			t.Errorf("%s: %v, want it forbidden", name, err)
		}
	}
}
