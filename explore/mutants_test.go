package explore

import (
	"context"
	"testing"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

// bentStore changes what passes through the door to the API.
type bentStore struct {
	provision.Store
	save func(s provision.Store, r provision.Record) (string, error)
	load func(s provision.Store, live bool) (provision.Record, error)
}

func (b bentStore) Save(ctx context.Context, r provision.Record) (string, error) {
	if b.save != nil {
		return b.save(b.Store, r)
	}
	return b.Store.Save(ctx, r)
}

func (b bentStore) Load(ctx context.Context, n provision.Name, live bool) (provision.Record, error) {
	if b.load != nil {
		return b.load(b.Store, live)
	}
	return b.Store.Load(ctx, n, live)
}

// bentBackend changes what passes through the door to the driver.
type bentBackend struct {
	provision.Backend
	ways func(provision.Ways) provision.Ways
	do   func(b provision.Backend, c provision.Call) provision.Answer
}

func (b bentBackend) Ways() provision.Ways {
	if b.ways != nil {
		return b.ways(b.Backend.Ways())
	}
	return b.Backend.Ways()
}

func (b bentBackend) Do(ctx context.Context, c provision.Call) provision.Answer {
	if b.do != nil {
		return b.do(b.Backend, c)
	}
	return b.Backend.Do(ctx, c)
}

var bg = context.Background()

// saving bends every Save.
func saving(f func(t *turn, s provision.Store, r provision.Record) (string, error)) func(*turn, provision.Store) provision.Store {
	return func(t *turn, s provision.Store) provision.Store {
		return bentStore{Store: s, save: func(s provision.Store, r provision.Record) (string, error) { return f(t, s, r) }}
	}
}

// forgetting drops something from every record that is written.
func forgetting(f func(*provision.Record)) func(*turn, provision.Store) provision.Store {
	return saving(func(_ *turn, s provision.Store, r provision.Record) (string, error) {
		f(&r)
		return s.Save(bg, r)
	})
}

func loading(f func(t *turn, s provision.Store, live bool) (provision.Record, error)) func(*turn, provision.Store) provision.Store {
	return func(t *turn, s provision.Store) provision.Store {
		return bentStore{Store: s, load: func(s provision.Store, live bool) (provision.Record, error) { return f(t, s, live) }}
	}
}

// noTombstone frees the object and then forgets the record, where a tombstone is to be written.
func noTombstone(t *turn, s provision.Store, r provision.Record) (string, error) {
	switch {
	case r.Phase != provision.PhaseReleased:
		return s.Save(bg, r)
	case t.w.obj.here:
		return r.Rev, s.Free(bg, r)
	}
	return "", s.Drop(bg, r)
}

type mutant struct {
	bend    bend
	control *bend  // what the control is bent by, if anything
	on      string // capability
	access  bool
	left    map[budget]uint8
	set     func(*class)
	want    search.Fault
	why     provision.Why // or a stop that nobody has asked for
}

func mutants() []mutant {
	one := func(bs ...budget) map[budget]uint8 {
		m := map[budget]uint8{}
		for _, b := range bs {
			m[b]++
		}
		return m
	}
	return []mutant{
		{on: "template", left: one(bCrash, bForce), want: search.Orphan,
			bend: bend{name: "skip the intent", store: saving(func(t *turn, s provision.Store, r provision.Record) (string, error) {
				if r.Phase == provision.PhaseMaking && r.ID == "" {
					t.door, t.open = true, 1<<oFine
					return r.Rev, nil
				}
				return s.Save(bg, r)
			})}},
		{on: "repeat", left: one(bLate, bDelete), want: search.Orphan,
			bend: bend{name: "a nonce for a process, not for an attempt", mint: func(t *turn) provision.Nonce {
				if mine := t.w.actor[t.me].memo.Mine; mine != "" {
					return mine
				}
				return t.mint()
			}}},
		{on: "template", left: one(bLate, bDelete), set: func(c *class) { c.prompt = true }, want: search.Orphan,
			control: &bend{store: saving(noTombstone)}, // no call lasts so long here, so none is needed
			bend: bend{name: "settle counted from the lead alone", store: saving(noTombstone),
				memo: func(_, m provision.Memo) provision.Memo { m.Open = m.Lead; return m }}},
		{on: "template", left: one(bLate, bDelete), want: search.Orphan,
			bend: bend{name: "finalizer before tombstone: what has no object is finished", store: saving(noTombstone)}},
		{on: "template", left: one(bWrong, bDelete), want: search.Orphan,
			bend: bend{name: "trust INVALID_ARGUMENT: nothing was made", store: forgetting(func(r *provision.Record) { r.Missed = false }),
				memo: func(_, m provision.Memo) provision.Memo { m.Rec.Missed = false; return m }}},
		{on: "template", left: one(bDelete), set: func(c *class) { c.foreign, c.proven = true, false }, want: search.Loss,
			bend: bend{name: "trust ALREADY_EXISTS: it is ours", backend: func(_ *turn, b provision.Backend) provision.Backend {
				return bentBackend{Backend: b, do: func(b provision.Backend, c provision.Call) provision.Answer {
					a := b.Do(bg, c)
					if a.Code == provision.AlreadyExists {
						a = provision.Answer{Code: provision.OK, ID: idOf[theID]}
					}
					return a
				}}
			}}},
		{on: "none", left: one(bLost, bDelete), want: search.Orphan,
			bend: bend{name: "create again on a driver that mints anew", backend: func(_ *turn, b provision.Backend) provision.Backend {
				return bentBackend{Backend: b, ways: func(w provision.Ways) provision.Ways { w.Repeat = true; return w }}
			}}},
		{on: "template", left: one(bStale, bForce, bAgain, bDelete, bCrash), want: search.Loss,
			bend: bend{name: "trust a cached read at delete", store: loading(func(_ *turn, s provision.Store, _ bool) (provision.Record, error) {
				return s.Load(bg, theName, false)
			})}},
		{on: "template", left: one(bOver, bDelete, bAgain), set: func(c *class) { c.reuse, c.puff = true, 4 }, want: search.Loss,
			bend: bend{name: "sweep without the swap", store: saving(func(t *turn, s provision.Store, r provision.Record) (string, error) {
				if r.Phase == provision.PhaseSweeping || r.Phase == provision.PhaseReleased && t.w.intent.Phase == provision.PhaseReleased {
					t.door, t.open = true, 1<<oFine
					return r.Rev, nil
				}
				return s.Save(bg, r)
			})}},
		{on: "find", left: one(bLost, bDelete), want: search.Stuck,
			bend: bend{name: "strays are not kept", store: forgetting(func(r *provision.Record) { r.Strays = "" }),
				memo: func(_, m provision.Memo) provision.Memo { m.Rec.Strays = ""; return m }}},
		{on: "template", left: one(bLost, bCrash, bLate, bDelete), want: search.Orphan,
			bend: bend{name: "doubt is forgotten", store: forgetting(func(r *provision.Record) { r.Doubt = false }),
				memo: func(_, m provision.Memo) provision.Memo { m.Rec.Doubt = false; return m }}},
		{on: "template", access: true, left: one(bLate, bCrash, bDelete, bAgain), want: search.Loss,
			bend: bend{name: "a delete that may be on its way is forgotten", store: forgetting(func(r *provision.Record) { r.Linger = false }),
				memo: func(_, m provision.Memo) provision.Memo { m.Unheard = false; return m }}},
		{on: "template", left: one(bDelete), set: func(c *class) { c.foreign, c.proven = true, false }, want: search.Loss,
			bend: bend{name: "look by a name that proves nothing", store: loading(func(_ *turn, s provision.Store, live bool) (provision.Record, error) {
				r, err := s.Load(bg, theName, live)
				r.Proven = true
				return r, err
			})}},
		{on: "template", left: one(bLate, bDelete), want: search.Orphan,
			bend: bend{name: "the tombstone ends without a last look", store: loading(func(t *turn, s provision.Store, live bool) (provision.Record, error) {
				if t.w.old && t.w.intent.Phase == provision.PhaseReleased {
					t.w.intent, t.w.old = provision.Record{}, false
				}
				return s.Load(bg, theName, live)
			})}},
		{on: "template", left: one(bOver, bDelete), why: provision.WhyOwnerGone,
			bend: bend{name: "the owner is not asked again after the first write", memo: func(_, m provision.Memo) provision.Memo { m.Owned = true; return m }}},
	}
}

func capability(t *testing.T, name string) class {
	t.Helper()
	for _, c := range capabilities() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no capability %q", name)
	return class{}
}

// TestMutants: the explorer finds what goes wrong when a rule is taken out, and the same search is clean with it.
func TestMutants(t *testing.T) {
	for _, mu := range mutants() {
		t.Run(mu.bend.name, func(t *testing.T) {
			c := capability(t, mu.on)
			c.access, c.ways.Remake = mu.access, mu.access
			c.left, c.settle, c.puff = budgetOf(mu.left), 1, 5
			if mu.set != nil {
				mu.set(&c)
			}
			clean := c
			clean.bend = mu.control
			c.bend = &mu.bend
			var states int
			for n := 20_000; ; n *= 4 {
				res := search.Run(bg, newModel(&c), search.Limits{States: n})
				if mu.why != 0 && res.Notes>>mu.why&1 == 1 {
					states = n
					break
				}
				if res.Counts[mu.want] > 0 {
					states = n
					t.Logf("%v in %d steps, %d states", mu.want, len(res.Traces[mu.want]), res.States)
					for i, l := range newModel(&c).Story(res.Traces[mu.want]) {
						t.Logf("%3d %s", i+1, l)
					}
					break
				}
				if res.Complete || n > 2_000_000 {
					t.Fatalf("no %v in %d states (complete: %v; %v)", mu.want, res.States, res.Complete, res.Counts)
				}
			}
			if res := search.Run(bg, newModel(&clean), search.Limits{States: states}); !res.Clean() || mu.why != 0 && res.Notes>>mu.why&1 == 1 {
				t.Errorf("the shipped protocol: %v %b", res.Counts, res.Notes)
				for f, tr := range res.Traces {
					t.Logf("%v", f)
					for i, l := range newModel(&clean).Story(tr) {
						t.Logf("%3d %s", i+1, l)
					}
				}
			}
		})
	}
}
