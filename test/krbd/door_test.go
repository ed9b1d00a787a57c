//go:build ceph

package krbd

import (
	"context"
	"testing"
	"time"

	"github.com/custody-storage/custody/ceph/mapper"
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/test/krbd/node"
)

// remote is the door to the kernel of a guest. It implements [exclusive.Device].
type remote struct {
	t      *testing.T
	m      *machine
	volume string
	target mapper.Target
}

// doorWithin is longer than the mapper's own deadlines.
const doorWithin = 2 * time.Minute

func (r remote) do(ctx context.Context, o node.Order) (m exclusive.Mapping, err error) {
	ctx, cancel := context.WithTimeout(ctx, doorWithin)
	defer cancel()
	o.Spec, o.Volume, o.Target = r.m.spec, r.volume, r.target
	if err = r.m.Call(ctx, "Node.Device", o, &m); err != nil {
		r.t.Logf("%s on %s: %v", o.Verb, r.m.who.Node, err) // the protocol gives its reason word only
	}
	return m, err
}

func (r remote) Find(ctx context.Context, _ string, i exclusive.Instance) (exclusive.Mapping, error) {
	return r.do(ctx, node.Order{Verb: "find", Instance: i})
}

func (r remote) Other(ctx context.Context, _ string, than exclusive.Instance) (exclusive.Mapping, error) {
	return r.do(ctx, node.Order{Verb: "other", Instance: than})
}

func (r remote) Map(ctx context.Context, _ string) (exclusive.Mapping, error) {
	epoch, err := r.m.cluster.Epoch(ctx)
	if err != nil {
		return exclusive.Mapping{}, err
	}
	return r.do(ctx, node.Order{Verb: "map", Number: epoch})
}

func (r remote) Unmap(ctx context.Context, m exclusive.Mapping) error {
	_, err := r.do(ctx, node.Order{Verb: "unmap", Mapping: m})
	return err
}

func (r remote) Reach(ctx context.Context, m exclusive.Mapping, barrier uint64) error {
	_, err := r.do(ctx, node.Order{Verb: "reach", Mapping: m, Number: barrier})
	return err
}

func (r remote) Format(ctx context.Context, m exclusive.Mapping) error {
	_, err := r.do(ctx, node.Order{Verb: "format", Mapping: m})
	return err
}

func (r remote) Expose(ctx context.Context, m exclusive.Mapping) error {
	_, err := r.do(ctx, node.Order{Verb: "expose", Mapping: m})
	return err
}

func (r remote) Withdraw(ctx context.Context, _ string) error {
	_, err := r.do(ctx, node.Order{Verb: "withdraw"})
	return err
}

func (r remote) grow(ctx context.Context, m exclusive.Mapping) error {
	_, err := r.do(ctx, node.Order{Verb: "grow", Mapping: m})
	return err
}

// device is a volume on a machine.
func (m *machine) device(t *testing.T, volume string, target mapper.Target) remote {
	return remote{t, m, volume, target}
}

func (m *machine) list(t *testing.T, volume string) (all []exclusive.Mapping) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), doorWithin)
	defer cancel()
	must(t, m.Call(ctx, "Node.List", node.Order{Spec: m.spec, Volume: volume}, &all))
	return all
}

// mapped maps a volume without the protocol, until the test ends.
func (m *machine) mapped(t *testing.T, volume string) exclusive.Mapping {
	t.Helper()
	d := m.device(t, volume, mapper.Target{})
	got, err := d.Map(t.Context(), volume)
	must(t, err)
	t.Cleanup(func() {
		if err := d.Unmap(context.Background(), got); err != nil {
			t.Error(err)
		}
	})
	return got
}

// said is evidence that a test makes up.
type said exclusive.Verdict

func (s said) Judge(context.Context, exclusive.Hold) (exclusive.Verdict, error) {
	return exclusive.Verdict(s), nil
}

// expect runs one request by the protocol, over the guest's kernel and the real cluster.
func (r remote) expect(t *testing.T, verb exclusive.Verb, verdict exclusive.Verdict, want exclusive.Kind) exclusive.Memo {
	t.Helper()
	begin := time.Now()
	g := &exclusive.Manager{
		Registry: r.m.cluster.Registry(), Fencer: r.m.cluster.Fencer(), Evidence: said(verdict), Device: r,
		Now: func() time.Duration { return time.Since(begin) }, First: 50 * time.Millisecond, Max: time.Second,
	}
	memo, next := g.Run(t.Context(), exclusive.Request{Verb: verb, Volume: r.volume, Me: r.m.who, Format: !r.target.Block}, exclusive.Memo{})
	if next.Kind != want {
		t.Fatalf("verb %d on %s: %+v, wanted kind %d; hold %+v", verb, r.m.who.Node, next, want, memo.Hold)
	}
	t.Logf("verb %d on %s: %s", verb, r.m.who.Node, time.Since(begin).Round(time.Millisecond))
	return memo
}

// call asks the guest's node.
func call[T any](t *testing.T, m *machine, method string, args any) T {
	t.Helper()
	var reply T
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Call(ctx, "Node."+method, args, &reply); err != nil {
		t.Fatalf("%s on %s: %v", method, m.who.Node, err)
	}
	return reply
}
