package sidecar_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// fake is a driver and its backend in this process. Without hooks it does what it should.
type fake struct {
	info     wire.Info
	twoPhase bool
	// id gives the id of a thing; n counts those made.
	id func(kind wire.Kind, name string, n int) string
	// bucketInfo is what is said of a bucket.
	bucketInfo func(id string) wire.BucketInfo

	mu       sync.Mutex
	made     int
	buckets  map[string]string // name by id
	accounts map[string]string
	keys     map[string]string // by account id
	calls    []string
	before   map[string]hook // before the work: an error is answered and nothing is done
	after    map[string]hook // after the work: an error is answered though it is done
}

// hook interferes with a call about a name or id. It runs without the lock.
type hook func(ctx context.Context, subject string) error

func newFake(name string) *fake {
	return &fake{
		info:       wire.Info{Name: name, Dialect: wire.V1alpha2, Protocols: []wire.Protocol{wire.S3}},
		id:         func(_ wire.Kind, name string, _ int) string { return name },
		bucketInfo: func(id string) wire.BucketInfo { return s3Info(id) },
		buckets:    map[string]string{}, accounts: map[string]string{}, keys: map[string]string{},
		before: map[string]hook{}, after: map[string]hook{},
	}
}

func s3Info(id string) wire.BucketInfo {
	return wire.BucketInfo{S3: &wire.S3Bucket{BucketID: id, Endpoint: "http://s3.test", Region: "here", AddressingStyle: wire.PathStyle}}
}

// recovers has the driver offer the Recovery service, without owner marks.
func (f *fake) recovers(c wire.Capabilities) *fake {
	f.info.Recovery = wire.Recovery{Buckets: c, Accounts: c}
	return f
}

// assigned has ids that nobody can guess, a new one at each create.
func (f *fake) assigned() *fake {
	f.id = func(kind wire.Kind, _ string, n int) string { return fmt.Sprintf("%s-%d", kind, n) }
	return f
}

// onBefore and onAfter set hooks; nil takes one away.
func (f *fake) onBefore(op string, h hook) { f.set(f.before, op, h) }
func (f *fake) onAfter(op string, h hook)  { f.set(f.after, op, h) }

func (f *fake) set(hooks map[string]hook, op string, h hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h == nil {
		delete(hooks, op)
		return
	}
	hooks[op] = h
}

// once makes a hook that acts on the first call only.
func once(h hook) hook {
	var o sync.Once
	return func(ctx context.Context, subject string) (err error) {
		o.Do(func() { err = h(ctx, subject) })
		return err
	}
}

// fails is a hook that answers an error.
func fails(c codes.Code, text string) hook {
	return func(context.Context, string) error { return status.Error(c, text) }
}

// do runs one call: hook, work, hook.
func (f *fake) do(ctx context.Context, op, subject string, work func()) error {
	f.mu.Lock()
	f.calls = append(f.calls, op+" "+subject)
	before, after := f.before[op], f.after[op]
	f.mu.Unlock()
	if before != nil {
		if err := before(ctx, subject); err != nil {
			return err
		}
	}
	f.mu.Lock()
	work()
	f.mu.Unlock()
	if after != nil {
		return after(ctx, subject)
	}
	return nil
}

// called counts the calls of an op; all ops if "".
func (f *fake) called(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if op == "" || len(c) > len(op) && c[:len(op)+1] == op+" " {
			n++
		}
	}
	return n
}

func (f *fake) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// bucketIDs and accountIDs are what exists in the backend.
func (f *fake) bucketIDs() []string  { return f.ids(f.buckets) }
func (f *fake) accountIDs() []string { return f.ids(f.accounts) }

func (f *fake) ids(of map[string]string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(of))
}

// put makes a bucket by hand.
func (f *fake) put(id, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buckets[id] = name
}

