package campaign

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/test/double"
	"github.com/custody-storage/custody/test/failpoint"
	"github.com/custody-storage/custody/test/oracle"
	"github.com/custody-storage/custody/test/proxy"
)

// patience is for what ought to take a few seconds.
const patience = 60 * time.Second

// scene is one scenario: a driver double and what is done to it.
type scene struct {
	*world
	t *testing.T
	d *driver
}

// until waits for something.
func (s *scene) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			r, _ := oracle.Compare(s.ctx, s.mine(nil))
			s.t.Fatalf("not within %s: %s\n%sbackend: %v", patience, what, r.Details(), s.d.backend.Log())
		}
	}
}

// mine looks at this scene's driver only.
func (s *scene) mine(keeps []oracle.Keep) oracle.Options {
	return oracle.Options{Reader: s.client, Drivers: []string{s.d.name}, Backends: []oracle.Inventory{s.d.items()}, Keeps: keeps,
		// The namespace is shared with other scenes.
		Excuse: func(o client.Object) string {
			if o.GetNamespace() != "" && !strings.HasPrefix(o.GetName(), s.prefix()) {
				return "another scene's"
			}
			return ""
		}}
}

func (s *scene) prefix() string {
	name, _, _ := strings.Cut(s.d.name, ".")
	return name
}

// clean waits until the oracle finds nothing wrong, and looks once more after a sweep.
func (s *scene) clean() oracle.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	r, err := oracle.Wait(ctx, s.mine(nil))
	if err != nil {
		s.t.Fatal(err)
	}
	if !r.Clean() {
		s.t.Fatalf("%s\n%sbackend: %v", r, r.Details(), s.d.backend.Log())
	}
	return r
}

// user is a life without dice.
func (s *scene) user(name string) *life {
	l := newLife(s.world, s.d, 0)
	l.name, l.retain = s.prefix()+name, false
	return l
}

func (s *scene) claimed(l *life) *cosi.BucketClaim {
	s.t.Helper()
	l.make(s.ctx, l.newClaim())
	return l.claim(s.ctx)
}

func (s *scene) ready(l *life) {
	s.t.Helper()
	s.until("claim "+l.name+" is ready", func() bool { c := l.claim(s.ctx); return c != nil && isTrue(c.Status.ReadyToUse) })
}

func (s *scene) granted(l *life) {
	s.t.Helper()
	s.until("access "+l.name+" is ready", func() bool { a := l.find(s.ctx); return a != nil && isTrue(a.Status.ReadyToUse) })
}

func (s *scene) gone(l *life) {
	s.t.Helper()
	s.until("claim and access "+l.name+" are gone", func() bool { return l.claim(s.ctx) == nil && l.find(s.ctx) == nil })
}

// calls waits until the driver has got so many calls.
func (s *scene) calls(op double.Op, n int) {
	s.t.Helper()
	s.until(string(op)+" is called", func() bool { return s.d.backend.Calls()[op] >= n })
}

// intent gives the Intent of a name.
func (s *scene) intent(name string) *custodyv1.Intent {
	var i custodyv1.Intent
	if s.get(s.ctx, types.NamespacedName{Name: name}, &i) {
		return &i
	}
	return nil
}

// shows waits until an object shows a reason.
func (s *scene) shows(what string, failed func() *cosi.TimestampedError, reason string) {
	s.t.Helper()
	s.until(what+" shows "+reason, func() bool { return failed().Reason() == reason })
}

// slow has each create wait before its work.
func slow(d time.Duration) func(double.Op) double.Plan {
	return func(op double.Op) double.Plan {
		if op != double.Create {
			return double.Plan{}
		}
		return double.Plan{Before: d}
	}
}

// first has the first n calls of an op meet a plan.
func first(n int, op double.Op, p double.Plan) func(double.Op) double.Plan {
	return func(o double.Op) double.Plan {
		if o != op || n == 0 {
			return double.Plan{}
		}
		n--
		return p
	}
}

