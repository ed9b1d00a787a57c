package sidecar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/test/failpoint"
)

// The faults are those seen in COSI's own controllers and in drivers; numbers follow one list for the whole project, and
// those that are missing here are the controller's.

// gate holds calls back until it is opened.
type gate struct{ arrived, open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 64), make(chan struct{})} }

func (g *gate) hold(ctx context.Context, _ string) error {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// subject is a Bucket or an access that one test is played for.
type subject struct {
	make   string // the driver's call that makes it
	delete string // ... and that deletes it
	ids    func() []string
	// want makes the object, drop deletes it.
	want func() client.Object
	drop func(client.Object)
}

// both plays a test for a Bucket and for an access.
func both(t *testing.T, play func(*world, subject)) {
	t.Run("bucket", func(t *testing.T) {
		w := newWorld(t)
		var claim *cosi.BucketClaim
		play(w, subject{make: "create", delete: "delete", ids: w.driver.bucketIDs,
			want: func() client.Object { claim = w.claim("it"); return w.bucket(claim) },
			drop: func(o client.Object) { w.deleteBoth(claim, o.(*cosi.Bucket)) }})
	})
	t.Run("access", func(t *testing.T) {
		w := newWorld(t)
		play(w, subject{make: "grant", delete: "revoke", ids: w.driver.accountIDs,
			want: func() client.Object { return w.access("it", w.servedBucket("its")) },
			drop: func(o client.Object) { w.delete(o) }})
	})
}

// servedBucket makes a Bucket that is ready before any sidecar runs.
func (w *world) servedBucket(name string) *cosi.Bucket {
	w.Helper()
	w.driver.put("lent-"+name, "")
	b := w.bucket(w.claim(name), func(b *cosi.Bucket) { b.Spec.ExistingBucketID = "lent-" + name })
	ready := true
	w.edit(b, true, func() {
		b.Status = cosi.BucketStatus{ReadyToUse: &ready, BucketID: "lent-" + name, Protocols: []cosi.ObjectProtocol{cosi.ProtocolS3}}
	})
	return b
}

// Fault 1: the delete comes while the create runs. The deletion changes the object under the call.
func TestFault1DeleteWhileCreateRuns(t *testing.T) {
	both(t, func(w *world, s subject) {
		g := newGate()
		w.driver.onBefore(s.make, g.hold)
		w.sidecar(func(o *sidecar.Options) { o.CallTimeout, o.Settle = 10*time.Second, 10*time.Second })
		o := s.want()
		<-g.arrived
		s.drop(o)
		close(g.open)
		w.gone(o)
		w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 && w.intent(o) == nil })
		if w.driver.called(s.make) != 1 {
			w.Errorf("calls %v, want one %s", w.driver.log(), s.make)
		}
	})
}

// Fault 3: the API refuses the id that the driver answers.
func TestFault3IDRefused(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.id = func(_ wire.Kind, name string, _ int) string { return "c3RvcmFnZQ==+" + name }
		w.sidecar()
		o := s.want()
		w.says(o, v1alpha1.ReasonIDRefused)
		if i := w.intent(o); i.Spec.ID != s.ids()[0] {
			w.Errorf("intent has %q, backend %v", i.Spec.ID, s.ids())
		}
		if ready, id, _ := statusOf(o); ready || id != "" {
			w.Errorf("ready %v, id %q", ready, id)
		}
		s.drop(o)
		w.gone(o)
		w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 && w.intent(o) == nil })
	})
}

// Fault 4: another id at each try. What is shown stays; the others go.
func TestFault4AnotherIDAtEachTry(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.assigned().recovers(wire.Capabilities{FindByName: true})
		var n atomic.Int32
		w.driver.onAfter(s.make, func(context.Context, string) error {
			if n.Add(1) <= 2 {
				return status.Error(codes.Internal, "made, but I say no")
			}
			return nil
		})
		w.sidecar()
		o := s.want()
		w.isReady(o)
		_, id, _ := statusOf(o)
		w.eventually("one is left", func() bool { return slices.Equal(s.ids(), []string{id}) })
		w.get(o)
		if _, now, _ := statusOf(o); now != id {
			w.Errorf("the id changed from %q to %q", id, now)
		}
		s.drop(o)
		w.gone(o)
		w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 })
	})
}