// make gives a thing of a name its id; the caller holds the lock. A thing that exists keeps the id, unless ids are
// assigned anew.
func (f *fake) make(kind wire.Kind, of map[string]string, name, generated string) string {
	f.made++
	id := f.id(kind, name, f.made)
	if generated != "" {
		id = generated
	}
	of[id] = name
	return id
}

func (f *fake) Info() wire.Info { return f.info }

func (f *fake) GenerateBucketID(ctx context.Context, req wire.BucketRequest) (string, error) {
	return f.generated(ctx, req.Name, "gen-")
}

func (f *fake) GenerateAccountID(ctx context.Context, req wire.GrantRequest) (string, error) {
	return f.generated(ctx, req.Name, "genacc-")
}

func (f *fake) generated(ctx context.Context, name, prefix string) (string, error) {
	if !f.twoPhase {
		return "", wire.ErrNotOffered
	}
	if name == "" {
		return "", status.Error(codes.InvalidArgument, "no name")
	}
	return prefix + name, f.do(ctx, "generate", name, func() {})
}

func (f *fake) CreateBucket(ctx context.Context, req wire.BucketRequest) (b wire.Bucket, err error) {
	err = f.do(ctx, "create", req.Name, func() { b.ID = f.make(wire.KindBucket, f.buckets, req.Name, req.ID) })
	if err != nil {
		return wire.Bucket{ID: wire.MadeID(err)}, err
	}
	b.Info = f.bucketInfo(b.ID)
	return b, nil
}

func (f *fake) GetBucket(ctx context.Context, req wire.GetBucketRequest) (b wire.Bucket, err error) {
	found := false
	err = f.do(ctx, "get", req.ID, func() { _, found = f.buckets[req.ID] })
	if err == nil && !found {
		err = status.Error(codes.NotFound, "no such bucket")
	}
	return wire.Bucket{ID: req.ID, Info: f.bucketInfo(req.ID)}, err
}

func (f *fake) DeleteBucket(ctx context.Context, req wire.DeleteBucketRequest) error {
	return f.do(ctx, "delete", req.ID, func() { delete(f.buckets, req.ID) })
}

func (f *fake) GrantAccess(ctx context.Context, req wire.GrantRequest) (g wire.Grant, err error) {
	err = f.do(ctx, "grant", req.Name, func() {
		g.AccountID = f.make(wire.KindAccount, f.accounts, req.Name, req.ID)
		f.keys[g.AccountID] = fmt.Sprintf("key-%d", f.made)
	})
	if err != nil {
		return wire.Grant{AccountID: wire.MadeID(err)}, err
	}
	g.Credentials.S3 = &wire.S3Credentials{AccessKeyID: wire.Secret(g.AccountID), AccessSecretKey: wire.Secret(f.key(g.AccountID))}
	for _, b := range req.Buckets {
		g.Buckets = append(g.Buckets, wire.Bucket{ID: b.ID, Info: f.bucketInfo(b.ID)})
	}
	return g, nil
}

func (f *fake) key(account string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[account]
}

func (f *fake) RevokeAccess(ctx context.Context, req wire.RevokeRequest) error {
	return f.do(ctx, "revoke", req.AccountID, func() { delete(f.accounts, req.AccountID); delete(f.keys, req.AccountID) })
}

func (f *fake) of(kind wire.Kind) map[string]string {
	if kind == wire.KindAccount {
		return f.accounts
	}
	return f.buckets
}

func (f *fake) DeleteByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) error {
	return f.do(ctx, "delete-by-name", req.Name, func() {
		maps.DeleteFunc(f.of(kind), func(_, name string) bool { return name == req.Name })
	})
}

func (f *fake) FindByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) (items []wire.Item, err error) {
	err = f.do(ctx, "find", req.Name, func() {
		for id, name := range f.of(kind) {
			if name == req.Name {
				items = append(items, wire.Item{ID: id, Name: name, Owner: name})
			}
		}
	})
	return items, err
}

func (f *fake) List(context.Context, wire.Kind, wire.ListRequest) (wire.Page, error) {
	return wire.Page{}, wire.ErrNotOffered
}
