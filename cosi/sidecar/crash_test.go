package sidecar_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/provision"
	"github.com/custody-storage/custody/test/failpoint"
)

// crash is a backend that dies once the driver has done a call, before anybody hears of it.
type crash struct {
	provision.Backend
	op   provision.Op
	dead *atomic.Bool
	die  func()
}

func (c crash) Do(ctx context.Context, call provision.Call) provision.Answer {
	a := c.Backend.Do(ctx, call)
	if call.Op == c.op && c.dead.CompareAndSwap(false, true) {
		c.die()
		<-ctx.Done()
	}
	return a
}

// dies starts one that dies after the driver has made something, and waits until it has.
func (w *world) dies(s subject, change ...func(*sidecar.Options)) client.Object {
	w.Helper()
	var c *car
	ready := make(chan struct{})
	var dead atomic.Bool
	change = append(change, func(o *sidecar.Options) {
		o.StopTimeout = 0
		o.WrapBackend = func(b provision.Backend) provision.Backend {
			return crash{Backend: b, op: provision.Create, dead: &dead, die: func() { <-ready; c.cancel() }}
		}
	})
	c = w.sidecar(change...)
	close(ready)
	o := s.want()
	<-c.done
	c.err = nil
	if len(s.ids()) != 1 {
		w.Fatalf("made %v before the crash, want one", s.ids())
	}
	return o
}

// recovery is each way of looking for what was made before a crash.
var recovery = map[string]func(*fake, *sidecar.Options){
	"delete by name": func(f *fake, _ *sidecar.Options) { f.recovers(wire.Capabilities{DeleteByName: true}) },
	"find":           func(f *fake, _ *sidecar.Options) { f.assigned().recovers(wire.Capabilities{FindByName: true}) },
	"two phases":     func(f *fake, _ *sidecar.Options) { f.twoPhase = true },
	"template": func(_ *fake, o *sidecar.Options) {
		o.BucketIDTemplate, o.AccountIDTemplate = "{{.Name}}", "{{.Name}}"
	},
	"repeat": func(_ *fake, o *sidecar.Options) { o.RepeatSafe = []string{"bucket", "access"} },
}

// Fault 2: the sidecar dies between the driver's answer and the write of the id; then the object is deleted. The control
// has no Intents: it leaks, so the test would see a leak.
func TestFault2CrashThenDelete(t *testing.T) {
	for name, can := range recovery {
		t.Run(name, func(t *testing.T) {
			both(t, func(w *world, s subject) {
				with := func(o *sidecar.Options) { can(w.driver, o) }
				o := w.dies(s, with)
				s.drop(o)
				w.sidecar(with)
				w.gone(o)
				w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 })
				w.eventually("a tombstone watches the name", func() bool {
					i := w.intent(o)
					return i != nil && i.Spec.Phase == v1alpha1.PhaseReleased && i.Spec.Doubt
				})
			})
		})
	}
	t.Run("control without intents", func(t *testing.T) {
		both(t, func(w *world, s subject) {
			forget := func(o *sidecar.Options) {
				o.WrapStore = failpoint.WithoutIntents
				recovery["delete by name"](w.driver, o)
			}
			o := w.dies(s, forget)
			s.drop(o)
			w.sidecar(forget)
			w.gone(o)
			w.stays("it leaks", func() bool { return len(s.ids()) == 1 })
		})
	})
}

// Fault 2, kept: after the crash the object is still wanted. It is served with one bucket or one account, whatever the
// driver can.
func TestFault2CrashThenServe(t *testing.T) {
	for name, can := range recovery {
		t.Run(name, func(t *testing.T) {
			both(t, func(w *world, s subject) {
				if name == "delete by name" && s.make == "create" {
					w.Skip("a driver that can only delete by name gives no way to serve a bucket that holds data, see TestNoWayToLook")
				}
				with := func(o *sidecar.Options) { can(w.driver, o) }
				o := w.dies(s, with)
				w.sidecar(with)
				w.isReady(o)
				_, id, _ := statusOf(o)
				w.stays("one thing, the one that is shown", func() bool { return slices.Equal(s.ids(), []string{id}) })
				s.drop(o)
				w.gone(o)
				w.eventually("nothing is left", func() bool { return len(s.ids()) == 0 })
			})
		})
	}
}

// Without any way to look, the sidecar says so and waits for an admin's word.
func TestNoWayToLook(t *testing.T) {
	w := newWorld(t)
	claim := w.claim("it")
	var b *cosi.Bucket
	s := subject{ids: w.driver.bucketIDs, want: func() client.Object { b = w.bucket(claim); return b }}
	w.dies(s)
	w.sidecar()
	w.says(b, v1alpha1.ReasonNoWayToLook)
	w.eventually("the Intent says that it is stuck, in doubt", func() bool {
		i := w.intent(b)
		return condition(i, v1alpha1.ConditionStuck) == v1alpha1.ReasonNoWayToLook && condition(i, v1alpha1.ConditionInDoubt) != ""
	})
	w.deleteBoth(claim, b)
	w.stays("it does not go", func() bool { return w.get(b) })
	i := w.intent(b)
	w.edit(i, false, func() { i.Spec.Word = v1alpha1.WordRelease })
	w.gone(b)
	w.eventually("the Intent is gone", func() bool { return w.intent(b) == nil })
}

// ownerFails is a store that does not tell the owner until the API server is there.
type ownerFails struct {
	provision.Store
	there *atomic.Bool
}

func (s ownerFails) Owner(ctx context.Context, r provision.Record) (provision.Goal, error) {
	if !s.there.Load() {
		return provision.GoalGone, errors.New("the API server is away")
	}
	return s.Store.Owner(ctx, r)
}

// An attempt that is open is in doubt until it is answered, and not a moment longer.
func TestDoubtThatWasNone(t *testing.T) {
	w := newWorld(t)
	there := &atomic.Bool{}
	w.sidecar(func(o *sidecar.Options) {
		o.WrapStore = func(s provision.Store) provision.Store { return ownerFails{s, there} }
	})
	b := w.bucket(w.claim("it"))
	w.eventually("an open attempt is said", func() bool { return condition(w.intent(b), v1alpha1.ConditionInDoubt) != "" })
	there.Store(true)
	w.isReady(b)
	w.eventually("it is in no doubt", func() bool { return condition(w.intent(b), v1alpha1.ConditionInDoubt) == "" })
}