// Fault 4: an error that carries the id of what was made. The id is kept, the thing is used or deleted by it.
func TestFault4IDInError(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.onAfter(s.make, once(func(_ context.Context, name string) error {
			return wire.WithMadeID(status.Error(codes.FailedPrecondition, "made, but I say no"), name)
		}))
		w.sidecar()
		o := s.want()
		w.isReady(o)
		_, id, _ := statusOf(o)
		w.stays("one is there", func() bool { return slices.Equal(s.ids(), []string{id}) })
		s.drop(o)
		w.gone(o)
		w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 })
	})
}

// Fault 5: the driver makes a bucket and answers no protocol, or lacks one that was asked for.
func TestFault5ProtocolMissing(t *testing.T) {
	for name, protocols := range map[string][]cosi.ObjectProtocol{"none said": nil, "one lacks": {cosi.ProtocolS3, cosi.ProtocolGCS}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if protocols == nil {
				w.driver.bucketInfo = func(string) wire.BucketInfo { return wire.BucketInfo{} }
			}
			w.sidecar()
			claim := w.claim("it")
			b := w.bucket(claim, func(b *cosi.Bucket) { b.Spec.Protocols = protocols })
			w.says(b, v1alpha1.ReasonProtocolMissing)
			if i := w.intent(b); i.Spec.ID != b.Name {
				t.Errorf("intent has the id %q", i.Spec.ID)
			}
			w.deleteBoth(claim, b)
			w.nothingLeft(b)
			if w.driver.called("create") != 1 {
				t.Errorf("calls %v", w.driver.log())
			}
		})
	}
}

// Fault 5, an access: no credentials of the protocol that was asked for.
func TestFault5CredentialsMissing(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	_, b := w.readyBucket("its")
	a := w.access("it", b, func(a *cosi.BucketAccess) { a.Spec.Protocol = cosi.ProtocolGCS })
	w.says(a, v1alpha1.ReasonCredentialsMissing)
	if i := w.intent(a); i.Spec.ID != w.driver.accountIDs()[0] {
		t.Errorf("intent has %q, backend %v", i.Spec.ID, w.driver.accountIDs())
	}
	w.delete(a)
	w.gone(a)
	w.eventually("nothing is left", func() bool { return len(w.driver.accountIDs()) == 0 && w.intent(a) == nil })
}

// Fault 6: a create times out and lands later, before and after the delete was answered OK.
func TestFault6LateLanding(t *testing.T) {
	for _, afterRelease := range []bool{false, true} {
		t.Run(fmt.Sprintf("after release %v", afterRelease), func(t *testing.T) {
			both(t, func(w *world, s subject) {
				w.driver.recovers(wire.Capabilities{DeleteByName: true})
				land := make(chan func(), 1)
				w.driver.onBefore(s.make, once(func(ctx context.Context, subject string) error {
					<-ctx.Done()
					land <- func() {
						w.driver.mu.Lock()
						defer w.driver.mu.Unlock()
						w.driver.of(map[string]wire.Kind{"create": wire.KindBucket, "grant": wire.KindAccount}[s.make])[subject] = subject
					}
					return status.FromContextError(ctx.Err()).Err()
				}))
				w.sidecar()
				o := s.want()
				w.eventually("the call is on its way", func() bool { return w.driver.called(s.make) == 1 })
				s.drop(o)
				if afterRelease {
					w.gone(o)
					(<-land)()
				} else {
					(<-land)()
					w.gone(o)
				}
				w.eventually("what came late is gone", func() bool { return len(s.ids()) == 0 })
				if i := w.intent(o); i == nil || i.Spec.Phase != v1alpha1.PhaseReleased {
					w.Errorf("no tombstone: %v", i)
				}
			})
		})
	}
}

