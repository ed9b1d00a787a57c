package failpoint

import (
	"context"
	"strconv"
	"sync"

	"github.com/custody-storage/custody/provision"
)

// WithoutIntents is the control: the store of an orchestrator that writes down
// nothing before it calls. It has all of the protocol but the record's durability:
// the record is in this process's memory and dies with it. Where it knows of none
// it believes what upstream's sidecar believes: an object that is being deleted and
// shows no id was never provisioned, so it is let go.
func WithoutIntents(inner provision.Store) provision.Store {
	return &forgetful{inner: inner, records: map[provision.Name]provision.Record{}}
}

type forgetful struct {
	inner provision.Store

	mu      sync.Mutex
	records map[provision.Name]provision.Record
	rev     int
}

func (f *forgetful) Load(ctx context.Context, name provision.Name, live bool) (provision.Record, error) {
	seen, err := f.inner.Load(ctx, name, live)
	if err != nil {
		return seen, err
	}
	r := f.get(name)
	r.Name = name
	r.Goal, r.Bound, r.Other, r.Static, r.Given, r.Shown = seen.Goal, seen.Bound, seen.Other, seen.Static, seen.Given, seen.Shown
	if r.Rev != "" {
		return r, nil
	}
	r.Proven = seen.Proven
	if r.Goal == provision.GoalDelete && r.Bound && r.Given == "" {
		if err := f.inner.Free(ctx, seen); err != nil {
			return r, err
		}
		r.Bound = false
	}
	return r, nil
}

func (f *forgetful) get(name provision.Name) provision.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.records[name]
}

func (f *forgetful) Save(_ context.Context, r provision.Record) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records[r.Name].Rev != r.Rev {
		return "", provision.ErrStale
	}
	f.rev++
	r.Rev = strconv.Itoa(f.rev)
	f.records[r.Name] = r
	return r.Rev, nil
}

func (f *forgetful) Owner(ctx context.Context, r provision.Record) (provision.Goal, error) {
	return f.inner.Owner(ctx, r)
}

func (f *forgetful) Serve(ctx context.Context, r provision.Record) error {
	return f.inner.Serve(ctx, r)
}

func (f *forgetful) Free(ctx context.Context, r provision.Record) error { return f.inner.Free(ctx, r) }

func (f *forgetful) Drop(_ context.Context, r provision.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.records, r.Name)
	return nil
}
