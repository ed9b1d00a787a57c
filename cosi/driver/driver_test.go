package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/wire"
)

func newDriver(t *testing.T, b driver.Backend, o driver.Options) *driver.Driver {
	t.Helper()
	d, err := driver.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func code(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if wire.Code(err) != want {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// held makes each create of a bucket wait in the backend until it is let go.
type held struct {
	entered chan string
	release chan error
}

func hold(m *memory) *held {
	h := &held{entered: make(chan string, 16), release: make(chan error, 16)}
	m.gate = func(_ context.Context, op, name string) error {
		if op != "create" && op != "grant" {
			return nil
		}
		h.entered <- name
		return <-h.release
	}
	return h
}

func createBucket(ctx context.Context, d *driver.Driver, name string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := d.CreateBucket(ctx, wire.BucketRequest{Name: name})
		done <- err
	}()
	return done
}

func TestDeleteByNameWhileACreateRuns(t *testing.T) {
	m := newMemory()
	h := hold(m)
	d := newDriver(t, m, driver.Options{})
	ctx := deadline(t)
	name := wire.NameRequest{Name: "bc-1"}

	done := createBucket(ctx, d, "bc-1")
	<-h.entered
	code(t, "delete while a create runs", d.DeleteByName(ctx, wire.KindBucket, name), codes.Aborted)
	_, err := d.FindByName(ctx, wire.KindBucket, name)
	code(t, "find while a create runs", err, codes.Aborted)
	// Another name, and the same name of another kind, are not held up.
	code(t, "another name", d.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-2"}), codes.OK)
	code(t, "another kind", d.DeleteByName(ctx, wire.KindAccount, name), codes.OK)
	h.release <- nil
	code(t, "create", <-done, codes.OK)
	code(t, "delete after", d.DeleteByName(ctx, wire.KindBucket, name), codes.OK)
	if m.has(m.buckets, "bc-1") {
		t.Error("the bucket is still there")
	}
}

// A create that was received before a delete by name answered OK must not land after it.
func TestQueuedCreateIsGivenUp(t *testing.T) {
	m := newMemory()
	started, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.gate = func(_ context.Context, op, _ string) error {
		if op == "delete by name" {
			once.Do(func() { close(started); <-let })
		}
		return nil
	}
	d := newDriver(t, m, driver.Options{})
	ctx := deadline(t)
	deleted := make(chan error, 1)
	go func() { deleted <- d.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "bc-1"}) }()
	<-started // it has the turn; creates that come now wait
	const n = 8
	var creates []<-chan error
	for range n {
		creates = append(creates, createBucket(ctx, d, "bc-1"))
	}
	waitFor(t, "the creates to queue", func() bool { return driver.Users(d, "bucket/bc-1") == n+1 })
	close(let)
	code(t, "delete by name", <-deleted, codes.OK)
	for _, c := range creates {
		code(t, "queued create", <-c, codes.Aborted)
	}
	if m.has(m.buckets, "bc-1") {
		t.Error("a queued create landed after the delete by name had answered OK")
	}
	// Control: a create that comes later is a new wish and lands.
	code(t, "create after", <-createBucket(ctx, d, "bc-1"), codes.OK)
	if !m.has(m.buckets, "bc-1") {
		t.Error("the create after did not land")
	}
	waitFor(t, "the entry to be forgotten", func() bool { return driver.Users(d, "bucket/bc-1") == -1 })
}

func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	ctx := deadline(t)
	for !f() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting for %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// The client gives up; the backend's call goes on, and the name is busy until it ends.
func TestClientGivesUpCallIsSeenThrough(t *testing.T) {
	m := newMemory()
	h := hold(m)
	d := newDriver(t, m, driver.Options{})
	ctx, cancel := context.WithCancel(deadline(t))
	done := createBucket(ctx, d, "bc-1")
	<-h.entered
	cancel()
	code(t, "delete while the abandoned create runs", d.DeleteByName(deadline(t), wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.Aborted)
	h.release <- nil
	code(t, "the abandoned create", <-done, codes.OK)
	if !m.has(m.buckets, "bc-1") {
		t.Error("the create was not seen through")
	}
	code(t, "delete", d.DeleteByName(deadline(t), wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.OK)
}

func TestUnansweredCreateUnsettlesTheName(t *testing.T) {
	const settle = 300 * time.Millisecond
	for _, tc := range []struct {
		name      string
		err       error
		unsettled bool
	}{
		{"no answer", context.DeadlineExceeded, true},
		{"no code", errors.New("connection reset"), true},
		{"unavailable", status.Error(codes.Unavailable, "x"), true},
		{"refused", status.Error(codes.PermissionDenied, "x"), false}, // control
		{"fine", nil, false}, // control
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMemory()
			h := hold(m)
			h.release <- tc.err
			d := newDriver(t, m, driver.Options{Settle: settle})
			start := time.Now()
			code(t, "create", <-createBucket(deadline(t), d, "bc-1"), wire.Code(tc.err))
			name := wire.NameRequest{Name: "bc-1"}
			want := codes.OK
			if tc.unsettled {
				want = codes.Aborted
			}
			code(t, "delete by name", d.DeleteByName(deadline(t), wire.KindBucket, name), want)
			_, err := d.FindByName(deadline(t), wire.KindBucket, name)
			code(t, "find", err, want)
			code(t, "delete by id", d.DeleteBucket(deadline(t), wire.DeleteBucketRequest{ID: "bc-1"}), codes.OK)
			waitFor(t, "the name to settle", func() bool { return d.DeleteByName(deadline(t), wire.KindBucket, name) == nil })
			if took := time.Since(start); tc.unsettled && took < settle {
				t.Errorf("settled after %s, before %s", took, settle)
			}
			waitFor(t, "the entry to be forgotten", func() bool { return driver.Users(d, "bucket/bc-1") == -1 })
		})
	}
}

func TestBackendDeadline(t *testing.T) {
	m := newMemory()
	m.gate = func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }
	d := newDriver(t, m, driver.Options{CallTimeout: 20 * time.Millisecond, Settle: time.Hour})
	code(t, "create", <-createBucket(deadline(t), d, "bc-1"), codes.DeadlineExceeded)
	code(t, "delete", d.DeleteBucket(deadline(t), wire.DeleteBucketRequest{ID: "bc-1"}), codes.DeadlineExceeded)
}