// Fault 6, control: without Intents and so without settle time or sweep, the late bucket stays for ever.
func TestFault6Control(t *testing.T) {
	w := newWorld(t)
	w.driver.recovers(wire.Capabilities{DeleteByName: true})
	landed := make(chan struct{})
	w.driver.onBefore("create", once(func(ctx context.Context, name string) error {
		<-ctx.Done()
		time.AfterFunc(300*time.Millisecond, func() { w.driver.mu.Lock(); w.driver.buckets[name] = name; w.driver.mu.Unlock(); close(landed) })
		return status.FromContextError(ctx.Err()).Err()
	}))
	c := w.sidecar(func(o *sidecar.Options) { o.WrapStore = failpoint.WithoutIntents; o.StopTimeout = 0 })
	claim := w.claim("it")
	b := w.bucket(claim)
	w.eventually("the call is on its way", func() bool { return w.driver.called("create") == 1 })
	c.cancel()
	<-c.done
	c.err = nil
	w.sidecar(func(o *sidecar.Options) { o.WrapStore = failpoint.WithoutIntents })
	w.deleteBoth(claim, b)
	w.gone(b)
	<-landed
	w.stays("it leaks", func() bool { return len(w.driver.bucketIDs()) == 1 })
}

// Fault 7, the sidecar's part: a Bucket that is deleted with policy Retain goes, and the backend's bucket stays and is
// written down.
func TestFault7Retain(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, b := w.readyBucket("it", func(b *cosi.Bucket) { b.Spec.DeletionPolicy = cosi.DeletionPolicyRetain })
	w.deleteBoth(claim, b)
	w.gone(b)
	w.eventually("the Intent says that it is kept", func() bool {
		i := w.intent(b)
		return i != nil && i.Spec.Phase == v1alpha1.PhaseRetained && i.Spec.ID == b.Status.BucketID
	})
	w.stays("it stays", func() bool { return len(w.driver.bucketIDs()) == 1 })
	if w.driver.called("delete") != 0 {
		t.Error("it was deleted")
	}
}

// Fault 9: the driver can't delete, since a Secret that it needs is gone. The deletion stays, visible, and goes on when
// that is mended.
// Fault 16: the bucket holds objects. The same.
func TestFault9And16DeleteFails(t *testing.T) {
	for name, answer := range map[string]error{
		"secret gone": status.Error(codes.Internal, `secrets "backend" not found`),
		"not empty":   status.Error(codes.FailedPrecondition, "the bucket holds 3 objects"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sidecar()
			claim, b := w.readyBucket("it")
			w.driver.onBefore("delete", func(context.Context, string) error { return answer })
			w.deleteBoth(claim, b)
			text := w.says(b, "DeleteFailed")
			if want := status.Convert(answer).Message(); !contains(text, want) {
				t.Errorf("%q does not say %q", text, want)
			}
			tries := w.driver.called("delete")
			w.eventually("it is tried again", func() bool { return w.driver.called("delete") > tries })
			w.driver.onBefore("delete", nil)
			w.nothingLeft(b)
		})
	}
}

// Fault 10: some calls that hang delay nothing else.
func TestFault10HungCalls(t *testing.T) {
	w := newWorld(t)
	hung := map[string]bool{}
	var made []*cosi.Bucket
	for i := range 5 {
		b := w.bucket(w.claim(fmt.Sprint("hung", i)))
		hung[b.Name] = true
	}
	g := newGate()
	w.driver.onBefore("create", func(ctx context.Context, name string) error {
		if hung[name] {
			return g.hold(ctx, name)
		}
		return nil
	})
	w.sidecar(func(o *sidecar.Options) { o.CallTimeout = time.Minute; o.Settle = time.Minute })
	for range hung {
		<-g.arrived
	}
	for i := range 20 {
		made = append(made, w.bucket(w.claim(fmt.Sprint("well", i))))
	}
	for _, b := range made {
		w.isReady(b)
	}
	if got := len(w.driver.bucketIDs()); got != 20 {
		t.Errorf("%d buckets are there while 5 hang, want 20", got)
	}
	close(g.open)
}

