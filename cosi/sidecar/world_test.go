package sidecar_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/sidecar"
)

var worlds atomic.Int64

// world is what one test plays in.
type world struct {
	*testing.T
	ns     string
	driver *fake
}

// newWorld has a namespace and a driver that no other test has. Tests run beside each other: most of what they do is to
// wait.
func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a real API server")
	}
	t.Parallel()
	w := &world{T: t, ns: fmt.Sprintf("w%d", worlds.Add(1))}
	w.driver = newFake(w.ns + ".test")
	namespace(t, w.ns)
	return w
}

// car is a running sidecar.
type car struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	writes *counter
}

// sidecar starts one, with short times. It is stopped with the test.
func (w *world) sidecar(change ...func(*sidecar.Options)) *car {
	w.Helper()
	o := sidecar.Defaults()
	o.LeaderElect, o.LeaseNamespace, o.LeaseDuration = false, leases, time.Second
	o.MetricsAddress, o.HealthAddress = "0", "0"
	o.StopTimeout = 15 * time.Second
	o.CallTimeout, o.Settle = 500*time.Millisecond, 700*time.Millisecond
	o.RetryFirst, o.RetryMax, o.SweepEvery = 20*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	o.Driver = w.driver
	c := &car{done: make(chan struct{}), writes: &counter{}}
	o.RESTConfig = rest.CopyConfig(account)
	o.RESTConfig.Wrap(func(rt http.RoundTripper) http.RoundTripper { c.writes.next = rt; return c.writes })
	for _, f := range change {
		f(&o)
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	out := &lockedBuffer{}
	log := logr.FromSlogHandler(slog.NewTextHandler(out, nil))
	go func() {
		defer close(c.done)
		c.err = sidecar.Run(ctx, o, log)
	}()
	w.Cleanup(func() {
		c.stop(w)
		if w.Failed() {
			w.Logf("sidecar's log:\n%s\ndriver calls: %v", out, w.driver.log())
		}
	})
	return c
}

// stop ends the sidecar in order.
func (c *car) stop(w *world) {
	w.Helper()
	c.cancel()
	<-c.done
	if c.err != nil {
		w.Errorf("sidecar: %v", c.err)
		c.err = nil
	}
}

// counter counts the writes that go through it, events and leases apart.
type counter struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		c.mu.Lock()
		c.seen = append(c.seen, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

func (c *counter) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.seen...)
}