func TestCallsOfOneNameNeverOverlap(t *testing.T) {
	m := newMemory()
	d := newDriver(t, m, driver.Options{})
	ctx := deadline(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			name := fmt.Sprintf("n-%d", i%3)
			switch i % 5 {
			case 0:
				_, _ = d.CreateBucket(ctx, wire.BucketRequest{Name: name})
			case 1:
				_ = d.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: name})
			case 2:
				_ = d.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: name})
			case 3:
				_, _ = d.GetBucket(ctx, wire.GetBucketRequest{ID: name})
			case 4:
				_, _ = d.CreateBucket(ctx, wire.BucketRequest{ID: name}) // the other phase, the same name
			}
		})
	}
	wg.Wait()
	if m.overlaps > 0 {
		t.Errorf("%d calls of one name overlapped", m.overlaps)
	}
}

func TestPanicBecomesInternal(t *testing.T) {
	m := newMemory()
	m.gate = func(context.Context, string, string) error { panic("boom") }
	var logged strings.Builder
	log := funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{})
	d := newDriver(t, m, driver.Options{Log: log, Settle: time.Hour})
	err := <-createBucket(deadline(t), d, "bc-1")
	code(t, "create", err, codes.Internal)
	if strings.Contains(err.Error(), "boom") || !strings.Contains(logged.String(), "boom") || !strings.Contains(logged.String(), "goroutine") {
		t.Errorf("error %q, log %q", err, logged.String())
	}
	m.gate = nil
	code(t, "delete by name: the create may still land", d.DeleteByName(deadline(t), wire.KindBucket, wire.NameRequest{Name: "bc-1"}), codes.Aborted)
}

