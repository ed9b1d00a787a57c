//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

func TestRegistryKeepsAHold(t *testing.T) {
	c, ctx := node(t), t.Context()
	r, volume := c.Registry(), image(t, c).String()
	h, err := r.Load(ctx, volume)
	if err != nil || h != (exclusive.Hold{Volume: volume}) {
		t.Fatalf("no hold yet: %+v, %v", h, err)
	}
	h.State = exclusive.Free
	if h.Rev, err = r.Swap(ctx, h); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Swap(ctx, exclusive.Hold{Volume: volume, State: exclusive.Free}); !errors.Is(err, exclusive.ErrStale) {
		t.Errorf("a second first hold: %v", err)
	}
	next := exclusive.Hold{
		Volume: volume, State: exclusive.Mapped, Who: exclusive.Who{Machine: "m", Node: "n", Boot: "b"},
		Instance: "10.0.0.1:0/7", Epoch: 1 << 60, Fencer: "f", Barrier: 9, Formatted: true, Rev: h.Rev,
	}
	if next.Rev, err = r.Swap(ctx, next); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Load(ctx, volume); err != nil || got != next {
		t.Errorf("loaded %+v, %v; stored %+v", got, err, next)
	}
	if _, err := r.Swap(ctx, h); !errors.Is(err, exclusive.ErrStale) {
		t.Errorf("a swap of the earlier version: %v", err)
	}
	if since, err := r.Since(ctx, volume); err != nil || since.IsZero() {
		t.Errorf("since %v, %v", since, err)
	}

	// Editing the list fails nobody's swap.
	f := exclusive.Fence{Instance: "10.0.0.1:0/7", Who: exclusive.Who{Machine: "m", Node: "n", Boot: "b"}}
	if err := errors.Join(r.List(ctx, volume, f), r.List(ctx, volume, f)); err != nil {
		t.Fatal(err)
	}
	if next.Rev, err = r.Swap(ctx, next); err != nil {
		t.Errorf("a swap after listing: %v", err)
	}
	if err := r.Remove(ctx, h); !errors.Is(err, exclusive.ErrStale) {
		t.Errorf("removal by an earlier version: %v", err)
	}
	if err := r.Remove(ctx, next); err != nil {
		t.Fatal(err)
	}
	if left, err := r.Fences(ctx, volume); err != nil || len(left) != 1 || left[0] != f {
		t.Errorf("a fence that is not lifted went with the hold: %v, %v", left, err)
	}
	// A version that is gone is stale too: no swap brings it back.
	if _, err := r.Swap(ctx, next); !errors.Is(err, exclusive.ErrStale) {
		t.Errorf("a swap of a hold that was removed: %v", err)
	}
	gone := exclusive.Hold{Volume: volume}
	if err := errors.Join(r.Unlist(ctx, volume, f), r.Unlist(ctx, volume, f), r.Remove(ctx, gone), r.Remove(ctx, gone)); err != nil {
		t.Error(err)
	}
}

func TestRegistryListsFences(t *testing.T) {
	c, ctx := node(t), t.Context()
	r, volume := c.Registry(), image(t, c).String()
	if f, err := r.Listed(ctx, volume, "m", ""); err != nil || f.Instance != "" {
		t.Fatalf("no list yet: %v, %v", f, err)
	}
	want := []exclusive.Instance{}
	for n := range 300 { // more than one read gives
		f := exclusive.Fence{Instance: exclusive.Instance(fmt.Sprintf("10.0.0.1:0/%d", 1000+n)), Who: exclusive.Who{Machine: "m", Boot: "b"}}
		if n%3 == 0 {
			f.Who.Machine = "other"
		} else {
			want = append(want, f.Instance)
		}
		if err := r.List(ctx, volume, f); err != nil {
			t.Fatal(err)
		}
	}
	got, after := []exclusive.Instance{}, exclusive.Instance("")
	for len(got) <= len(want) {
		f, err := r.Listed(ctx, volume, "m", after)
		if err != nil {
			t.Fatal(err)
		}
		if f.Instance == "" {
			break
		}
		got, after = append(got, f.Instance), f.Instance
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed %v", got)
	}
}

// TestRegistryOneWinner: of 50 that swap the same version, over two connections, one wins, each round.
func TestRegistryOneWinner(t *testing.T) {
	const racers, rounds = 50, 10
	a, ctx := node(t), t.Context()
	b := open(t, a.config)
	registries := []*Registry{a.Registry(), b.Registry()}
	volume := image(t, a).String()
	h := exclusive.Hold{Volume: volume, State: exclusive.Free}
	for round := range rounds {
		var mu sync.Mutex
		var wg sync.WaitGroup
		winners := []exclusive.Hold{}
		start := make(chan struct{})
		for n := range racers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				mine := h
				mine.State, mine.Who.Node = exclusive.Claimed, fmt.Sprint(n)
				mine.Epoch++
				<-start
				rev, err := registries[n%2].Swap(ctx, mine)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					mine.Rev = rev
					winners = append(winners, mine)
				} else if !errors.Is(err, exclusive.ErrStale) {
					t.Errorf("round %d racer %d: %v", round, n, err)
				}
			}()
		}
		close(start)
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: %d winners", round, len(winners))
		}
		got, err := registries[0].Load(ctx, volume)
		if err != nil || got != winners[0] {
			t.Fatalf("round %d: winner %+v, stored %+v, %v", round, winners[0], got, err)
		}
		h = got
	}
}

