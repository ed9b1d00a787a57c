package failpoint

import (
	"context"

	"github.com/custody-storage/custody/provision"
)

// Store is a store with points around each request.
func (p *Points) Store(inner provision.Store) provision.Store { return &store{p, inner} }

// Backend is a driver with points around each call.
func (p *Points) Backend(inner provision.Backend) provision.Backend { return &backend{p, inner} }

type store struct {
	points *Points
	inner  provision.Store
}

func (s *store) around(call string) (after func()) {
	s.points.Pass("store." + call + ".before")
	return func() { s.points.Pass("store." + call + ".after") }
}

func (s *store) Load(ctx context.Context, name provision.Name, live bool) (provision.Record, error) {
	if !live {
		return s.inner.Load(ctx, name, live) // from a cache: no request
	}
	defer s.around("load")()
	return s.inner.Load(ctx, name, live)
}

func (s *store) Save(ctx context.Context, r provision.Record) (string, error) {
	call := "save"
	if r.Rev == "" {
		call = "begin"
	}
	defer s.around(call)()
	return s.inner.Save(ctx, r)
}

func (s *store) Owner(ctx context.Context, r provision.Record) (provision.Goal, error) {
	defer s.around("owner")()
	return s.inner.Owner(ctx, r)
}

func (s *store) Serve(ctx context.Context, r provision.Record) error {
	defer s.around("serve")()
	return s.inner.Serve(ctx, r)
}

func (s *store) Free(ctx context.Context, r provision.Record) error {
	defer s.around("free")()
	return s.inner.Free(ctx, r)
}

func (s *store) Drop(ctx context.Context, r provision.Record) error {
	defer s.around("drop")()
	return s.inner.Drop(ctx, r)
}

type backend struct {
	points *Points
	inner  provision.Backend
}

func (b *backend) Ways() provision.Ways { return b.inner.Ways() }

var calls = map[provision.Op]string{
	provision.Generate: "generate", provision.Create: "create", provision.Fetch: "fetch", provision.Find: "find",
	provision.Derive: "derive", provision.Delete: "delete", provision.DeleteByName: "deletebyname",
}

func (b *backend) Do(ctx context.Context, c provision.Call) provision.Answer {
	name := "backend." + calls[c.Op]
	b.points.Pass(name + ".before")
	defer b.points.Pass(name + ".after")
	return b.inner.Do(ctx, c)
}
