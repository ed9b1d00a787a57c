package driver_test

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

// memory is a storage system in memory, with a gate at each mutation: a test can hold a call there, or
// make it fail.
type memory struct {
	mu       sync.Mutex
	buckets  map[string]bool
	accounts map[string]bool
	running  map[string]int
	overlaps int

	gate func(ctx context.Context, op, name string) error // may be nil
}

func newMemory() *memory {
	return &memory{buckets: map[string]bool{}, accounts: map[string]bool{}, running: map[string]int{}}
}

func (m *memory) Info() wire.Info {
	c := wire.Capabilities{DeleteByName: true, FindByName: true, List: true, CreateRepeatSafe: true, OwnerMark: true}
	return wire.Info{Name: "memory.example.test", Protocols: []wire.Protocol{wire.S3}, Recovery: wire.Recovery{Buckets: c, Accounts: c}}
}

func (m *memory) IDOf(_ wire.Kind, name string) string { return name }
func (m *memory) NameOf(_ wire.Kind, id string) string { return id }

// enter notes overlaps of calls of one name and passes the gate.
func (m *memory) enter(ctx context.Context, op, name string) (func(), error) {
	m.mu.Lock()
	m.running[name]++
	if m.running[name] > 1 {
		m.overlaps++
	}
	m.mu.Unlock()
	leave := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running[name]--
	}
	if m.gate != nil {
		if err := m.gate(ctx, op, name); err != nil {
			leave()
			return func() {}, err
		}
	}
	return leave, nil
}

func (m *memory) put(ctx context.Context, op string, set map[string]bool, name string, there bool) error {
	leave, err := m.enter(ctx, op, name)
	defer leave()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if there {
		set[name] = true
	} else {
		delete(set, name)
	}
	return nil
}

func (m *memory) has(set map[string]bool, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return set[name]
}

func (m *memory) set(kind wire.Kind) map[string]bool {
	if kind == wire.KindAccount {
		return m.accounts
	}
	return m.buckets
}

func info(name string) wire.BucketInfo {
	return wire.BucketInfo{S3: &wire.S3Bucket{BucketID: name, Endpoint: "http://127.0.0.1:1", Region: "r", AddressingStyle: wire.PathStyle}}
}

func (m *memory) CreateBucket(ctx context.Context, req wire.BucketRequest) (wire.Bucket, error) {
	return wire.Bucket{ID: req.Name, Info: info(req.Name)}, m.put(ctx, "create", m.buckets, req.Name, true)
}

func (m *memory) GetBucket(_ context.Context, req wire.GetBucketRequest) (wire.Bucket, error) {
	if !m.has(m.buckets, req.ID) {
		return wire.Bucket{}, status.Error(codes.NotFound, "no such bucket")
	}
	return wire.Bucket{ID: req.ID, Info: info(req.ID)}, nil
}

func (m *memory) DeleteBucket(ctx context.Context, req wire.DeleteBucketRequest) error {
	return m.put(ctx, "delete", m.buckets, req.ID, false)
}

func (m *memory) GrantAccess(ctx context.Context, req wire.GrantRequest) (wire.Grant, error) {
	g := wire.Grant{AccountID: req.Name, Credentials: wire.Credentials{S3: &wire.S3Credentials{AccessKeyID: "AK", AccessSecretKey: "SK"}}}
	for _, b := range req.Buckets {
		g.Buckets = append(g.Buckets, wire.Bucket{ID: b.ID, Info: info(b.ID)})
	}
	return g, m.put(ctx, "grant", m.accounts, req.Name, true)
}

func (m *memory) RevokeAccess(ctx context.Context, req wire.RevokeRequest) error {
	return m.put(ctx, "revoke", m.accounts, req.AccountID, false)
}

func (m *memory) DeleteByName(ctx context.Context, kind wire.Kind, req wire.NameRequest) error {
	return m.put(ctx, "delete by name", m.set(kind), req.Name, false)
}

func (m *memory) FindByName(_ context.Context, kind wire.Kind, req wire.NameRequest) ([]wire.Item, error) {
	if !m.has(m.set(kind), req.Name) {
		return nil, nil
	}
	return []wire.Item{{ID: req.Name, Name: req.Name, Owner: req.Name}}, nil
}

func (m *memory) List(_ context.Context, kind wire.Kind, _ wire.ListRequest) (wire.Page, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var p wire.Page
	for name := range m.set(kind) {
		p.Items = append(p.Items, wire.Item{ID: name, Name: name, Owner: name})
	}
	return p, nil
}