// Fault 11 and 10: every call has a deadline; a call that never returns is answered for by the sidecar.
func TestCallHasDeadline(t *testing.T) {
	w := newWorld(t)
	var deadline atomic.Int64
	w.driver.onBefore("create", once(func(ctx context.Context, _ string) error {
		d, ok := ctx.Deadline()
		if !ok {
			return errors.New("no deadline")
		}
		deadline.Store(int64(time.Until(d)))
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}))
	w.sidecar(func(o *sidecar.Options) { o.RepeatSafe = []string{"bucket"} })
	b := w.bucket(w.claim("it"))
	w.isReady(b)
	if d := time.Duration(deadline.Load()); d <= 0 || d > 500*time.Millisecond {
		t.Errorf("deadline in %v, want the call timeout", d)
	}
}

// Fault 12: two sidecars of two drivers, and objects of both.
func TestFault12OtherDriver(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	other := newFake("other-" + w.driver.info.Name)
	w.sidecar(func(o *sidecar.Options) { o.Driver = other })
	mine := w.bucket(w.claim("mine"))
	theirs := w.bucket(w.claim("theirs"), func(b *cosi.Bucket) { b.Spec.DriverName = other.info.Name })
	nobodys := w.bucket(w.claim("nobodys"), func(b *cosi.Bucket) { b.Spec.DriverName = "nobody.test" })
	w.isReady(mine)
	w.isReady(theirs)
	a := w.access("it", mine)
	w.isReady(a)
	if got := other.accountIDs(); len(got) != 0 {
		t.Errorf("the other driver has accounts %v", got)
	}
	if !slices.Equal(w.driver.bucketIDs(), []string{mine.Name}) || !slices.Equal(other.bucketIDs(), []string{theirs.Name}) {
		t.Errorf("mine has %v, the other %v", w.driver.bucketIDs(), other.bucketIDs())
	}
	w.get(nobodys)
	if nobodys.Status.ReadyToUse != nil || nobodys.Status.Error != nil {
		t.Errorf("somebody acted on %v", nobodys.Status)
	}
}

// Fault 13: an access is deleted and made again under its name before anybody looks.
func TestFault13DeletedAndMadeAgain(t *testing.T) {
	w := newWorld(t)
	c := w.sidecar()
	first, b := w.readyAccess("it")
	c.stop(w)
	w.delete(first)
	// The finalizer is taken off by force, so that another can have the name.
	w.edit(first, false, func() { first.Finalizers = nil })
	w.gone(&cosi.BucketAccess{ObjectMeta: first.ObjectMeta})
	second := w.access("it", b)
	w.sidecar()
	secret := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "it-0"}}
	// The first was live when it vanished, and its Secret is in the way: both are said, nothing is guessed.
	w.says(second, v1alpha1.ReasonSecretTaken)
	w.eventually("the first one's Intent says that its owner is gone", func() bool {
		return condition(w.intent(first), v1alpha1.ConditionStuck) == v1alpha1.ReasonOwnerGone
	})
	i := w.intent(first)
	w.edit(i, false, func() { i.Spec.Word = v1alpha1.WordDelete })
	w.isReady(second)
	w.eventually("the first account is gone, the second serves", func() bool {
		return slices.Equal(w.driver.accountIDs(), []string{second.Status.AccountID})
	})
	w.get(secret)
	if string(secret.Data[cosi.KeyS3AccessKeyID]) != second.Status.AccountID {
		t.Errorf("the Secret is of %s", secret.Data[cosi.KeyS3AccessKeyID])
	}
}

