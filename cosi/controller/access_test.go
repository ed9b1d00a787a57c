package controller_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
)

func (w *world) accessClass(change func(*api.BucketAccessClassSpec)) *api.BucketAccessClass {
	w.Helper()
	class := &api.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: api.BucketAccessClassSpec{
		DriverName: driverFake, AuthenticationType: api.AuthenticationTypeKey, Parameters: map[string]string{"role": "user"}}}
	if change != nil {
		change(&class.Spec)
	}
	w.create(class)
	return class
}

// access is an access to claims, each by a Secret of its own.
func (w *world) access(name string, claims ...string) *api.BucketAccess {
	access := &api.BucketAccess{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec: api.BucketAccessSpec{BucketAccessClassName: w.name, Protocol: api.ProtocolS3}}
	for _, claim := range claims {
		access.Spec.BucketClaims = append(access.Spec.BucketClaims,
			api.BucketClaimAccess{BucketClaimName: claim, AccessMode: api.AccessModeReadWrite, AccessSecretName: name + "-" + claim})
	}
	return access
}

func (w *world) awaitAccessReady(access *api.BucketAccess) {
	w.Helper()
	w.await("access "+access.Name+" is ready", func() bool { return w.get(access) && ptr.Deref(access.Status.ReadyToUse, false) })
}

