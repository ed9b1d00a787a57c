package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	custody "github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// patience is how long nothing may happen before a load is given up.
const patience = 90 * time.Second

// load is a number of claims in a namespace of their own, and what became of them.
type load struct {
	c         client.WithWatch
	namespace string
	count     int

	mu    sync.Mutex
	made  map[string]time.Time // when the create was sent
	ready map[string]time.Time // when the watch told
	gone  map[string]time.Time
	news  chan struct{} // holds a token after each event
	err   error         // of the watch
}

// newLoad watches a namespace until ctx ends.
func newLoad(ctx context.Context, c client.WithWatch, namespace string, count int) (*load, error) {
	if err := makeNamespace(ctx, c, namespace); err != nil {
		return nil, err
	}
	l := &load{c: c, namespace: namespace, count: count, news: make(chan struct{}, 1),
		made: map[string]time.Time{}, ready: map[string]time.Time{}, gone: map[string]time.Time{}}
	changes, err := c.Watch(ctx, &v1alpha2.BucketClaimList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch the claims: %w", err)
	}
	go func() {
		defer changes.Stop()
		for e := range changes.ResultChan() {
			l.see(e)
		}
		l.fail(fmt.Errorf("the watch of the claims ended"))
	}()
	return l, nil
}

func (l *load) see(e watch.Event) {
	now := time.Now()
	claim, ok := e.Object.(*v1alpha2.BucketClaim)
	if !ok {
		l.fail(apierrors.FromObject(e.Object))
		return
	}
	l.mu.Lock()
	switch {
	case e.Type == watch.Deleted:
		l.gone[claim.Name] = now
	case claim.Status.ReadyToUse != nil && *claim.Status.ReadyToUse && l.ready[claim.Name].IsZero():
		l.ready[claim.Name] = now
	}
	l.mu.Unlock()
	l.tell()
}

func (l *load) fail(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.tell()
}

func (l *load) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// create makes one claim and remembers when.
func (l *load) create(ctx context.Context, n int) error {
	claim := newClaim(l.namespace, n, ClassName)
	l.mu.Lock()
	l.made[claim.Name] = time.Now()
	l.mu.Unlock()
	return l.c.Create(ctx, claim)
}

// makeAll makes all claims, as fast as the API server takes them, and returns when
// all are ready.
func (l *load) makeAll(ctx context.Context, died <-chan error, work *show.Work) error {
	if err := each(ctx, numbers(l.count), l.create); err != nil {
		return err
	}
	return l.waitReady(ctx, died, work)
}

// trickle makes the claims one at a time, so many a second.
func (l *load) trickle(ctx context.Context, perSecond int, died <-chan error, work *show.Work) error {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for _, n := range numbers(l.count) {
		if err := l.create(ctx, n); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return l.waitReady(ctx, died, work)
}

func (l *load) waitReady(ctx context.Context, died <-chan error, work *show.Work) error {
	return l.wait(ctx, died, work, "ready", func() int { return len(l.ready) })
}

// deleteAll deletes all claims and returns when they and their Buckets and Intents
// are gone. The rate counts the claims only: the rest goes before them, but for the
// Intents' very end.
func (l *load) deleteAll(ctx context.Context, died <-chan error, work *show.Work) (perSecond float64, err error) {
	start := time.Now()
	err = each(ctx, numbers(l.count), func(ctx context.Context, n int) error {
		return l.c.Delete(ctx, newClaim(l.namespace, n, ClassName))
	})
	if err != nil {
		return 0, err
	}
	if err := l.wait(ctx, died, work, "gone", func() int { return len(l.gone) }); err != nil {
		return 0, err
	}
	perSecond = float64(l.count) / last(l.gone).Sub(start).Seconds()
	return perSecond, nothingLeft(ctx, l.c)
}

func (l *load) wait(ctx context.Context, died <-chan error, work *show.Work, word string, count func() int) error {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for had := -1; ; {
		l.mu.Lock()
		have, err := count(), l.err
		l.mu.Unlock()
		if err != nil || have == l.count {
			return err
		}
		if have > had {
			had = have
			enough.Reset(patience)
		}
		work.Note("%d of %d %s", have, l.count, word)
		select {
		case <-l.news:
		case err := <-died:
			return err
		case <-enough.C:
			return fmt.Errorf("%d of %d claims are %s and nothing happened for %s; one that is not: %s", have, l.count, word, patience, l.example(ctx))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// example is a claim that is not done, as a person would look at it.
func (l *load) example(ctx context.Context) string {
	claims := &v1alpha2.BucketClaimList{}
	if err := l.c.List(ctx, claims, client.InNamespace(l.namespace)); err != nil {
		return err.Error()
	}
	for _, claim := range claims.Items {
		if r := claim.Status.ReadyToUse; r == nil || !*r || claim.DeletionTimestamp != nil {
			text := fmt.Sprintf("%s, bucket %q, finalizers %q", claim.Name, claim.Status.BoundBucketName, claim.Finalizers)
			if e := claim.Status.Error; e != nil && e.Message != nil {
				text += ", " + *e.Message
			}
			return text
		}
	}
	return "none is to be seen"
}

// nothingLeft waits until no Bucket and no Intent is left.
func nothingLeft(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		buckets, intents := &v1alpha2.BucketList{}, &custody.IntentList{}
		if err := c.List(ctx, buckets, client.Limit(1)); err != nil {
			return err
		}
		if err := c.List(ctx, intents, client.Limit(1)); err != nil {
			return err
		}
		if len(buckets.Items)+len(intents.Items) == 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("all claims are gone, and still there are %s: %w", leftovers(buckets, intents), context.Cause(ctx))
		}
	}
}

func leftovers(buckets *v1alpha2.BucketList, intents *custody.IntentList) string {
	for _, b := range buckets.Items {
		return "Buckets, such as " + b.Name
	}
	for _, i := range intents.Items {
		return fmt.Sprintf("Intents, such as %s in phase %s", i.Name, i.Spec.Phase)
	}
	return "none"
}

// readyPerSecond counts from the first create to the last claim that is ready.
func (l *load) readyPerSecond() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.count) / last(l.ready).Sub(first(l.made)).Seconds()
}

// latencies are the times from a claim's create to its readiness, the shortest
// first.
func (l *load) latencies() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for name, made := range l.made {
		all = append(all, l.ready[name].Sub(made))
	}
	slices.Sort(all)
	return all
}

// percentile of sorted durations.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func first(times map[string]time.Time) (t time.Time) {
	for _, at := range times {
		if t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}

func last(times map[string]time.Time) (t time.Time) {
	for _, at := range times {
		if at.After(t) {
			t = at
		}
	}
	return t
}
