//go:build ceph

package ceph

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/exclusive"
)

func TestHeart(t *testing.T) {
	c, ctx := node(t), t.Context()
	who := exclusive.Who{Machine: "machine-1", Node: "n1", Boot: "b1"}
	beats := c.Beats(embedded.CephPool, "")
	mine := func() Beat {
		t.Helper()
		all, err := beats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return all[who.Machine]
	}
	h := c.Heart(embedded.CephPool, "", who)
	for n := range uint64(3) {
		if err := h.Beat(ctx); err != nil {
			t.Fatal(err)
		}
		if b := mine(); b != (Beat{"n1", "b1", n + 1}) {
			t.Errorf("beat %d: %+v", n, b)
		}
	}
	// A later process of the same boot goes on counting: a counter that began anew could stand still to an observer.
	if err := c.Heart(embedded.CephPool, "", who).Beat(ctx); err != nil {
		t.Fatal(err)
	}
	if b := mine(); b.Count != 4 {
		t.Errorf("after a restart: %+v", b)
	}
	// Names that begin with ours are others.
	if err := c.Heart(embedded.CephPool, "", exclusive.Who{Machine: "machine-10", Boot: "x"}).Beat(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.Beat(ctx); err != nil {
		t.Error(err)
	}
	twin := c.Heart(embedded.CephPool, "", exclusive.Who{Machine: who.Machine, Node: "copy", Boot: "b2"})
	if err := twin.Beat(ctx); err != nil { // it can't know better: the machine may have rebooted
		t.Error(err)
	}
	err := h.Beat(ctx)
	if !errors.Is(err, ErrTwin) {
		t.Errorf("a machine with the same id: %v", err)
	}
	wantError(t, err, "copy", "machine-1")
	if err := errors.Join(c.Forget(ctx, embedded.CephPool, "", who.Machine), c.Forget(ctx, embedded.CephPool, "", who.Machine)); err != nil {
		t.Error(err)
	}
	if b := mine(); b != (Beat{}) {
		t.Errorf("forgotten: %+v", b)
	}
}

// TestHeartStops: the beat of a machine stops, and another machine sees that.
func TestHeartStops(t *testing.T) {
	c := node(t)
	who := exclusive.Who{Machine: "machine-2", Node: "n2", Boot: "b1"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begin := time.Now()
	e := &Evidence{
		Beats: c.Beats(embedded.CephPool, ""), Silence: time.Second, Gap: 500 * time.Millisecond,
		Now: func() time.Duration { return time.Since(begin) },
	}
	h := c.Heart(embedded.CephPool, "", who)
	if err := h.Beat(ctx); err != nil {
		t.Fatal(err)
	}
	go h.Run(ctx, 50*time.Millisecond, func(err error) { t.Error(err) })
	judge := func(who exclusive.Who) exclusive.Verdict {
		t.Helper()
		v, err := e.Judge(t.Context(), exclusive.Hold{Who: who})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for time.Since(begin) < 1500*time.Millisecond {
		if v := judge(who); v != exclusive.Alive {
			t.Fatalf("verdict %d while it beats", v)
		}
		time.Sleep(100 * time.Millisecond)
	}
	reborn := who
	reborn.Boot = "b0"
	if v := judge(reborn); v != exclusive.Reborn {
		t.Errorf("verdict %d on an earlier boot", v)
	}
	stop()
	eventually(t, "silence", func() bool { return judge(who) == exclusive.Silent })
}