// Fault 14: an error goes when its cause goes.
func TestFault14ErrorCleared(t *testing.T) {
	both(t, func(w *world, s subject) {
		w.driver.recovers(wire.Capabilities{FindByName: true})
		w.driver.onBefore(s.make, fails(codes.ResourceExhausted, "the quota is used up"))
		w.sidecar()
		o := s.want()
		if text := w.says(o, "CreateFailed"); !contains(text, "the quota is used up") {
			w.Errorf("%q does not say what the driver answered", text)
		}
		w.driver.onBefore(s.make, nil)
		w.isReady(o)
		w.eventually("the Intent says that all is well", func() bool {
			i := w.intent(o)
			return condition(i, v1alpha1.ConditionSettled) == v1alpha1.ReasonAnswered && condition(i, v1alpha1.ConditionStuck) == ""
		})
	})
}

// Fault 15: conflicts are never said, and cost nobody a back-off.
func TestFault15Conflicts(t *testing.T) {
	w := newWorld(t)
	// Who waited out a back-off would wait longer than the test does.
	w.sidecar(func(o *sidecar.Options) { o.RetryFirst, o.RetryMax = time.Minute, 2*time.Minute })
	var seen []string
	for i := range 10 {
		b := w.bucket(w.claim(fmt.Sprint("it", i)), func(b *cosi.Bucket) { b.Finalizers = nil })
		for j := range 3 { // while it is served
			w.edit(b, false, func() { metav1.SetMetaDataAnnotation(&b.ObjectMeta, "touched", fmt.Sprint(j)) })
			if b.Status.Error != nil {
				seen = append(seen, *b.Status.Error.Message)
			}
		}
		w.isReady(b)
		if !slices.Contains(b.Finalizers, v1alpha1.ProtectionFinalizer) {
			t.Errorf("no finalizer on %s", b.Name)
		}
	}
	if len(seen) > 0 {
		t.Errorf("errors shown: %q", seen)
	}
}

// Fault 17: the Bucket object is removed by force and made again by its claim. It is served again from its Intent.
func TestFault17MadeAgain(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, b := w.readyBucket("it")
	w.delete(b)
	w.says(b, v1alpha1.ReasonWaitsForClaim)
	w.edit(b, false, func() { b.Finalizers = nil })
	w.gone(&cosi.Bucket{ObjectMeta: b.ObjectMeta})
	w.eventually("the Intent says that its owner is gone", func() bool {
		return condition(w.intent(b), v1alpha1.ConditionStuck) == v1alpha1.ReasonOwnerGone
	})
	again := w.bucket(claim)
	w.isReady(again)
	if again.Status.BucketID != b.Status.BucketID || w.driver.called("create") != 1 || w.driver.called("delete") != 0 {
		t.Errorf("id %q, then %q; calls %v", b.Status.BucketID, again.Status.BucketID, w.driver.log())
	}
	w.eventually("the Intent is not stuck", func() bool { return condition(w.intent(b), v1alpha1.ConditionStuck) == "" })
	w.deleteBoth(claim, again)
	w.nothingLeft(again)
}

// Faults 7 and 8, the sidecar's part: a Bucket that is deleted under a claim that stays waits, and says so; annotations
// that claim otherwise are not believed. When the claim goes, it goes.
func TestFault8WaitsForClaim(t *testing.T) {
	w := newWorld(t)
	w.sidecar()
	claim, b := w.readyBucket("it")
	w.edit(b, false, func() {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, cosi.AnnotationBucketClaimBeingDeleted, "true")
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, cosi.AnnotationBucketClaimBeingDeletedMisspelt, "true")
	})
	w.delete(b)
	w.says(b, v1alpha1.ReasonWaitsForClaim)
	w.stays("it stays, ready", func() bool { w.get(b); ready, _, _ := statusOf(b); return ready && len(w.driver.bucketIDs()) == 1 })
	w.delete(claim)
	// Our controller marks the Bucket when it sees this; without it the sidecar looks by itself.
	w.edit(b, false, func() { metav1.SetMetaDataAnnotation(&b.ObjectMeta, cosi.AnnotationBucketClaimBeingDeleted, "again") })
	w.nothingLeft(b)
}
