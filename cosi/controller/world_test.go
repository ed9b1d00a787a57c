package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// world is what one test has for itself: a namespace, and names for classes.
type world struct {
	*testing.T
	ctx  context.Context
	name string // the namespace, and the names of its classes
}

var worlds atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), name: fmt.Sprintf("w%d", worlds.Add(1))}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}})
	return w
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := admin.Create(w.ctx, o); err != nil {
		w.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// get reads an object anew; false if it is gone.
func (w *world) get(o client.Object) bool {
	w.Helper()
	err := admin.Get(w.ctx, client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		w.Fatalf("get %T %s: %v", o, o.GetName(), err)
	}
	return err == nil
}

func (w *world) delete(o client.Object) {
	w.Helper()
	if err := admin.Delete(w.ctx, o); client.IgnoreNotFound(err) != nil {
		w.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// change patches an object as an admin, or its status if sub is "status".
func (w *world) change(o client.Object, sub string, change func()) {
	w.Helper()
	err := poll(w.ctx, func() (bool, error) {
		if !w.get(o) {
			return false, fmt.Errorf("it is gone")
		}
		before := o.DeepCopyObject().(client.Object)
		change()
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		var err error
		if sub != "" {
			err = admin.SubResource(sub).Patch(w.ctx, o, patch)
		} else {
			err = admin.Patch(w.ctx, o, patch)
		}
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		w.Fatalf("change %T %s: %v", o, o.GetName(), err)
	}
}

// await waits until a condition holds.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	if err := poll(w.ctx, func() (bool, error) { return holds(), nil }); err != nil {
		w.Fatalf("waited until %s: %v", what, err)
	}
}

func (w *world) awaitGone(o client.Object) {
	w.Helper()
	w.await(fmt.Sprintf("%T %s is gone", o, o.GetName()), func() bool { return !w.get(o) })
}

func (w *world) class(driver string, policy api.DeletionPolicy) *api.BucketClass {
	w.Helper()
	class := &api.BucketClass{ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec: api.BucketClassSpec{DriverName: driver, DeletionPolicy: policy, Parameters: map[string]string{"tier": "gold"}}}
	w.create(class)
	return class
}

func (w *world) claim(name string) *api.BucketClaim {
	return &api.BucketClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec: api.BucketClaimSpec{BucketClassName: w.name, Protocols: []api.ObjectProtocol{api.ProtocolS3}}}
}

// newClaim creates a claim of the class of this world.
func (w *world) newClaim(name string) *api.BucketClaim {
	w.Helper()
	claim := w.claim(name)
	w.create(claim)
	return claim
}

// readyClaim is a claim with its Bucket, both ready.
func (w *world) readyClaim(name string) (*api.BucketClaim, *api.Bucket) {
	w.Helper()
	claim := w.newClaim(name)
	w.awaitReady(claim)
	return claim, w.bucketOf(claim)
}

func (w *world) bucketOf(claim *api.BucketClaim) *api.Bucket {
	w.Helper()
	bucket := &api.Bucket{ObjectMeta: metav1.ObjectMeta{Name: api.BucketName(claim)}}
	w.await("the Bucket of "+claim.Name+" exists", func() bool { return w.get(bucket) })
	return bucket
}

func (w *world) awaitReady(claim *api.BucketClaim) {
	w.Helper()
	w.await("claim "+claim.Name+" is ready", func() bool {
		return w.get(claim) && ptr.Deref(claim.Status.ReadyToUse, false)
	})
	if claim.Status.Error != nil {
		w.Errorf("claim %s is ready and has an error: %s", claim.Name, *claim.Status.Error.Message)
	}
}

// awaitError waits for a status.error and looks for words in its text.
func (w *world) awaitError(o client.Object, reason string, words ...string) {
	w.Helper()
	var e *api.TimestampedError
	var ready *bool
	err := poll(w.ctx, func() (bool, error) {
		if !w.get(o) {
			return false, fmt.Errorf("it is gone")
		}
		switch o := o.(type) {
		case *api.BucketClaim:
			e, ready = o.Status.Error, o.Status.ReadyToUse
		case *api.BucketAccess:
			e, ready = o.Status.Error, o.Status.ReadyToUse
		}
		return e.Reason() == reason, nil
	})
	if err != nil {
		w.Fatalf("waited until %T %s has error %s: %v; it has %q", o, o.GetName(), reason, err, e.Reason()+": "+e.Text())
	}
	for _, word := range words {
		if !strings.Contains(e.Text(), word) {
			w.Errorf("the error %s of %s does not speak of %q: %s", reason, o.GetName(), word, e.Text())
		}
	}
	if ptr.Deref(ready, true) {
		w.Errorf("%s has error %s and readyToUse is not false", o.GetName(), reason)
	}
}

// events are the Warning events about an object. There must be none of another type.
func (w *world) events(o client.Object, reason string) (found []eventsv1.Event) {
	w.Helper()
	all := &eventsv1.EventList{}
	if err := admin.List(w.ctx, all); err != nil {
		w.Fatal(err)
	}
	for _, e := range all.Items {
		if e.Regarding.UID != o.GetUID() {
			continue
		}
		if e.Type != corev1.EventTypeWarning {
			w.Errorf("%s has an event of type %s: %s: %s", o.GetName(), e.Type, e.Reason, e.Note)
		}
		if reason == "" || e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}

// awaitEvent waits for the one event of a reason.
func (w *world) awaitEvent(o client.Object, reason string) {
	w.Helper()
	w.await("an event "+reason+" about "+o.GetName(), func() bool { return len(w.events(o, reason)) > 0 })
	if n := len(w.events(o, reason)); n > 1 {
		w.Errorf("%d events %s about %s, want 1", n, reason, o.GetName())
	}
}

// writes are the controller's writes about something, as "METHOD resource[/status]".
func (w *world) writes(names ...string) (list []string) {
	for _, s := range line.requests(func(s sent) bool {
		if !s.write() {
			return false
		}
		for _, name := range names {
			if s.about(name) {
				return true
			}
		}
		return false
	}) {
		list = append(list, s.method+" "+resource(s.path))
	}
	return list
}

// resource is what a path is about, without names.
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		if p == api.Version {
			parts = parts[i+1:]
			break
		}
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if parts[len(parts)-1] == "status" {
		return parts[0] + "/status"
	}
	return parts[0]
}

// quiet waits a moment in which nothing is to happen. It can't be awaited otherwise.
func (w *world) quiet(what string, happened func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if happened() {
			w.Fatal(what)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
