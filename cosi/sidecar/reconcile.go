package sidecar

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"k8s.io/client-go/util/workqueue"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/provision"
)

// adapter runs one kind through the protocol. A request is one name; the work queue keeps two workers from one name.
type adapter struct {
	*world
	kind    kind
	entries *entries
	engine  provision.Engine
}

// newAdapter puts the two doors and the engine together and asks the driver what it can do.
func newAdapter(ctx context.Context, w *world, k kind, known *entries) (*adapter, error) {
	o := w.options
	a := &adapter{world: w, kind: k, entries: known}
	flag, text, repeat := "bucket-id-template", o.BucketIDTemplate, repeatBucket
	if k.intents() == v1alpha1.KindAccess {
		flag, text, repeat = "account-id-template", o.AccountIDTemplate, repeatAccess
	}
	t, err := parseTemplate(flag, text)
	if err != nil {
		return nil, err
	}
	b := backend{adapter: a, template: t, repeat: o.repeatSafe(repeat), generate: &atomic.Bool{}}
	if err := b.probe(ctx); err != nil {
		return nil, fmt.Errorf("ask the driver %s whether it gives ids before it creates: %w", w.driverName, err)
	}
	a.engine = provision.Engine{
		Store:   store{a},
		Backend: b,
		Now:     w.now,
		Mint:    func() provision.Nonce { return provision.Nonce(rand.Text()) },
		Settle:  o.settle(),
		Pace:    provision.Pace{First: o.RetryFirst, Max: o.RetryMax, Sweep: o.SweepEvery},
	}
	if o.WrapStore != nil {
		a.engine.Store = o.WrapStore(a.engine.Store)
	}
	if o.WrapBackend != nil {
		a.engine.Backend = o.WrapBackend(a.engine.Backend)
	}
	w.log.Info("what the driver can do", "kind", k.intents(), "ways", fmt.Sprintf("%+v", a.engine.Backend.Ways()))
	return a, nil
}

func (a *adapter) entry(name provision.Name) *entry { return a.entries.get(name, a.lead) }

// Reconcile runs one name until there is nothing to do at once. What is begun is brought to its end when the program is
// told to stop: an answer that was not written down would leave the name in doubt. So it is not ctx that ends it, but
// the end of the time to stop in.
func (a *adapter) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	name := provision.Name(req.Name)
	e := a.entry(name)
	if e.busy {
		// The last run panicked: what it had called is not known. That is a crash, of this name alone.
		e.memo, e.payload, e.served = provision.Begin(name, a.now()), payload{}, versions{}
	}
	e.busy = true
	e.memo = e.memo.Wake()
	var next provision.Next
	for {
		if e.memo, next = a.engine.Step(a.hard, e.memo); next.Kind != provision.Again || a.hard.Err() != nil {
			break
		}
	}
	after := a.report(a.hard, e, next)
	e.busy = false
	if next.Kind == provision.Done {
		if e.object == nil && e.memo.Rec.Rev == "" {
			a.entries.drop(name)
			return reconcile.Result{}, nil
		}
		e.rest()
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// watch starts what wakes the adapter.
func (a *adapter) watch(mgr ctrlmanager.Manager) error {
	c, err := controller.New(strings.ToLower(string(a.kind.intents())), mgr, controller.Options{
		Reconciler: a, MaxConcurrentReconciles: a.options.Workers,
	})
	if err != nil {
		return err
	}
	var objects source.Source
	switch a.kind.intents() {
	case v1alpha1.KindBucket:
		objects = source.Kind(mgr.GetCache(), &cosi.Bucket{}, wake(a.bucketName))
	default:
		objects = source.Kind(mgr.GetCache(), &cosi.BucketAccess{}, wake(a.accessName))
	}
	if err := c.Watch(objects); err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &v1alpha1.Intent{}, wake(a.intentName)))
}

// bucketName gives the name of a Bucket that is ours.
func (a *adapter) bucketName(b *cosi.Bucket, _ bool) provision.Name {
	if b.Spec.DriverName != a.driverName {
		return ""
	}
	return provision.Name(b.Name)
}

// accessName gives the name of an access that is ours: handed over to our driver, or known already.
func (a *adapter) accessName(b *cosi.BucketAccess, gone bool) provision.Name {
	name := provision.Name(cosi.AccountName(b))
	if b.Status.DriverName != a.driverName && (b.Status.DriverName != "" || !a.entries.known(name)) {
		return ""
	}
	if gone {
		a.entries.displace(b.UID)
	} else {
		a.entries.place(b.UID, client.ObjectKeyFromObject(b))
	}
	return name
}

// intentName gives the name that an Intent is the record of.
func (a *adapter) intentName(intent *v1alpha1.Intent, gone bool) provision.Name {
	s := intent.Spec
	if s.Kind != a.kind.intents() || s.Driver != a.driverName {
		return ""
	}
	if intent.Name != v1alpha1.IntentName(s.Kind, s.Driver, s.Name) {
		if !gone {
			a.log.Info("an intent is not named as the record of its name is; it is left alone", "intent", intent.Name, "name", s.Name)
		}
		return ""
	}
	return provision.Name(s.Name)
}

// wake enqueues the name that an object stands for, if any.
func wake[T client.Object](name func(o T, gone bool) provision.Name) handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue, o T, gone bool) {
		if n := name(o, gone); n != "" {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: string(n)}})
		}
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { add(q, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) { add(q, e.ObjectNew, false) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { add(q, e.Object, true) },
	}
}

// since is the clock of this process.
func since(start time.Time) func() time.Duration {
	return func() time.Duration { return time.Since(start) }
}