func TestAccessIsHandedOverInTwoWrites(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(nil)
	_, bucket := w.readyClaim("data")
	access := w.access("user", "data")
	w.create(access)
	w.awaitAccessReady(access)

	want := api.BucketAccessStatus{
		ReadyToUse: ptr.To(true), AccountID: "id-" + api.AccountName(access),
		AccessedBuckets: []api.AccessedBucket{{BucketName: bucket.Name, BucketID: bucket.Status.BucketID, BucketClaimName: "data"}},
		DriverName:      driverFake, AuthenticationType: api.AuthenticationTypeKey, Parameters: map[string]string{"role": "user"},
	}
	if d := cmp.Diff(want, access.Status); d != "" {
		t.Errorf("the status (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{v1alpha1.ProtectionFinalizer}, access.Finalizers); d != "" {
		t.Errorf("finalizers (-want +got):\n%s", d)
	}
	budget := []string{"PATCH bucketaccesses", "PATCH bucketaccesses/status"}
	writes := func() []string { return w.writes("/" + w.name + "/bucketaccesses/user") }
	w.quiet("there are more writes than two", func() bool { return len(writes()) > len(budget) })
	if d := cmp.Diff(budget, writes()); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
	if e := w.events(access, ""); len(e) > 0 {
		t.Errorf("an event about an access without trouble: %s", e[0].Note)
	}
}

func TestAccessByServiceAccountToSeveralBuckets(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(func(s *api.BucketAccessClassSpec) {
		s.AuthenticationType, s.MultiBucketAccess = api.AuthenticationTypeServiceAccount, api.MultiBucketAccessMultiple
	})
	access := w.access("user", "one", "two")
	access.Spec.ServiceAccountName = "pod"
	w.create(access)
	w.awaitError(access, controller.ReasonClaimNotFound, "one")
	w.newClaim("one")
	w.newClaim("two")
	w.awaitAccessReady(access)
	if n := len(access.Status.AccessedBuckets); n != 2 || access.Status.Error != nil {
		t.Errorf("status: %+v", access.Status)
	}
}

// Each thing that can be wrong with an access has a reason of its own and is told once.
// Where it can be mended, mending it is enough.
func TestAccessIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		class  func(*api.BucketAccessClassSpec)
		access func(*api.BucketAccess)
		reason string
		words  string
		mend   func(*world)
	}{
		"no such class": {
			access: func(a *api.BucketAccess) { a.Spec.BucketAccessClassName = a.Namespace + "-later" },
			reason: controller.ReasonClassNotFound, words: "later",
			mend: func(w *world) {
				w.create(&api.BucketAccessClass{ObjectMeta: metav1.ObjectMeta{Name: w.name + "-later"},
					Spec: api.BucketAccessClassSpec{DriverName: driverFake, AuthenticationType: api.AuthenticationTypeKey}})
			},
		},
		"several buckets": {
			access: func(a *api.BucketAccess) {
				a.Spec.BucketClaims = append(a.Spec.BucketClaims, api.BucketClaimAccess{
					BucketClaimName: "more", AccessMode: api.AccessModeReadOnly, AccessSecretName: "more"})
			},
			reason: controller.ReasonSeveralBuckets, words: "MultipleBuckets",
		},
		"mode": {
			class: func(s *api.BucketAccessClassSpec) {
				s.DisallowedBucketAccessModes = []api.AccessMode{api.AccessModeReadWrite}
			},
			reason: controller.ReasonModeDisallowed, words: "ReadWrite",
		},
		"one Secret for two": {
			class: func(s *api.BucketAccessClassSpec) { s.MultiBucketAccess = api.MultiBucketAccessMultiple },
			access: func(a *api.BucketAccess) {
				a.Spec.BucketClaims = append(a.Spec.BucketClaims, api.BucketClaimAccess{
					BucketClaimName: "more", AccessMode: api.AccessModeReadOnly, AccessSecretName: a.Spec.BucketClaims[0].AccessSecretName})
			},
			reason: controller.ReasonSecretNameTwice, words: "accessSecretName",
		},
		"no ServiceAccount": {
			class:  func(s *api.BucketAccessClassSpec) { s.AuthenticationType = api.AuthenticationTypeServiceAccount },
			reason: controller.ReasonNoServiceAccount, words: "serviceAccountName",
		},
		"no such claim": {
			access: func(a *api.BucketAccess) { a.Spec.BucketClaims[0].BucketClaimName = "later" },
			reason: controller.ReasonClaimNotFound, words: "later",
			mend: func(w *world) { w.newClaim("later") },
		},
		"other driver": {
			class:  func(s *api.BucketAccessClassSpec) { s.DriverName = driverManual },
			reason: controller.ReasonOtherDriver, words: driverManual,
		},
		"protocol": {
			access: func(a *api.BucketAccess) { a.Spec.Protocol = api.ProtocolGCS },
			reason: controller.ReasonProtocolUnsupported, words: "GCS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.class(driverFake, api.DeletionPolicyDelete)
			w.accessClass(c.class)
			w.readyClaim("data")
			access := w.access("user", "data")
			if c.access != nil {
				c.access(access)
			}
			w.create(access)
			w.awaitError(access, c.reason, c.words)
			w.awaitEvent(access, c.reason)
			if access.Status.DriverName != "" {
				t.Error("it was handed over all the same")
			}
			if c.mend != nil {
				c.mend(w)
				w.awaitAccessReady(access)
				if access.Status.Error != nil {
					t.Errorf("ready, and an error: %s", *access.Status.Error.Message)
				}
				return
			}
			// Nobody was asked for anything: it goes at once.
			w.delete(access)
			w.awaitGone(access)
		})
	}
}

// A claim that is not ready is waited for, and spoken of after a while.
func TestAccessWaitsForItsClaim(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	w.accessClass(func(s *api.BucketAccessClassSpec) { s.DriverName = driverManual })
	claim := w.newClaim("slow")
	access := w.access("user", "slow")
	w.create(access)
	bucket := w.bucketOf(claim)
	w.awaitError(access, controller.ReasonClaimNotReady, "slow")
	if e := w.events(access, ""); len(e) > 0 {
		t.Errorf("a wait got an event: %s", e[0].Note)
	}
	if err := serve(w.ctx, admin, bucket, api.ProtocolS3); err != nil {
		t.Fatal(err)
	}
	w.await("the access is handed over", func() bool { return w.get(access) && access.Status.DriverName != "" })
	if over := w.handOver(access); !over.about(`"error":null`) {
		t.Errorf("the hand-over left the error: %s", over.body)
	}
	// It is older than the controller's patience by now, but the sidecar's time has only begun.
	w.awaitUnserved(access)
}

