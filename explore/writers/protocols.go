package writers

import (
	"fmt"
	"strings"

	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

var budgetNames = [budgets]string{
	"stage", "unstage", "detach", "sweep", "crash", "lost", "late", "false", "child", "puff", "over", "reboot", "rename",
	"other", "silent", "expire",
}

// allow makes a budget out of words such as "stage=2 crash=1". It panics on one that it does not know: they are written
// in this package.
func allow(words string) (left [budgets]uint8) {
	for _, word := range strings.Fields(words) {
		name, count, _ := strings.Cut(word, "=")
		b := -1
		for i, n := range budgetNames {
			if n == name {
				b = i
			}
		}
		var n uint8
		if _, err := fmt.Sscan(count, &n); err != nil || b < 0 || n > 15 {
			panic("writers: no such budget: " + word)
		}
		left[b] = n
	}
	return left
}

func bound(c *class) string {
	s := []string{fmt.Sprintf("nodes=%d", c.nodes)}
	for b, n := range c.left {
		if n > 0 {
			s = append(s, fmt.Sprintf("%s=%d", budgetNames[b], n))
		}
	}
	return strings.Join(s, " ")
}

// shipped gives the settings of the shipped protocol, each small enough to be searched as a whole.
func shipped() (cs []class) {
	for _, x := range []struct {
		name, what string
		nodes      int
		block      bool
		policy     exclusive.Policy
		start      func(*world)
		left       string
	}{
		{name: "two-stagers", what: "two nodes stage at the same moment, one is taken for dead twice", left: "stage=2 unstage=1 silent=2"},
		{name: "crashes", what: "plugins die at any step, twice", left: "stage=2 unstage=1 silent=1 crash=2"},
		{name: "lost-replies", what: "a reply is lost, whether or not the request was done", left: "stage=2 unstage=1 silent=1 lost=1"},
		{name: "late", what: "a request takes effect long after its caller has given up", left: "stage=2 silent=1 late=1 sweep=1"},
		{name: "mkfs", what: "a mkfs outlives its caller, and its plugin", left: "stage=2 silent=1 child=1 crash=1"},
		{name: "false-fence", what: "a fence is reported and not set, a mkfs goes on", left: "stage=2 silent=1 false=1 child=1"},
		{name: "two-plugins", what: "an old plugin wakes beside the new one", left: "stage=1 unstage=1 detach=1 silent=1 over=1 puff=6"},
		{name: "two-plugins-stage", what: "an old plugin wakes beside the new one, both stage", left: "stage=2 silent=1 over=1 puff=5 child=1"},
		{name: "reboot", what: "a machine reboots", left: "stage=2 unstage=1 silent=1 reboot=1"},
		{name: "rename", what: "a machine gets the node name of another", left: "stage=2 detach=1 silent=1 rename=1"},
		{name: "detach", what: "the orchestrator detaches a node that is alive", left: "stage=1 detach=1 sweep=1 silent=1 crash=1 reboot=1"},
		{name: "block", what: "a block device: nothing is formatted", block: true, left: "stage=2 unstage=1 silent=1 crash=1"},
		{name: "refuse", what: "the policy never takes over", policy: exclusive.Refuse, left: "stage=2 unstage=1 crash=1 reboot=1"},
		{name: "three-nodes", what: "three nodes, two take-overs", nodes: 3, left: "stage=3 silent=2"},
		{name: "three-nodes-crashes", what: "three nodes, two crashes, a reboot, a frozen node", nodes: 3, left: "stage=3 silent=1 crash=2 reboot=1"},
		{name: "opaque", what: "a driver that maps and exposes in one call holds it", start: opaque, left: "stage=1 unstage=1 sweep=1 silent=1 reboot=1"},
	} {
		cs = append(cs, class{
			name: x.name, what: x.what, nodes: max(2, x.nodes), format: !x.block, policy: x.policy, start: x.start, left: allow(x.left),
		})
	}
	return cs
}

// opaque: the first node is in a call of a guarded driver, whose client nobody has recorded.
func opaque(w *world) {
	w.hold.State, w.hold.Who, w.hold.Formatted = exclusive.Opaque, w.who(0), true
	w.data, w.touched = used, 1
	w.attach(0)
	w.nodes[0].dev[0].exposed, w.nodes[0].dev[0].dirty = true, true
}

// wide allows more of whatever is allowed.
func wide(c class) class {
	for b := range c.left {
		if c.left[b] > 0 && c.left[b] < 3 {
			c.left[b]++
		}
	}
	return c
}

// Protocols gives every setting: the shipped protocol's first, then those of others.
func Protocols() (ps []search.Protocol) {
	for _, c := range append(shipped(), baselines()...) {
		p := search.Protocol{Name: "writers/" + c.name, Kind: "shipped", Capability: fmt.Sprintf("%d nodes", c.nodes), What: c.what, Bound: bound(&c)}
		if c.base != nil {
			p.Kind, p.Name = "baseline", "writers/other/"+c.name
		}
		p.New = func(more bool) search.Teller {
			c := c
			if more {
				c = wide(c)
			}
			return newModel(&c)
		}
		ps = append(ps, p)
	}
	return ps
}
