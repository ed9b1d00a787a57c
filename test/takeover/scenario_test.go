//go:build ceph

package takeover

import (
	"strings"
	"testing"

	"github.com/custody-storage/custody/ceph"
	"github.com/custody-storage/custody/exclusive"
)

// TestForeignLock: scenario 14. A lock of another tool under Ceph's lock name neither keeps a volume from being staged
// and taken over, nor is it touched: the hold is a record of its own.
func TestForeignLock(t *testing.T) {
	f, ctx := fleet(t), t.Context()
	a, b := machine(t, f, "a"), machine(t, f, "b")
	volume, err := f.Volume(ctx, Bare)
	must(t, err)
	i, err := ceph.ParseImage(volume)
	must(t, err)
	locks := func() string {
		t.Helper()
		out, err := f.Ceph.Run(ctx, "rbd", "lock", "ls", i.Spec(), "--format", "json")
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	if _, err := f.Ceph.Run(ctx, "rbd", "lock", "add", i.Spec(), "other-tool"); err != nil {
		t.Fatal(err)
	}
	before := locks()
	if !strings.Contains(before, "other-tool") {
		t.Fatalf("the lock is not there: %s", before)
	}
	task := Task{Volume: volume}
	writer, device, err := Begin(ctx, a, task, 1)
	must(t, err)
	o, err := (&Play{Fleet: f, Owner: a, Taker: b, Task: task, Fate: Alive, Old: writer, Device: device}).Run(ctx)
	must(t, err)
	if o.Lost+o.OldOver > 0 {
		t.Errorf("%+v", o)
	}
	if after := locks(); after != before {
		t.Errorf("the other tool's lock was\n%s and is\n%s", before, after)
	}
	must(t, End(ctx, b, task, o.Writer))
}

// TestHoldDecides: scenarios 4 and 7. Whoever starts a workload elsewhere, and knows nothing of the first, is refused
// with the holder's name as long as nothing is known against it; the holder writes on, and nobody is fenced.
func TestHoldDecides(t *testing.T) {
	f, ctx := fleet(t), t.Context()
	a, b := machine(t, f, "a"), machine(t, f, "b")
	volume, err := f.Volume(ctx, Locked)
	must(t, err)
	task := Task{Volume: volume}
	writer, device, err := Begin(ctx, a, task, 1)
	must(t, err)
	reply, err := b.Expect(ctx, Task{Volume: volume, Verb: exclusive.Stage, Verdict: exclusive.Alive}, exclusive.Refused)
	must(t, err)
	if reply.Hold.Who != a.Who || reply.Why != exclusive.WhyElse.String() {
		t.Errorf("refused with %+v", reply)
	}
	must(t, writer.Await(ctx, Blocks))
	fenced, err := f.cluster.Fencer().Fenced(ctx, device.Instance)
	if err != nil || fenced {
		t.Errorf("fenced %v, %v", fenced, err)
	}
	must(t, End(ctx, a, task, writer))
}
