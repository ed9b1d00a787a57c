package writers

import (
	"context"
	"testing"

	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

var bg = context.Background()

// Doors that do something else than they should.
type (
	bentRegistry struct {
		exclusive.Registry
		load func(h exclusive.Hold) exclusive.Hold
		swap func(h *exclusive.Hold)
		list func(f exclusive.Fence) bool // false: not listed
	}
	bentDevice struct {
		exclusive.Device
		reach func() bool // false: not waited for
		unmap func(m exclusive.Mapping) bool
	}
	bentFencer struct {
		exclusive.Fencer
		fence  func(i *exclusive.Instance) bool
		fenced func() bool // true: not asked
	}
	byName struct {
		exclusive.Registry
		t *turn
	}
)

func (b bentRegistry) Load(ctx context.Context, v string) (exclusive.Hold, error) {
	h, err := b.Registry.Load(ctx, v)
	if b.load != nil {
		h = b.load(h)
	}
	return h, err
}

func (b bentRegistry) Swap(ctx context.Context, h exclusive.Hold) (string, error) {
	if b.swap != nil {
		b.swap(&h)
	}
	return b.Registry.Swap(ctx, h)
}

func (b bentRegistry) List(ctx context.Context, v string, f exclusive.Fence) error {
	if b.list != nil && !b.list(f) {
		return nil
	}
	return b.Registry.List(ctx, v, f)
}

func (b bentDevice) Reach(ctx context.Context, m exclusive.Mapping, e uint64) error {
	if b.reach != nil && !b.reach() {
		return nil
	}
	return b.Device.Reach(ctx, m, e)
}

func (b bentDevice) Unmap(ctx context.Context, m exclusive.Mapping) error {
	if b.unmap != nil && !b.unmap(m) {
		return nil
	}
	return b.Device.Unmap(ctx, m)
}

func (b bentFencer) Fence(ctx context.Context, i exclusive.Instance) (uint64, error) {
	if b.fence != nil && !b.fence(&i) {
		return 0, nil
	}
	return b.Fencer.Fence(ctx, i)
}

func (b bentFencer) Fenced(ctx context.Context, i exclusive.Instance) (bool, error) {
	if b.fenced != nil && b.fenced() {
		return true, nil
	}
	return b.Fencer.Fenced(ctx, i)
}

func (b byName) Listed(_ context.Context, _, _ string, after exclusive.Instance) (f exclusive.Fence, _ error) {
	b.t.offer()
	for _, x := range b.t.w.list {
		if x.Instance > after && x.Who.Node == b.t.w.who(b.t.me).Node && (f.Instance == "" || x.Instance < f.Instance) {
			f = x
		}
	}
	b.t.say("looks through the list of fences by its node's name: client ", string(f.Instance))
	return f, nil
}

func registry(f func(t *turn) bentRegistry) func(*turn, *exclusive.Manager) {
	return func(t *turn, m *exclusive.Manager) {
		b := f(t)
		b.Registry = t
		m.Registry = b
	}
}

func dev(f func(t *turn) bentDevice) func(*turn, *exclusive.Manager) {
	return func(t *turn, m *exclusive.Manager) {
		b := f(t)
		b.Device = t
		m.Device = b
	}
}

func fencer(f func(t *turn) bentFencer) func(*turn, *exclusive.Manager) {
	return func(t *turn, m *exclusive.Manager) {
		b := f(t)
		b.Fencer = t
		m.Fencer = b
	}
}

// nothing is a call that is not made.
func (t *turn) nothing(what string) bool {
	t.offer()
	t.say(what, " (left out)")
	return false
}

type mutant struct {
	bend  bend
	left  string
	nodes int
	block bool
	want  search.Fault
	// alone: it is the world that does what the rule rules out, so there is no clean run to compare with.
	alone bool
}

func mutants() []mutant {
	type memo = exclusive.Memo
	return []mutant{
		{left: "stage=2 silent=1", want: search.TwoWriters, bend: bend{name: "compare epochs instead of the whole hold", epoch: true,
			doors: registry(func(t *turn) bentRegistry {
				return bentRegistry{swap: func(h *exclusive.Hold) {
					if h.Rev = "old"; t.w.hold.Epoch == t.w.actor[t.me].memo.Hold.Epoch {
						h.Rev = t.w.hold.Rev
					}
				}}
			})}},
		{left: "stage=2 silent=1", want: search.TwoWriters, bend: bend{name: "fence after the claim",
			doors: fencer(func(t *turn) bentFencer {
				return bentFencer{fenced: func() bool { return !t.nothing("reads the blocklist back") }, fence: func(i *exclusive.Instance) bool {
					t.w.fly = flight{op: flyFence, fence: exclusive.Fence{Instance: *i}}
					return t.nothing("fences")
				}}
			})}},
		{left: "stage=2 silent=1 reboot=1 unstage=1", want: search.TwoWriters, bend: bend{name: "fencer written over the fenced",
			doors: registry(func(t *turn) bentRegistry {
				return bentRegistry{swap: func(h *exclusive.Hold) {
					if h.State == exclusive.Fencing {
						h.Who = t.w.who(t.me)
					}
				}}
			})}},
		{left: "stage=2 silent=1 expire=1", want: search.TwoWriters, alone: true, bend: bend{name: "lift on expiry"}},
		{left: "stage=2 silent=1 rename=1 sweep=1", want: search.TwoWriters, bend: bend{name: "lift by node name",
			doors: func(t *turn, m *exclusive.Manager) { m.Registry = byName{t, t} }}},
		{left: "stage=2 silent=1", want: search.Orphan, bend: bend{name: "forget the fenced list",
			doors: registry(func(t *turn) bentRegistry {
				return bentRegistry{list: func(exclusive.Fence) bool { return t.nothing("lists the fence") }}
			})}},
		{left: "stage=2 silent=1", block: true, want: search.TwoWriters, bend: bend{name: "expose before the instance is recorded",
			memo: func(_ exclusive.Request, before, after memo) memo {
				if before.Map.Device == "" && after.New {
					after.Hold.State, after.Hold.Instance, after.Hold.Formatted = exclusive.Mapped, after.Map.Instance, true
				}
				return after
			}}},
		{left: "stage=2 unstage=1", want: search.Loss, bend: bend{name: "format on a hold that is not blank",
			doors: registry(func(*turn) bentRegistry {
				return bentRegistry{load: func(h exclusive.Hold) exclusive.Hold { h.Formatted = false; return h }}
			})}},
		{left: "stage=2 unstage=1", want: search.Loss, bend: bend{name: "the hold is removed at release",
			doors: registry(func(*turn) bentRegistry {
				return bentRegistry{load: func(h exclusive.Hold) exclusive.Hold {
					h.Formatted = h.Formatted && h.State != exclusive.Free
					return h
				}}
			})}},
		{left: "stage=2 unstage=1", want: search.TwoWriters, bend: bend{name: "release before unmap",
			doors: dev(func(t *turn) bentDevice {
				return bentDevice{unmap: func(m exclusive.Mapping) bool {
					n := t.w.where(t.me)
					t.w.dev(n, m).going = true
					t.w.fly = flight{op: flyUnmap, node: uint8(n), where: m}
					return t.nothing("unmaps, later")
				}}
			})}},
		{left: "stage=2 silent=1 false=2", want: search.TwoWriters, bend: bend{name: "skip the read-back",
			doors: fencer(func(t *turn) bentFencer {
				return bentFencer{fenced: func() bool { return !t.nothing("reads the blocklist back") }}
			})}},
		{left: "stage=2 silent=1", want: search.TwoWriters, bend: bend{name: "skip the barrier",
			doors: dev(func(t *turn) bentDevice {
				return bentDevice{reach: func() bool { return t.nothing("waits for the osdmap") }}
			})}},
		{left: "stage=2 detach=1 silent=1", want: search.TwoWriters, bend: bend{name: "the barrier is not kept",
			doors: registry(func(*turn) bentRegistry { return bentRegistry{swap: func(h *exclusive.Hold) { h.Barrier = 0 }} })}},
		{left: "stage=2 silent=1", want: search.TwoWriters, bend: bend{name: "take over without a fence",
			doors: fencer(func(t *turn) bentFencer {
				return bentFencer{fence: func(*exclusive.Instance) bool { return t.nothing("fences") },
					fenced: func() bool { return !t.nothing("reads the blocklist back") }}
			})}},
		{left: "stage=2 over=1 puff=8 other=1", want: search.Loss, bend: bend{name: "unmap by device number only",
			doors: dev(func(t *turn) bentDevice {
				return bentDevice{unmap: func(m exclusive.Mapping) bool {
					if t.w.nodes[t.w.where(t.me)].dev[m.Device[0]-'0'].foreign {
						t.fault |= search.Loss
						t.say("** another image's device ** ")
					}
					return true
				}}
			})}},
		{left: "stage=1 child=1", want: search.Loss, bend: bend{name: "a mkfs without an answer is begun again beside itself",
			memo: func(_ exclusive.Request, before, after memo) memo {
				after.New = after.New || before.New && after.Map == before.Map && !before.Made
				return after
			}}},
		{left: "stage=2 child=1 crash=1", want: search.Loss, bend: bend{name: "a device that is found is formatted",
			memo: func(_ exclusive.Request, _, after memo) memo {
				after.New = after.New || after.Map.Device != "" && after.Hold.State == exclusive.Mapped
				return after
			}}},
		{left: "stage=2 silent=1", want: search.Stuck, bend: bend{name: "a device of before the claim is recorded under it",
			memo: func(_ exclusive.Request, before, after memo) memo {
				after.New = after.New || before.New && after.Map == before.Map && after.Hold.State == exclusive.Claimed
				return after
			}}},
		{left: "stage=1 unstage=1 over=1 puff=6 detach=1 silent=1", want: search.TwoWriters, bend: bend{name: "lift without a look at the device",
			memo: func(_ exclusive.Request, _, after memo) memo { after.Dead = after.Entry.Instance != ""; return after }}},
		{left: "stage=2 silent=1 unstage=1", want: search.Orphan, bend: bend{name: "lift only once",
			memo: func(_ exclusive.Request, _, after memo) memo {
				if after.Off {
					after.Entry, after.Off, after.Dead = exclusive.Fence{}, false, false
				}
				return after
			}}},
		{left: "stage=3 silent=1 lost=1 crash=1", want: search.Stuck, bend: bend{name: "withdraw only once",
			memo: func(_ exclusive.Request, before, after memo) memo {
				after.Hidden = after.Hidden || before.Hidden && !after.Shown
				return after
			}}},
		{left: "stage=2 over=1 puff=6", want: search.Stuck, bend: bend{name: "a device that is gone is waited for",
			memo: func(_ exclusive.Request, _, after memo) memo { after.Doubt = false; return after }}},
		{left: "stage=2 silent=2", nodes: 3, want: search.Stuck, bend: bend{name: "fence whoever has it mapped now",
			doors: fencer(func(t *turn) bentFencer {
				return bentFencer{fenced: func() bool { return !t.nothing("reads the blocklist back") }, fence: func(i *exclusive.Instance) bool {
					for n := range t.w.nodes {
						for _, d := range t.w.nodes[n].dev {
							if d.inst > *i {
								*i = d.inst
							}
						}
					}
					return true
				}}
			})}},
	}
}

// TestMutants: the explorer finds what goes wrong when a rule is taken out, and the same search is clean with it.
func TestMutants(t *testing.T) {
	for _, mu := range mutants() {
		t.Run(mu.bend.name, func(t *testing.T) {
			t.Parallel()
			c := class{name: mu.bend.name, nodes: max(2, mu.nodes), format: !mu.block, left: allow(mu.left), bend: &mu.bend,
				brief: mu.want&(search.TwoWriters|search.Loss) != 0}
			clean := c
			clean.bend, clean.brief = nil, false
			var states int
			for n := 20_000; ; n *= 4 {
				res := search.Run(bg, newModel(&c), search.Limits{States: n, First: c.brief})
				if res.Counts[mu.want] > 0 {
					states = res.States
					t.Logf("%v in %d steps, %d states, %v", mu.want, len(res.Traces[mu.want]), res.States, res.Took)
					for i, l := range newModel(&c).Story(res.Traces[mu.want]) {
						t.Logf("%3d %s", i+1, l)
					}
					break
				}
				if res.Complete || n > 2_000_000 {
					t.Fatalf("no %v in %d states (complete: %v; %v)", mu.want, res.States, res.Complete, res.Counts)
				}
			}
			if res := search.Run(bg, newModel(&clean), search.Limits{States: states}); !mu.alone && !res.Clean() {
				t.Errorf("the shipped protocol: %v", res.Counts)
			}
		})
	}
}
