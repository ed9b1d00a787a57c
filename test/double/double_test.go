package double_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/test/double"
)

var all = wire.Capabilities{DeleteByName: true, FindByName: true, List: true, OwnerMark: true}

func start(t *testing.T, c double.Config) (*double.Backend, *wire.Client) {
	t.Helper()
	c.Name = "double.test"
	b, err := double.NewBackend(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "double") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); _ = os.RemoveAll(dir) })
	go func() { _ = b.Serve(ctx, filepath.Join(dir, "b")) }()
	var d *double.Driver
	eventually(t, "the backend answers", func() bool {
		d, err = double.NewDriver(double.NewRemote(filepath.Join(dir, "b")))
		return err == nil
	})
	socket := filepath.Join(dir, "d")
	go func() { _ = d.Serve(ctx, socket) }()
	var w *wire.Client
	eventually(t, "the driver answers", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		w, err = wire.Dial(short, "unix://"+socket, wire.Options{CallTimeout: 2 * time.Second})
		return err == nil
	})
	t.Cleanup(func() { _ = w.Close() })
	return b, w
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // between two looks
	}
}

// once has the first call of an op meet the plan, and all others none.
func once(op double.Op, p double.Plan) func(double.Op) double.Plan {
	return func(o double.Op) double.Plan {
		if o != op || p.Fault == "" {
			return double.Plan{}
		}
		defer func() { p.Fault = "" }()
		return p
	}
}