// handOver is the write by which an access became the sidecar's.
func (w *world) handOver(access *api.BucketAccess) sent {
	w.Helper()
	return w.statusWrite(access, `"driverName":`)
}

// awaitUnserved waits until the controller says that no sidecar serves an access. That must
// not come before the sidecar had its time, however old the access is. The times are those at
// which the controller sent its writes, so a busy machine changes nothing.
func (w *world) awaitUnserved(access *api.BucketAccess) {
	w.Helper()
	w.awaitError(access, controller.ReasonNotServed, driverManual, "sidecar")
	if took := w.statusWrite(access, controller.ReasonNotServed).at.Sub(w.handOver(access).at); took < patience {
		w.Errorf("the sidecar was given %v, want at least %v", took, patience)
	}
}

// statusWrite is the controller's first write of a status that speaks of something.
func (w *world) statusWrite(access *api.BucketAccess, of string) sent {
	w.Helper()
	writes := line.requests(func(s sent) bool {
		return s.write() && strings.HasSuffix(s.path, "/"+access.Namespace+"/bucketaccesses/"+access.Name+"/status") && strings.Contains(s.body, of)
	})
	if len(writes) == 0 {
		w.Fatalf("the controller has written no status of access %s that speaks of %s", access.Name, of)
	}
	return writes[0]
}

// The cache has not seen yet that a claim is being deleted; the access asks the API server.
func TestAccessReadsItsClaimsLive(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(nil)
	first := w.access("first", "data")
	claim, _ := w.readyClaim("data")
	w.create(first)
	w.awaitAccessReady(first)

	thaw := line.freeze(t, "bucketclaims")
	w.delete(claim) // stays, because of the first access
	second := w.access("second", "data")
	w.create(second)
	w.awaitError(second, controller.ReasonClaimDeleting, "data")
	if second.Status.DriverName != "" {
		t.Error("it was handed over all the same")
	}
	thaw()
	w.delete(first)
	w.delete(second)
	w.awaitGone(claim)
}

// A forged status of a claim does not give access to the bucket of another.
func TestForgedClaimStatus(t *testing.T) {
	w := newWorld(t)
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(nil)
	_, secret := w.readyClaim("secret")
	thief := &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "thief"},
		Spec: api.BucketClaimSpec{BucketClassName: w.name + "-none"}}
	w.create(thief)
	w.awaitError(thief, controller.ReasonClassNotFound)
	// The controller would set the status right before the access is looked at.
	mend := line.add(t, &rule{status: http.StatusServiceUnavailable, always: true, match: func(s sent) bool {
		return s.write() && strings.HasSuffix(s.path, "/"+w.name+"/bucketclaims/thief/status")
	}})
	w.change(thief, "status", func() {
		thief.Status = api.BucketClaimStatus{BoundBucketName: secret.Name, ReadyToUse: ptr.To(true)}
	})
	access := w.access("user", "thief")
	w.create(access)
	w.awaitError(access, controller.ReasonBoundElsewhere, secret.Name)
	if access.Status.DriverName != "" || len(access.Status.AccessedBuckets) > 0 {
		t.Errorf("handed over: %+v", access.Status)
	}
	mend()
	w.awaitError(thief, controller.ReasonBoundElsewhere, secret.Name)
}

// While it is deleted, an access is the sidecar's once it was handed over. Annotations that
// a tenant could write free nothing.
func TestForgedCleanupFreesNothing(t *testing.T) {
	for _, annotation := range []string{api.AnnotationSidecarCleanupFinished, api.AnnotationControllerManagementOverride} {
		for _, phase := range []v1alpha1.Phase{"", v1alpha1.PhaseLive, v1alpha1.PhaseDeleting} {
			t.Run(annotation+" with Intent "+string(phase), func(t *testing.T) {
				w := newWorld(t)
				access := w.handedOver()
				if phase != "" {
					w.intent(api.AccountName(access), func(i *v1alpha1.IntentSpec) { i.Phase, i.Owner.UID = phase, access.UID })
				}
				w.delete(access)
				w.change(access, "", func() { access.Annotations = map[string]string{annotation: "true"} })
				w.awaitEvent(access, controller.ReasonAnnotationIgnored)
				if !w.get(access) || len(access.Finalizers) == 0 {
					t.Fatal("the annotation freed the access")
				}
				if err := letGo(w.ctx, admin, access); err != nil {
					t.Fatal(err)
				}
				w.awaitGone(access)
			})
		}
	}
}