// TestRegistryForeign: what this version has not written is left alone.
func TestRegistryForeign(t *testing.T) {
	c, ctx := node(t), t.Context()
	r, i := c.Registry(), image(t, c)
	for _, text := range []string{
		`garbage`, `{}`, `{"format":2,"state":"free"}`, `{"format":1,"state":"weird"}`,
		`{"format":1,"state":"free","lease":"a field of a later version"}`, `{"format":"1"}`,
	} {
		_, err := inPool(ctx, c, "spoil", i.Pool, "", func(io *rados.IOContext) (none, error) {
			return none{}, io.WriteFull(i.hold(), []byte(text))
		})
		if err != nil {
			t.Fatal(err)
		}
		if h, err := r.Load(ctx, i.String()); !errors.Is(err, exclusive.ErrForeign) {
			t.Errorf("%s: %+v, %v", text, h, err)
		}
	}
}

func TestRegistryErrorsAreClear(t *testing.T) {
	c, ctx := node(t), t.Context()
	_, err := c.Registry().Load(ctx, Image{Pool: "nowhere", Name: "a", ID: "1"}.String())
	wantError(t, err, "nowhere", "there is no pool", "load the hold")
	_, err = c.Registry().Load(ctx, "csi-vol-1")
	wantError(t, err, "POOL/NAMESPACE/IMAGE/ID")
	weak := open(t, user(t, map[string]string{"mon": "profile rbd", "osd": "profile rbd-read-only pool=" + embedded.CephPool}))
	_, err = weak.Registry().Swap(ctx, exclusive.Hold{Volume: image(t, c).String(), State: exclusive.Free})
	wantError(t, err, "capability", "docs/ceph-caps.md")
}

// TestRegistryFull: in a full cluster what needs space is an error at once, a hold can still be given back, and all goes
// on when there is space.
func TestRegistryFull(t *testing.T) {
	c, ctx := node(t), t.Context()
	r := c.Registry()
	held := exclusive.Hold{Volume: image(t, c).String(), State: exclusive.Mapped, Who: exclusive.Who{Node: "n"}, Instance: "10.0.0.1:0/7"}
	var err error
	if held.Rev, err = r.Swap(ctx, held); err != nil {
		t.Fatal(err)
	}
	// The OSD holds itself to be full above this part of its store.
	full := func(ratio float64) {
		var orders []map[string]any
		for _, what := range []string{"nearfull", "backfillfull", "full"} {
			orders = append(orders, map[string]any{"prefix": "osd set-" + what + "-ratio", "ratio": ratio})
		}
		if _, err := server.Get(t).Mon(context.Background(), orders...); err != nil {
			t.Error(err)
		}
	}
	defer full(0.95)
	full(0.0000001)
	n := 0
	first := func(ctx context.Context) error {
		n++
		_, err := r.Swap(ctx, exclusive.Hold{Volume: Image{embedded.CephPool, "", "x", fmt.Sprint("x", n)}.String(), State: exclusive.Free})
		return err
	}
	eventually(t, "the cluster to be full", func() bool {
		err = within(t, 5*time.Second, first)
		return err != nil
	})
	wantError(t, err, "the cluster or the pool is full")
	if _, err := r.Swap(ctx, exclusive.Hold{Volume: held.Volume, State: exclusive.Free, Rev: held.Rev}); err != nil {
		t.Errorf("give back: %v", err)
	}
	full(0.95)
	eventually(t, "space", func() bool { return first(ctx) == nil })
}

func TestImages(t *testing.T) {
	c, ctx := node(t), t.Context()
	one, r := image(t, c), c.Registry()
	all, err := r.Images(ctx, one.Pool, "")
	if err != nil || !slices.Contains(all, one) {
		t.Errorf("%v, %v", all, err)
	}
	// The name of another image begins with this.
	if i, err := r.Image(ctx, one.Pool, "", "imag"); !errors.Is(err, ErrNoImage) {
		t.Errorf("%v, %v", i, err)
	}
	if i, err := r.Images(ctx, one.Pool, "a-namespace-that-is-not-there"); err != nil || len(i) > 0 {
		t.Errorf("%v, %v", i, err)
	}
}