// objects counts those that are no events.
func (c *counter) objects() (n int) {
	for _, write := range c.all() {
		if !strings.Contains(write, "/events") {
			n++
		}
	}
	return n
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// patience is for a machine that is busy with much else.
const patience = time.Minute

// eventually waits until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			w.Fatalf("not within %s: %s; buckets %v, accounts %v", patience, what, w.driver.bucketIDs(), w.driver.accountIDs())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stays watches for a while that something goes on to hold.
func (w *world) stays(what string, holds func() bool) {
	w.Helper()
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !holds() {
			w.Fatalf("no longer: %s; buckets %v, accounts %v", what, w.driver.bucketIDs(), w.driver.accountIDs())
		}
	}
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := admin.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

func (w *world) delete(o client.Object) {
	w.Helper()
	if err := admin.Delete(w.Context(), o); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
}

// get reads an object anew and tells whether it exists.
func (w *world) get(o client.Object) bool {
	w.Helper()
	err := admin.Get(w.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

// edit changes an object, again if somebody was faster.
func (w *world) edit(o client.Object, status bool, change func()) {
	w.Helper()
	for {
		if !w.get(o) {
			w.Fatalf("%s is gone", o.GetName())
		}
		change()
		var err error
		if status {
			// As our controller: who else writes a status is noticed.
			err = admin.Status().Update(w.Context(), o, client.FieldOwner(v1alpha1.FieldManager))
		} else {
			err = admin.Update(w.Context(), o)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		return
	}
}

// claim makes a BucketClaim; nobody acts on it but the test.
func (w *world) claim(name string) *cosi.BucketClaim {
	w.Helper()
	c := &cosi.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Finalizers: []string{v1alpha1.ProtectionFinalizer}},
		Spec: cosi.BucketClaimSpec{BucketClassName: "class"}}
	w.create(c)
	return c
}

// bucket makes a claim's Bucket as the controller does.
func (w *world) bucket(c *cosi.BucketClaim, change ...func(*cosi.Bucket)) *cosi.Bucket {
	w.Helper()
	b := &cosi.Bucket{
		ObjectMeta: metav1.ObjectMeta{Name: cosi.BucketName(c), Finalizers: []string{v1alpha1.ProtectionFinalizer}},
		Spec: cosi.BucketSpec{
			DriverName: w.driver.info.Name, DeletionPolicy: cosi.DeletionPolicyDelete,
			BucketClaimRef: cosi.BucketClaimReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		},
	}
	for _, f := range change {
		f(b)
	}
	w.create(b)
	return b
}

// deleteBoth deletes claim and Bucket, as the controller does when a claim is deleted.
func (w *world) deleteBoth(c *cosi.BucketClaim, b *cosi.Bucket) {
	w.Helper()
	w.delete(c)
	w.delete(b)
}

// access makes a BucketAccess to a bucket and hands it over as the controller does.
func (w *world) access(name string, b *cosi.Bucket, change ...func(*cosi.BucketAccess)) *cosi.BucketAccess {
	w.Helper()
	return w.accessTo(name, []*cosi.Bucket{b}, change...)
}

func (w *world) accessTo(name string, buckets []*cosi.Bucket, change ...func(*cosi.BucketAccess)) *cosi.BucketAccess {
	w.Helper()
	a := &cosi.BucketAccess{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Finalizers: []string{v1alpha1.ProtectionFinalizer}},
		Spec:       cosi.BucketAccessSpec{BucketAccessClassName: "class", Protocol: cosi.ProtocolS3},
	}
	ready := false
	st := cosi.BucketAccessStatus{ReadyToUse: &ready, DriverName: w.driver.info.Name, AuthenticationType: cosi.AuthenticationTypeKey}
	for i, b := range buckets {
		claim := b.Spec.BucketClaimRef.Name
		a.Spec.BucketClaims = append(a.Spec.BucketClaims, cosi.BucketClaimAccess{
			BucketClaimName: claim, AccessMode: cosi.AccessModeReadWrite, AccessSecretName: fmt.Sprintf("%s-%d", name, i)})
		st.AccessedBuckets = append(st.AccessedBuckets, cosi.AccessedBucket{BucketName: b.Name, BucketID: b.Status.BucketID, BucketClaimName: claim})
	}
	a.Status = st
	for _, f := range change {
		f(a)
	}
	st = a.Status
	w.create(a)
	w.edit(a, true, func() { a.Status = st })
	return a
}

// readyBucket makes a claim and a Bucket and waits until it is ready.
func (w *world) readyBucket(name string, change ...func(*cosi.Bucket)) (*cosi.BucketClaim, *cosi.Bucket) {
	w.Helper()
	c := w.claim(name)
	b := w.bucket(c, change...)
	w.isReady(b)
	return c, b
}

// readyAccess makes an access to a new Bucket and waits until it is ready.
func (w *world) readyAccess(name string) (*cosi.BucketAccess, *cosi.Bucket) {
	w.Helper()
	_, b := w.readyBucket(name)
	a := w.access(name, b)
	w.isReady(a)
	return a, b
}

func (w *world) isReady(o client.Object) {
	w.Helper()
	w.eventually(o.GetName()+" is ready", func() bool {
		if !w.get(o) {
			return false
		}
		ready, _, err := statusOf(o)
		return ready && err == nil
	})
}

func statusOf(o client.Object) (ready bool, id string, err *cosi.TimestampedError) {
	var r *bool
	switch o := o.(type) {
	case *cosi.Bucket:
		r, id, err = o.Status.ReadyToUse, o.Status.BucketID, o.Status.Error
	case *cosi.BucketAccess:
		r, id, err = o.Status.ReadyToUse, o.Status.AccountID, o.Status.Error
	}
	return r != nil && *r, id, err
}

// says waits until the object's error has a reason, and an event of it exists; it gives the text.
func (w *world) says(o client.Object, reason string) string {
	w.Helper()
	var shown *cosi.TimestampedError
	w.eventually(fmt.Sprintf("%s says %s", o.GetName(), reason), func() bool {
		w.get(o)
		_, _, shown = statusOf(o)
		return shown.Reason() == reason
	})
	w.eventually(fmt.Sprintf("there is an event %s on %s", reason, o.GetName()), func() bool { return w.event(o, reason) })
	return shown.Text()
}

func (w *world) event(o client.Object, reason string) bool {
	w.Helper()
	var all eventsv1.EventList
	if err := admin.List(w.Context(), &all); err != nil {
		w.Fatal(err)
	}
	for _, e := range all.Items {
		if e.Regarding.Name == o.GetName() && e.Reason == reason && e.Type == core.EventTypeWarning {
			return true
		}
	}
	return false
}

// gone waits until an object is gone.
func (w *world) gone(o client.Object) {
	w.Helper()
	w.eventually(fmt.Sprintf("%T %s is gone", o, o.GetName()), func() bool { return !w.get(o) })
}

// intent reads the Intent of an object; nil if there is none.
func (w *world) intent(o client.Object) *v1alpha1.Intent {
	w.Helper()
	name := o.GetName()
	if a, ok := o.(*cosi.BucketAccess); ok {
		name = cosi.AccountName(a)
	} else {
		name = v1alpha1.IntentName(v1alpha1.KindBucket, w.driver.info.Name, name)
	}
	i := &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !w.get(i) {
		return nil
	}
	return i
}

// condition gives the reason of a condition that is True; "" if it is not.
func condition(i *v1alpha1.Intent, kind string) string {
	if i == nil {
		return ""
	}
	if c := meta.FindStatusCondition(i.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// nothingLeft waits until object and Intent are gone and the backend holds nothing.
func (w *world) nothingLeft(o client.Object) {
	w.Helper()
	w.gone(o)
	w.eventually("the backend is empty and no Intent holds anything", func() bool {
		i := w.intent(o)
		return len(w.driver.bucketIDs()) == 0 && len(w.driver.accountIDs()) == 0 &&
			(i == nil || i.Spec.Phase == v1alpha1.PhaseReleased)
	})
}

func contains(text, part string) bool { return strings.Contains(text, part) }