// With the override an admin gives an access to the controller, which lets it go when the
// Intent says that nothing is left. This is also the control of the test above.
func TestOverrideFreesWhatIsReleased(t *testing.T) {
	w := newWorld(t)
	access := w.handedOver()
	now := metav1.Now()
	w.intent(api.AccountName(access), func(i *v1alpha1.IntentSpec) {
		i.Phase, i.ReleasedAt, i.Owner.UID, i.ID = v1alpha1.PhaseReleased, &now, access.UID, ""
	})
	w.delete(access)
	w.change(access, "", func() {
		access.Annotations = map[string]string{api.AnnotationControllerManagementOverride: "true"}
	})
	w.awaitGone(access)
}

// handedOver is an access that a sidecar of driverManual has to serve.
func (w *world) handedOver() *api.BucketAccess {
	w.Helper()
	w.class(driverManual, api.DeletionPolicyDelete)
	w.accessClass(func(s *api.BucketAccessClassSpec) { s.DriverName = driverManual })
	claim := w.newClaim("data")
	if err := serve(w.ctx, admin, w.bucketOf(claim), api.ProtocolS3); err != nil {
		w.Fatal(err)
	}
	access := w.access("user", "data")
	w.create(access)
	w.await("the access is handed over", func() bool { return w.get(access) && access.Status.DriverName != "" })
	return access
}

// An access that no sidecar serves, or revokes, says so after a while.
func TestAccessOfUnservedDriver(t *testing.T) {
	w := newWorld(t)
	access := w.handedOver()
	w.awaitUnserved(access)
	w.change(access, "status", func() { access.Status.ReadyToUse, access.Status.Error = ptr.To(true), nil })
	w.delete(access)
	w.awaitError(access, controller.ReasonNotServed, driverManual, "sidecar")
	if len(access.Finalizers) == 0 {
		t.Error("it was let go")
	}
	if err := letGo(w.ctx, admin, access); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(access)
}

// The status of an access was lost, and an Intent says that the driver was asked. It is
// not let go; the sidecar gets it again.
func TestLostStatusIsHandedBack(t *testing.T) {
	for name, c := range map[string]struct {
		intent func(*v1alpha1.IntentSpec)
		reason string // of the error; "" if it is handed back
		gone   bool
	}{
		"live":         {intent: func(*v1alpha1.IntentSpec) {}},
		"newer format": {intent: func(i *v1alpha1.IntentSpec) { i.FormatVersion = v1alpha1.FormatVersion + 1 }, reason: controller.ReasonHandsOff},
		"other owner":  {intent: func(i *v1alpha1.IntentSpec) { i.Owner.UID = "another" }, reason: controller.ReasonHandsOff},
		"released": {intent: func(i *v1alpha1.IntentSpec) {
			now := metav1.Now()
			i.Phase, i.ReleasedAt, i.ID = v1alpha1.PhaseReleased, &now, ""
		}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			access := w.access("restored", "nothing")
			access.Finalizers = []string{v1alpha1.ProtectionFinalizer}
			w.create(access)
			w.intent(api.AccountName(access), func(i *v1alpha1.IntentSpec) {
				i.Owner.UID, i.Driver = access.UID, driverManual
				c.intent(i)
			})
			w.delete(access)
			switch {
			case c.gone:
				w.awaitGone(access)
			case c.reason != "":
				w.awaitError(access, c.reason)
				if len(access.Finalizers) == 0 {
					t.Error("it was let go")
				}
			default:
				w.await("it is the sidecar's again", func() bool { return w.get(access) && access.Status.DriverName == driverManual })
				if len(access.Finalizers) == 0 {
					t.Error("it was let go")
				}
			}
		})
	}
}
