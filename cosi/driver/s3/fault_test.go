package s3_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/wire"
)

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx := deadline(t)
	for !f() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// settleUntil repeats f until it answers something else than ABORTED or UNAVAILABLE.
func settleUntil(t *testing.T, f func() error) error {
	t.Helper()
	ctx := deadline(t)
	for {
		err := f()
		switch wire.Code(err) {
		case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded:
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// The server stands still in the middle of a create: the client hears of its deadline, a delete by name
// hears that it must wait, and after its OK nothing lands, though the server wakes only then.
func TestServerStandsStillDuringCreate(t *testing.T) {
	const settle = 2 * time.Second
	short := func(o *s3.Options) {
		o.RequestTimeout = 300 * time.Millisecond
		o.Kit = driver.Options{CallTimeout: 400 * time.Millisecond, Settle: settle}
	}
	for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
		t.Run(kind.String(), func(t *testing.T) {
			r := newRig(t, short)
			r.create("bc-0")
			name := wire.NameRequest{Name: "n-1"}
			if err := r.server.Process().Pause(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(deadline(t), 100*time.Millisecond)
			defer cancel()
			var err error
			if kind == wire.KindBucket {
				_, err = r.CreateBucket(ctx, wire.BucketRequest{Name: "n-1"})
			} else {
				_, err = r.GrantAccess(ctx, access("n-1", wire.AccessedBucket{ID: "bc-0", Mode: wire.ReadWrite}))
			}
			r.code("create", err, codes.DeadlineExceeded)
			r.code("delete while the create runs", r.DeleteByName(deadline(t), kind, name), codes.Aborted)
			// Once the driver's own deadline is over, its answer is no longer that a create runs.
			waitFor(t, "the driver's deadline", func() bool { return wire.Code(r.DeleteByName(deadline(t), kind, name)) != codes.Aborted })
			if err := r.server.Process().Resume(); err != nil {
				t.Fatal(err)
			}
			// The control: the create does land, late.
			waitFor(t, "the create to land late", func() bool {
				p, err := r.List(deadline(t), kind, wire.ListRequest{})
				return err == nil && slices.ContainsFunc(p.Items, func(i wire.Item) bool { return i.ID == "n-1" })
			})
			start := time.Now()
			if err := settleUntil(t, func() error { return r.DeleteByName(deadline(t), kind, name) }); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < settle/2 {
				t.Errorf("the delete answered OK after %s, while the create might still land", took)
			}
			items, err := r.FindByName(deadline(t), kind, name)
			if err != nil || len(items) != 0 {
				t.Errorf("after OK there is %+v, %v", items, err)
			}
		})
	}
}

// Creates and deletes by name of the same names at once: what a delete said OK to is gone, unless a later
// create made it anew.
func TestDeleteByNameRaces(t *testing.T) {
	r := newRig(t)
	r.create("bc-0")
	ctx := deadline(t)
	var wg sync.WaitGroup
	for i := range 6 {
		name := fmt.Sprintf("n-%d", i)
		wg.Go(func() {
			for range 15 {
				_, err := r.CreateBucket(ctx, wire.BucketRequest{Name: name})
				if c := wire.Code(err); c != codes.OK && c != codes.Aborted {
					t.Errorf("create: %v", err)
				}
				_, err = r.GrantAccess(ctx, access(name, wire.AccessedBucket{ID: "bc-0", Mode: wire.ReadWrite}))
				if c := wire.Code(err); c != codes.OK && c != codes.Aborted {
					t.Errorf("grant: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 15 {
				for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
					if c := wire.Code(r.DeleteByName(ctx, kind, wire.NameRequest{Name: name})); c != codes.OK && c != codes.Aborted {
						t.Errorf("delete: %v", c)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range 6 {
		for _, kind := range []wire.Kind{wire.KindBucket, wire.KindAccount} {
			if err := settleUntil(t, func() error {
				return r.DeleteByName(ctx, kind, wire.NameRequest{Name: fmt.Sprintf("n-%d", i)})
			}); err != nil {
				t.Error(err)
			}
		}
	}
	if got := r.buckets(); got != "bc-0" {
		t.Errorf("left: %s", got)
	}
	if p, err := r.List(ctx, wire.KindAccount, wire.ListRequest{}); err != nil || len(p.Items) != 0 {
		t.Errorf("left: %+v, %v", p, err)
	}
	if p := r.policy("bc-0"); p != "" {
		t.Errorf("left: %s", p)
	}
}

// Grants on one bucket at once: nobody's place in the policy is lost.
func TestGrantsOnOneBucketAtOnce(t *testing.T) {
	r := newRig(t)
	r.create("bc-1")
	var wg sync.WaitGroup
	grants := make([]wire.Grant, 12)
	for i := range grants {
		wg.Go(func() {
			g, err := r.GrantAccess(deadline(t), access(fmt.Sprintf("ba-%d", i), wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))
			if err != nil {
				t.Error(err)
			}
			grants[i] = g
		})
	}
	wg.Wait()
	for _, g := range grants {
		if err := put(r.as(g), "bc-1", g.AccountID); err != nil {
			t.Errorf("%s: %v", g.AccountID, err)
		}
	}
}

// kill -9 of the server while calls run, again and again: after it is back, a retry of each call ends well,
// and a delete of each leaves nothing.
func TestServerKilledMidCall(t *testing.T) {
	r := newRig(t, func(o *s3.Options) { o.Kit.Settle = 200 * time.Millisecond })
	r.create("bc-0")
	const names, kills = 8, 4
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	var wg sync.WaitGroup
	busy, cancel := context.WithCancel(ctx)
	failures := make([]int, names)
	for i := range names {
		wg.Go(func() {
			name := fmt.Sprintf("n-%d", i)
			for busy.Err() == nil {
				_, e1 := r.CreateBucket(ctx, wire.BucketRequest{Name: name})
				_, e2 := r.GrantAccess(ctx, access(name, wire.AccessedBucket{ID: "bc-0", Mode: wire.ReadWrite}))
				e3 := r.RevokeAccess(ctx, wire.RevokeRequest{AccountID: name, BucketIDs: []string{"bc-0"}})
				e4 := r.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: name})
				for _, err := range []error{e1, e2, e3, e4} {
					if err != nil {
						failures[i]++
					}
				}
			}
		})
	}
	for range kills {
		time.Sleep(150 * time.Millisecond) // let calls be under way: there is no event to wait for
		if err := r.server.Process().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.server.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
	total := 0
	for _, f := range failures {
		total += f
	}
	if total == 0 {
		t.Error("the control failed: no call met a dead server")
	}
	for i := range names {
		name := fmt.Sprintf("n-%d", i)
		if err := settleUntil(t, func() error { _, err := r.CreateBucket(ctx, wire.BucketRequest{Name: name}); return err }); err != nil {
			t.Fatalf("create after: %v", err)
		}
		var g wire.Grant
		if err := settleUntil(t, func() (err error) {
			g, err = r.GrantAccess(ctx, access(name, wire.AccessedBucket{ID: name, Mode: wire.ReadWrite}))
			return err
		}); err != nil {
			t.Fatalf("grant after: %v", err)
		}
		if err := put(r.as(g), name, "a"); err != nil {
			t.Errorf("use after: %v", err)
		}
		if err := remove(r.root, name, "a"); err != nil {
			t.Error(err)
		}
		for _, kind := range []wire.Kind{wire.KindAccount, wire.KindBucket} {
			if err := settleUntil(t, func() error { return r.DeleteByName(ctx, kind, wire.NameRequest{Name: name}) }); err != nil {
				t.Fatalf("delete after: %v", err)
			}
		}
	}
	if got := r.buckets(); got != "bc-0" {
		t.Errorf("left: %s", got)
	}
	if p, err := r.List(ctx, wire.KindAccount, wire.ListRequest{}); err != nil || len(p.Items) != 0 {
		t.Errorf("left: %+v, %v", p, err)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	r := newRig(t)
	if err := r.server.Process().Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := r.CreateBucket(deadline(t), wire.BucketRequest{Name: "bc-1"})
	// Nothing was sent, so the name is not unsettled: a look is possible as soon as the server is back.
	if code := wire.Code(err); code != codes.Aborted && code != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	_, err = r.CreateBucket(deadline(t), wire.BucketRequest{Name: "bc-2"})
	r.code("a server that refuses the connection", err, codes.Aborted)
	if err := r.server.Restart(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r.code("delete by name", r.DeleteByName(deadline(t), wire.KindBucket, wire.NameRequest{Name: "bc-2"}), codes.OK)
}

func TestWrongKeys(t *testing.T) {
	r := newRig(t)
	const secret = "not-the-right-secret"
	_, d := r.driver(func(o *s3.Options) { o.SecretKey = secret })
	_, e1 := d.CreateBucket(deadline(t), wire.BucketRequest{Name: "bc-1"})
	_, e2 := d.GrantAccess(deadline(t), access("ba-1", wire.AccessedBucket{ID: "bc-1", Mode: wire.ReadWrite}))
	for _, err := range []error{e1, e2} {
		r.code("call with wrong keys", err, codes.Unauthenticated)
		if !strings.Contains(wire.Message(err), "see the keys") || strings.Contains(err.Error(), secret) {
			t.Errorf("message %q", wire.Message(err))
		}
	}
}