// TestScenarios plays what people reported (notes/scenarios of this project, by
// number), each on a driver and a sidecar of its own, all at once.
func TestScenarios(t *testing.T) {
	w := newWorld(t, "scene", seedOf(t))
	w.controller(0)
	play := func(name string, c double.Config, flags []string, f func(t *testing.T, s *scene)) {
		c.Faults = double.Faults{}
		d := w.double(name, c, flags...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *w
			own.t, own.ctx = t, t.Context()
			f(t, &scene{world: &own, t: t, d: d})
		})
	}

	// 31, COSI#227: delete arrives while create runs, and the write of the id is lost.
	for name, c := range map[string]struct {
		config double.Config
		flags  []string
	}{"find": {finder, nil}, "two": {twoPhase, nil}, "old": {released, releasedFlags}, "erase": {eraser, nil}} {
		play("race-"+name, c.config, c.flags, raceOfTheSeed)
		play("restart-"+name, c.config, c.flags, restartInFlight)
		play("mint-"+name, c.config, c.flags, mintedAgain)
	}

	// 33, aws-ebs-csi-driver#2803: a code that says "never" although the bucket exists.
	play("final", finder, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		s.d.backend.Script(first(1000, double.Create, double.Plan{Fault: "wrong", Code: codes.InvalidArgument}))
		l := s.user("")
		s.claimed(l)
		s.until("a bucket is there", func() bool { return len(s.d.backend.Things(double.Bucket)) > 0 })
		l.dropClaim(s.ctx)
		s.gone(l)
		s.clean()
	})

	// 34, external-provisioner#1469: a Bucket that a stale controller makes for a claim that is gone.
	play("stale", finder, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		l := s.user("")
		claim := s.claimed(l)
		s.ready(l)
		l.dropClaim(s.ctx)
		s.gone(l)
		creates := s.d.backend.Calls()[double.Create]
		late := &cosi.Bucket{ObjectMeta: meta.ObjectMeta{Name: "bc-" + string(types.UID("00000000-0000-4000-8000-000000000034"))},
			Spec: cosi.BucketSpec{DriverName: s.d.name, DeletionPolicy: cosi.DeletionPolicyDelete, Protocols: claim.Spec.Protocols,
				BucketClaimRef: cosi.BucketClaimReference{Namespace: s.ns, Name: l.name, UID: "00000000-0000-4000-8000-000000000034"}}}
		s.create(late)
		s.until("it is refused visibly", func() bool {
			return s.get(s.ctx, types.NamespacedName{Name: late.Name}, late) && late.Status.Error.Reason() != ""
		})
		if n := s.d.backend.Calls()[double.Create]; n != creates || len(s.d.backend.Things(double.Bucket)) != 0 {
			t.Errorf("%d creates after %d, %v", n, creates, s.d.backend.Things(double.Bucket))
		}
		s.delete(s.ctx, late)
		s.clean()
	})

	// 35, external-provisioner#1507: the Secret of an access is gone before its end.
	play("nosecret", eraser, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		l := s.user("")
		s.claimed(l)
		l.make(s.ctx, l.newAccess())
		s.granted(l)
		s.delete(s.ctx, &core.Secret{ObjectMeta: meta.ObjectMeta{Namespace: s.ns, Name: l.name}})
		l.dropAccess(s.ctx)
		l.dropClaim(s.ctx)
		s.gone(l)
		s.clean()
	})

	// 37, aws-ebs-csi-driver#1951: the name of a claim that is gone can be used again.
	play("again", released, releasedFlags, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		l := s.user("")
		ids := map[string]bool{}
		for range 2 {
			claim := s.claimed(l)
			s.ready(l)
			ids[cosi.BucketName(claim)] = true
			l.dropClaim(s.ctx)
			s.gone(l)
		}
		if len(ids) != 2 {
			t.Errorf("two claims of one name had the buckets %v", ids)
		}
		s.clean()
	})

	// 38, mayastor#1787: a sweep takes what is retained, or another's, for left over.
	play("retain", finder, nil, func(t *testing.T, s *scene) {
		sidecar := s.sidecar(s.d, 0, arm{})
		s.d.backend.Plant(double.Bucket, "foreign", "foreign", "somebody")
		l := s.user("")
		l.retain = true
		claim := s.claimed(l)
		s.ready(l)
		kept, err := l.seeBucket(s.ctx, l.claim(s.ctx))
		if err != nil {
			t.Fatal(err)
		}
		l.dropClaim(s.ctx)
		s.gone(l)
		bucket := &cosi.Bucket{ObjectMeta: meta.ObjectMeta{Name: cosi.BucketName(claim)}}
		s.delete(s.ctx, bucket)
		s.until("the Bucket is gone", func() bool { return !s.get(s.ctx, types.NamespacedName{Name: bucket.Name}, bucket) })
		sidecar.kill()
		runs := s.d.backend.Calls()
		s.until("it is running again", func() bool { return sidecar.running() != nil })
		other := s.user("-other") // that it works again is seen by this
		s.claimed(other)
		s.ready(other)
		if thing, there := s.d.backend.Thing(double.Bucket, kept.id); !there || thing.Nonce != kept.nonce || thing.Data[object] != text {
			t.Errorf("the retained bucket is %v, %v; calls %v", thing, there, runs)
		}
		if _, there := s.d.backend.Thing(double.Bucket, "foreign"); !there {
			t.Error("a foreign bucket was deleted")
		}
		s.clean()
	})

	// 39, aws-ebs-csi-driver#165: two replicas act at once.
	play("both", finder, nil, func(t *testing.T, s *scene) {
		s.d.backend.Script(slow(200 * time.Millisecond))
		for n := range 2 {
			s.sidecar(s.d, n, arm{flags: []string{"--leader-elect=false"}})
		}
		var users []*life
		for _, name := range []string{"-a", "-b", "-c", "-d", "-e", "-f"} {
			l := s.user(name)
			users = append(users, l)
			s.claimed(l)
			l.make(s.ctx, l.newAccess())
		}
		for _, l := range users {
			s.ready(l)
			s.granted(l)
		}
		s.clean()
		for _, l := range users {
			if _, err := l.seeAccess(s.ctx, l.find(s.ctx)); err != nil {
				t.Errorf("access %s: %v", l.name, err)
			}
			l.dropAccess(s.ctx)
			l.dropClaim(s.ctx)
		}
		for _, l := range users {
			s.gone(l)
		}
		s.clean()
	})

	// 41, ceph-csi#1728: a delete that is answered with an error and done later.
	play("half", finder, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		l := s.user("")
		s.claimed(l)
		s.ready(l)
		s.d.backend.Script(first(2, double.Delete, double.Plan{Fault: "late", Work: double.Late, LateBy: time.Second, Code: codes.Unavailable}))
		l.dropClaim(s.ctx)
		s.gone(l)
		s.clean()
	})

	// 42, COSI#392: out of order, both ways round.
	play("order", finder, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		for _, bucketFirst := range []bool{true, false} {
			l := s.user("")
			claim := s.claimed(l)
			s.ready(l)
			bucket := &cosi.Bucket{ObjectMeta: meta.ObjectMeta{Name: cosi.BucketName(claim)}}
			if bucketFirst {
				s.delete(s.ctx, bucket)
				l.dropClaim(s.ctx)
			} else {
				l.dropClaim(s.ctx)
				s.delete(s.ctx, bucket)
			}
			s.gone(l)
			s.clean()
		}
	})

	// 43, external-snapshotter#1388: what waits is looked at again, without a restart.
	play("requeue", finder, nil, func(t *testing.T, s *scene) {
		// Alone, so that no lease is lost on a busy machine.
		sidecar := s.sidecar(s.d, 0, arm{flags: []string{"--leader-elect=false"}})
		l := s.user("")
		s.claimed(l)
		s.ready(l)
		s.d.backend.Script(first(4, double.Delete, double.Plan{Fault: "refuse", Work: double.Never, Code: codes.PermissionDenied}))
		l.dropClaim(s.ctx)
		s.gone(l)
		s.clean()
		if n := sidecar.deaths(); n != 0 {
			t.Errorf("the sidecar died %d times", n)
		}
	})

	// 44, rustfs operator#219: a foreign bucket has the name.
	taken := double.Config{Dialect: double.OnePhase, Accounts: byID,
		Buckets: double.Trait{IDs: double.ByName, Repeat: double.Taken, Offers: finder.Buckets.Offers}}
	play("foreign", taken, nil, func(t *testing.T, s *scene) {
		l := s.user("")
		claim := s.claimed(l)
		name := cosi.BucketName(claim)
		s.d.backend.Plant(double.Bucket, name, name, "somebody")
		s.sidecar(s.d, 0, arm{})
		bucket := &cosi.Bucket{}
		s.shows("the Bucket", func() *cosi.TimestampedError {
			s.get(s.ctx, types.NamespacedName{Name: name}, bucket)
			return bucket.Status.Error
		}, "NameTaken")
		l.dropClaim(s.ctx)
		s.gone(l)
		if thing, there := s.d.backend.Thing(double.Bucket, name); !there || thing.Driver != "somebody" {
			t.Errorf("the foreign bucket: %v, %v", thing, there)
		}
		s.clean()
	})

	// No way to look: it stops and says so, and an admin's word ends it.
	blind := double.Config{Dialect: double.OnePhase,
		Buckets:  double.Trait{IDs: double.Assigned, Repeat: double.Anew},
		Accounts: double.Trait{IDs: double.Assigned, Repeat: double.Anew}}
	play("blind", blind, nil, func(t *testing.T, s *scene) {
		s.sidecar(s.d, 0, arm{})
		s.d.backend.Script(first(1, double.Create, double.Plan{Fault: "refuse", Work: double.Never, Code: codes.Unavailable}))
		l := s.user("")
		claim := s.claimed(l)
		name := cosi.BucketName(claim)
		bucket := &cosi.Bucket{}
		failed := func() *cosi.TimestampedError {
			s.get(s.ctx, types.NamespacedName{Name: name}, bucket)
			return bucket.Status.Error
		}
		s.shows("the Bucket", failed, "NoWayToLook")
		l.dropClaim(s.ctx)
		s.until("the Intent says that it is stuck", func() bool {
			r, err := oracle.Compare(s.ctx, s.mine(nil))
			return err == nil && strings.Contains(r.Details(), "phase Deleting: NoWayToLook: ")
		})
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"word":"Release"}}`))
		if err := s.client.Patch(s.ctx, s.intent(name), patch); err != nil {
			t.Fatal(err)
		}
		s.gone(l)
		s.clean()
	})
}

// raceOfTheSeed is the race that began this project: the create is answered, the
// write of its id fails, and the object is deleted meanwhile.
func raceOfTheSeed(t *testing.T, s *scene) {
	sidecar := s.sidecar(s.d, 0, arm{})
	kinds := []struct {
		make, drop func(l *life)
	}{
		{func(l *life) { s.claimed(l) }, func(l *life) { l.dropClaim(s.ctx) }},
		{func(l *life) { l.make(s.ctx, l.newAccess()) }, func(l *life) { l.dropAccess(s.ctx) }},
	}
	for n, kind := range kinds {
		l := s.user("")
		if n == 1 {
			s.claimed(l)
			s.ready(l)
		}
		before := s.d.backend.Calls()[double.Create]
		s.d.backend.Script(slow(400 * time.Millisecond))
		kind.make(l)
		s.calls(double.Create, before+1)
		sidecar.door.Cut() // the call runs; its answer can't be written
		kind.drop(l)
		s.until("it is made", func() bool { return made(s.d.backend, n) })
		time.Sleep(300 * time.Millisecond) // the answer has arrived and the write has failed; nothing to wait for shows it
		sidecar.door.Mend()
		s.d.backend.Script(slow(0))
		if n == 1 {
			s.until("the access is gone", func() bool { return l.find(s.ctx) == nil })
			l.dropClaim(s.ctx)
		}
		s.gone(l)
		s.clean()
	}
}

// mintedAgain loses the answers of the first grants, each of which mints one more
// account or key (36, garage-operator#271: 50 in 22 hours).
func mintedAgain(t *testing.T, s *scene) {
	s.sidecar(s.d, 0, arm{})
	l := s.user("")
	s.claimed(l)
	s.ready(l)
	s.d.backend.Script(first(3, double.Create, double.Plan{Fault: "lost", After: callTimeout + 300*time.Millisecond}))
	l.make(s.ctx, l.newAccess())
	s.granted(l)
	s.until("one credential is left", func() bool {
		all := s.d.backend.Things(double.Account)
		return len(all) == 1 && len(all[0].Keys) == 1
	})
	s.clean()
	if _, err := l.seeAccess(s.ctx, l.find(s.ctx)); err != nil {
		t.Errorf("the one that is left is not the one in the Secret: %v", err)
	}
	l.dropAccess(s.ctx)
	l.dropClaim(s.ctx)
	s.gone(l)
	s.clean()
}

// made tells whether a bucket (0) or an account (1) was ever made.
func made(b *double.Backend, n int) bool {
	kind := []double.Kind{double.Bucket, double.Account}[n]
	for _, e := range b.Log() {
		if e.Kind == kind && e.What == "made" {
			return true
		}
	}
	return false
}

// restartInFlight kills the sidecar when the answer of a create has come, of a
// bucket and then of an access, and deletes the object while it is down (32,
// external-provisioner#486).
func restartInFlight(t *testing.T, s *scene) {
	armed := filepath.Join(s.dir, "arm-"+s.d.name)
	sidecar := s.sidecar(s.d, 0, arm{on: armed, pause: 1500 * time.Millisecond, rules: []failpoint.Rule{
		{Point: "backend.create.after", Action: failpoint.Kill, Chance: 1},
	}})
	for n, what := range []string{"bucket", "access"} {
		l := s.user("-" + what)
		if n == 1 {
			s.claimed(l)
			s.ready(l)
		}
		if err := os.WriteFile(armed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			s.claimed(l)
		} else {
			l.make(s.ctx, l.newAccess())
		}
		s.until("the sidecar is killed", func() bool { return sidecar.deaths() > n })
		if err := os.Remove(armed); err != nil {
			t.Fatal(err)
		}
		l.dropAccess(s.ctx)
		l.dropClaim(s.ctx)
		s.gone(l)
		s.clean()
		if !made(s.d.backend, n) {
			t.Errorf("no %s was ever made: %v", what, s.d.backend.Log())
		}
	}
}

// TestFrozen freezes sidecar and driver in the middle of a create. A successor
// deletes and releases. Then they wake, and the driver carries out what it was
// asked for long ago: found under the tombstone by the sweep, and deleted.
func TestFrozen(t *testing.T) {
	w := newWorld(t, "frozen", seedOf(t))
	w.controller(0)
	for _, c := range []struct {
		name   string
		sweep  time.Duration
		wakes  bool // the old sidecar too
		leaves int
	}{
		{"both-wake", sweep, true, 0},
		// The old sidecar would keep the id that it is answered, if it could write. The
		// worst case is that it can't.
		{"driver-wakes", sweep, false, 0},
		{"control", time.Hour, false, 1}, // without the sweep it stays
	} {
		d := w.double(c.name, eraserOfBoth)
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := *w
			own.t, own.ctx = t, t.Context()
			s := &scene{world: &own, t: t, d: d}
			d.backend.Script(slow(time.Second))
			old := s.sidecar(d, 0, arm{})
			l := s.user("")
			claim := s.claimed(l)
			s.calls(double.Create, 1)
			for _, p := range []*slot{d.first, old} {
				if !p.freeze(s.ctx, patience) {
					t.Fatalf("%s can't be frozen", p.name)
				}
			}
			d.backend.Script(nil)
			s.sidecar(d, 1, arm{socket: s.second(d), flags: []string{"--sweep-interval=" + c.sweep.String()}})
			l.dropClaim(s.ctx)
			s.gone(l)
			i := s.intent(cosi.BucketName(claim))
			if i == nil || i.Spec.Phase != custodyv1.PhaseReleased || len(d.backend.Log()) != 0 {
				t.Fatalf("released while frozen: Intent %+v, backend %v", i, d.backend.Log())
			}
			if c.wakes {
				if err := old.running().Resume(); err != nil {
					t.Fatal(err)
				}
			} else {
				old.kill()
			}
			if err := d.first.running().Resume(); err != nil {
				t.Fatal(err)
			}
			s.until("the driver wakes and makes it", func() bool { return made(d.backend, 0) })
			if c.leaves == 0 {
				s.clean()
				return
			}
			time.Sleep(4 * sweep)
			if r, err := oracle.Compare(s.ctx, s.mine(nil)); err != nil || r.Orphans != c.leaves {
				t.Errorf("without a sweep: %s, %v\n%s", r, err, r.Details())
			}
		})
	}
}

var eraserOfBoth = double.Config{Dialect: double.OnePhase,
	Buckets:  double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: wire.Capabilities{DeleteByName: true}},
	Accounts: double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: wire.Capabilities{DeleteByName: true}}}

// TestLostReplies loses the reply, and then the request, of each kind of write that
// a sidecar makes, one after the other, each once.
func TestLostReplies(t *testing.T) {
	w := newWorld(t, "lost", seedOf(t))
	w.controller(0)
	d := w.double("lost", finder)
	d.backend.Calm()
	s := &scene{world: w, t: t, d: d}
	w.sidecar(d, 0, arm{})
	for _, fault := range []proxy.Fault{proxy.DropReply, proxy.DropRequest} {
		done := map[string]int{}
		w.proxy.Aim(func(r proxy.Request) (proxy.Fault, bool) {
			if !strings.HasPrefix(r.Client, "sidecar") || r.Verb == "get" || r.Verb == "list" || strings.HasPrefix(r.Resource, "lease") || r.Resource == "events" {
				return proxy.None, true
			}
			kind := r.Verb + " " + r.Resource
			done[kind]++
			if done[kind] <= 2 {
				return fault, true
			}
			return proxy.None, true
		})
		for n := range 2 {
			l := s.user(map[proxy.Fault]string{proxy.DropReply: "-reply", proxy.DropRequest: "-request"}[fault])
			s.claimed(l)
			l.make(s.ctx, l.newAccess())
			s.ready(l)
			s.granted(l)
			if b, a := len(d.backend.Things(double.Bucket)), len(d.backend.Things(double.Account)); b != 1 || a != 1 {
				t.Errorf("%s, round %d: %d buckets, %d accounts", fault, n, b, a)
			}
			l.dropAccess(s.ctx)
			l.dropClaim(s.ctx)
			s.gone(l)
			s.clean()
		}
		w.proxy.Aim(nil)
		t.Logf("%s: %v", fault, w.proxy.Counts())
	}
	if n := len(d.backend.Log()); n == 0 {
		t.Error("nothing was made")
	}
}