func TestDialectsAndIDs(t *testing.T) {
	request := wire.BucketRequest{Name: "bc-1", Protocols: []wire.Protocol{wire.S3}, Parameters: map[string]string{"region": "eu"}}
	grant := wire.GrantRequest{Name: "ba-1", Protocol: wire.S3, Authentication: wire.Key, Buckets: []wire.AccessedBucket{{ID: "x", Mode: wire.ReadWrite}}}
	for _, c := range []struct {
		name         string
		dialect      double.Dialect
		trait        double.Trait
		want         string // the bucket's id, "" if made up
		buckets      int    // after a second create
		keys         int    // after a second grant
		accounts     int
		repeat       codes.Code
		sameIDOfBoth bool
	}{
		{"v1alpha1, id is the name", double.V1alpha1, double.Trait{IDs: double.ByName, Repeat: double.Same}, "bc-1", 1, 1, 1, codes.OK, true},
		{"v1alpha1, taken", double.V1alpha1, double.Trait{IDs: double.ByName, Repeat: double.Taken}, "bc-1", 1, 1, 1, codes.AlreadyExists, false},
		{"v1alpha1, one more key", double.V1alpha1, double.Trait{IDs: double.ByName, Repeat: double.Anew}, "bc-1", 1, 2, 1, codes.OK, true},
		{"one phase, region", double.OnePhase, double.Trait{IDs: double.ByRegion, Repeat: double.Same}, "eu/bc-1", 1, 1, 1, codes.OK, true},
		{"one phase, made up", double.OnePhase, double.Trait{IDs: double.Assigned, Repeat: double.Same}, "", 1, 1, 1, codes.OK, true},
		{"one phase, anew", double.OnePhase, double.Trait{IDs: double.Assigned, Repeat: double.Anew}, "", 2, 1, 2, codes.OK, false},
		{"two phases", double.TwoPhase, double.Trait{IDs: double.Assigned, Repeat: double.Same}, "", 1, 1, 1, codes.OK, true},
		{"two phases, anew", double.TwoPhase, double.Trait{IDs: double.Assigned, Repeat: double.Anew}, "", 2, 1, 2, codes.OK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, w := start(t, double.Config{Dialect: c.dialect, Buckets: c.trait, Accounts: c.trait})
			ctx := t.Context()
			create := func() (wire.Bucket, error) {
				r := request
				if c.dialect == double.TwoPhase {
					id, err := w.GenerateBucketID(ctx, r)
					if err != nil {
						t.Fatal(err)
					}
					r.ID = id
				}
				return w.CreateBucket(ctx, r)
			}
			allow := func() (wire.Grant, error) {
				r := grant
				if c.dialect == double.TwoPhase {
					id, err := w.GenerateAccountID(ctx, r)
					if err != nil {
						t.Fatal(err)
					}
					r.ID = id
				}
				return w.GrantAccess(ctx, r)
			}
			first, err := create()
			if err != nil || c.want != "" && first.ID != c.want {
				t.Fatalf("create: %q, %v", first.ID, err)
			}
			second, err := create()
			if wire.Code(err) != c.repeat || err == nil && (second.ID == first.ID) != c.sameIDOfBoth {
				t.Errorf("create again: %q after %q, %v", second.ID, first.ID, err)
			}
			if _, err := allow(); err != nil {
				t.Fatal(err)
			}
			if _, err := allow(); wire.Code(err) != c.repeat {
				t.Errorf("grant again: %v", err)
			}
			buckets, accounts := b.Things(double.Bucket), b.Things(double.Account)
			if len(buckets) != c.buckets || len(accounts) != c.accounts || len(accounts[0].Keys) != c.keys || buckets[0].Name != "bc-1" || accounts[0].Name != "ba-1" {
				t.Errorf("buckets %v, accounts %v", buckets, accounts)
			}
			for range 2 { // to delete what is absent is no error
				if err := w.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: first.ID}); err != nil {
					t.Error(err)
				}
			}
			if n := len(b.Things(double.Bucket)); n != c.buckets-1 {
				t.Errorf("%d buckets after delete", n)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	b, w := start(t, double.Config{Dialect: double.OnePhase,
		Buckets:  double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: all},
		Accounts: double.Trait{IDs: double.Assigned, Repeat: double.Anew, Offers: all}})
	ctx := t.Context()
	create := func(name string) error {
		_, err := w.CreateBucket(ctx, wire.BucketRequest{Name: name, Protocols: []wire.Protocol{wire.S3}})
		return err
	}
	byName := func(name string) (found []double.Thing) {
		return slices.DeleteFunc(b.Things(double.Bucket), func(x double.Thing) bool { return x.Name != name })
	}

	b.Script(once(double.Create, double.Plan{Fault: "wrong", Code: codes.InvalidArgument}))
	if err := create("wrong"); wire.Code(err) != codes.InvalidArgument || wire.MadeID(err) != "" || len(byName("wrong")) != 1 {
		t.Errorf("wrong code: %v, %v", err, byName("wrong"))
	}
	b.Script(once(double.Create, double.Plan{Fault: "detail", Code: codes.Internal, Detail: true}))
	if err := create("detail"); wire.MadeID(err) == "" || wire.MadeID(err) != byName("detail")[0].ID {
		t.Errorf("detail: %v", err)
	}
	b.Script(once(double.Create, double.Plan{Fault: "refuse", Work: double.Never, Code: codes.Aborted}))
	if err := create("refuse"); wire.Code(err) != codes.Aborted || len(byName("refuse")) != 0 {
		t.Errorf("refuse: %v", err)
	}

	// What lands late: until it has, the Recovery service must not say that nothing is there.
	b.Script(once(double.Create, double.Plan{Fault: "late", Work: double.Late, LateBy: 300 * time.Millisecond, Code: codes.Unavailable}))
	if err := create("late"); wire.Code(err) != codes.Unavailable || len(byName("late")) != 0 || b.Pending() != 1 {
		t.Errorf("late: %v, pending %d", err, b.Pending())
	}
	if _, err := w.FindByName(ctx, wire.KindBucket, wire.NameRequest{Name: "late"}); wire.Code(err) != codes.Aborted {
		t.Errorf("find while a create may land: %v", err)
	}
	eventually(t, "the late bucket lands", func() bool { return len(byName("late")) == 1 })
	if last := b.Log()[len(b.Log())-1]; !last.Late {
		t.Errorf("log: %v", last)
	}
	eventually(t, "delete by name", func() bool {
		return w.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "late"}) == nil && len(byName("late")) == 0
	})

	// An answer that is lost: the caller has hung up, the work is done all the same.
	b.Script(once(double.Create, double.Plan{Fault: "slow", Before: 300 * time.Millisecond}))
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := w.CreateBucket(short, wire.BucketRequest{Name: "slow"}); !errors.Is(err, context.DeadlineExceeded) && wire.Code(err) != codes.DeadlineExceeded {
		t.Errorf("slow: %v", err)
	}
	if err := w.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "slow"}); wire.Code(err) != codes.Aborted {
		t.Errorf("delete by name while a create runs: %v", err)
	}
	eventually(t, "the slow bucket is made", func() bool { return len(byName("slow")) == 1 })

	// Not ours: marked so, and left alone by name.
	b.Plant(double.Bucket, "foreign", "bc-2", "somebody")
	items, err := w.FindByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-2"})
	if err != nil || len(items) != 1 || items[0].MadeFor("bc-2") {
		t.Errorf("find what is another's: %v, %v", items, err)
	}
	if err := w.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-2"}); err != nil || len(byName("bc-2")) != 1 {
		t.Errorf("delete what is another's: %v, left %v", err, byName("bc-2"))
	}
	if n := b.Faults()["late"]; n != 1 {
		t.Errorf("counted %v", b.Faults())
	}
}

func TestDice(t *testing.T) {
	f := double.Faults{Slow: 0.1, Lost: 0.1, Late: 0.1, Wrong: 0.1, Detail: 0.1, Refuse: 0.1, SlowBy: 1, LostBy: 1, LateBy: 5}
	c := double.Config{Name: "d", Dialect: double.OnePhase, Buckets: double.Trait{IDs: double.ByName, Repeat: double.Same}, Accounts: double.Trait{IDs: double.ByName, Repeat: double.Same}, Faults: f}
	var runs [2]map[string]int
	for i := range runs {
		b, err := double.NewBackend(c, 7)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if _, err := b.Plan(double.Create); err != nil {
				t.Fatal(err)
			}
		}
		runs[i] = b.Faults()
	}
	for _, fault := range []string{"slow", "lost", "late", "wrong", "detail", "refuse"} {
		if n := runs[0][fault]; n < 60 || n > 140 || n != runs[1][fault] {
			t.Errorf("%s: %d and %d of 1000 by the same seed", fault, n, runs[1][fault])
		}
	}
}