func TestRequestsAreChecked(t *testing.T) {
	d := newDriver(t, newMemory(), driver.Options{})
	ctx := deadline(t)
	ok := wire.GrantRequest{Name: "ba-1", Protocol: wire.S3, Authentication: wire.Key, Buckets: []wire.AccessedBucket{{ID: "b", Mode: wire.ReadOnly}}}
	with := func(change func(*wire.GrantRequest)) error {
		r := ok
		r.Buckets = append([]wire.AccessedBucket(nil), ok.Buckets...)
		change(&r)
		_, err := d.GrantAccess(ctx, r)
		return err
	}
	bucket := func(r wire.BucketRequest) error { _, err := d.CreateBucket(ctx, r); return err }
	for what, err := range map[string]error{
		"no name":             bucket(wire.BucketRequest{}),
		"upper case":          bucket(wire.BucketRequest{Name: "A"}),
		"slash":               bucket(wire.BucketRequest{Name: "a/b"}),
		"long name":           bucket(wire.BucketRequest{Name: strings.Repeat("a", 254)}),
		"foreign protocol":    bucket(wire.BucketRequest{Name: "a", Protocols: []wire.Protocol{wire.S3, wire.GCS}}),
		"delete: no id":       d.DeleteBucket(ctx, wire.DeleteBucketRequest{}),
		"delete: id pattern":  d.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "a="}),
		"delete: long id":     d.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: strings.Repeat("a", 2049)}),
		"revoke: no id":       d.RevokeAccess(ctx, wire.RevokeRequest{}),
		"by name: bad name":   d.DeleteByName(ctx, wire.KindBucket, wire.NameRequest{Name: "-"}),
		"grant: protocol":     with(func(r *wire.GrantRequest) { r.Protocol = wire.Azure }),
		"grant: no protocol":  with(func(r *wire.GrantRequest) { r.Protocol = "" }),
		"grant: auth":         with(func(r *wire.GrantRequest) { r.Authentication = "" }),
		"grant: no buckets":   with(func(r *wire.GrantRequest) { r.Buckets = nil }),
		"grant: mode":         with(func(r *wire.GrantRequest) { r.Buckets[0].Mode = "Sideways" }),
		"grant: bucket twice": with(func(r *wire.GrantRequest) { r.Buckets = append(r.Buckets, r.Buckets[0]) }),
	} {
		code(t, what, err, codes.InvalidArgument)
	}
	code(t, "control", with(func(*wire.GrantRequest) {}), codes.OK)
	code(t, "control: slash in an id", d.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: "region/Name_1.x"}), codes.OK)
}

func TestNewChecksTheBackend(t *testing.T) {
	for what, b := range map[string]driver.Backend{
		"bad name":               &claims{memory: newMemory(), info: wire.Info{Name: "Bad Name", Protocols: []wire.Protocol{wire.S3}}},
		"long name":              &claims{memory: newMemory(), info: wire.Info{Name: strings.Repeat("a", 64), Protocols: []wire.Protocol{wire.S3}}},
		"no protocol":            &claims{memory: newMemory(), info: wire.Info{Name: "a"}},
		"claims what it has not": struct{ driver.Backend }{newMemory()},
	} {
		if _, err := driver.New(b, driver.Options{}); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

type claims struct {
	*memory
	info wire.Info
}

func (c *claims) Info() wire.Info { return c.info }

// badIDs answers an id that the API would refuse: it must reach the caller, with an error.
type badIDs struct{ *memory }

func (badIDs) CreateBucket(context.Context, wire.BucketRequest) (wire.Bucket, error) {
	return wire.Bucket{ID: "YmFkCg=="}, nil
}

func TestBadIDIsHandedOut(t *testing.T) {
	d := newDriver(t, badIDs{newMemory()}, driver.Options{})
	b, err := d.CreateBucket(deadline(t), wire.BucketRequest{Name: "bc-1"})
	code(t, "create", err, codes.Internal)
	if b.ID != "YmFkCg==" {
		t.Errorf("the id was dropped: %+v", b)
	}
}
