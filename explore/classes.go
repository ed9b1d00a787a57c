package explore

import (
	"slices"

	"github.com/custody-storage/custody/provision"
)

// budgetOf makes a budget out of pairs.
func budgetOf(pairs map[budget]uint8) (b [budgets]uint8) {
	for k, n := range pairs {
		b[k] = n
	}
	return b
}

// capabilities are the kinds of driver there are, as far as the protocol can tell them apart.
func capabilities() []class {
	w := func(f func(*provision.Ways)) provision.Ways {
		var v provision.Ways
		f(&v)
		return v
	}
	return []class{
		{name: "template", what: "id follows from the name, ALREADY_EXISTS on repeat, id template", proven: true,
			driver: driver{ids: derived, again: exists}, ways: w(func(v *provision.Ways) { v.Template = true })},
		{name: "template-repeat", what: "id follows from the name, repeat-safe, id template", proven: true,
			driver: driver{ids: derived, again: same}, ways: w(func(v *provision.Ways) { v.Template, v.Repeat = true, true })},
		{name: "template-anew", what: "id follows from the name, a repeat adds a second key, id template", proven: true,
			driver: driver{ids: derived, again: anew}, ways: w(func(v *provision.Ways) { v.Template = true })},
		{name: "repeat", what: "server-assigned id, repeat-safe", proven: true,
			driver: driver{ids: assigned, again: same}, ways: w(func(v *provision.Ways) { v.Repeat = true })},
		{name: "find", what: "server-assigned id, a repeat mints anew, find by name", proven: true,
			driver: driver{ids: assigned, again: anew, mark: true}, ways: w(func(v *provision.Ways) { v.FindByName, v.Mark = true, true })},
		{name: "find-exists", what: "server-assigned id, ALREADY_EXISTS on repeat, find by name", proven: true,
			driver: driver{ids: assigned, again: exists, mark: true}, ways: w(func(v *provision.Ways) { v.FindByName, v.Mark = true, true })},
		{name: "delete-by-name", what: "server-assigned id, a repeat mints anew, delete by name", proven: true,
			driver: driver{ids: assigned, again: anew, mark: true}, ways: w(func(v *provision.Ways) { v.DeleteByName, v.Mark = true, true })},
		{name: "recovery", what: "server-assigned id, repeat-safe, find and delete by name, get", proven: true,
			driver: driver{ids: assigned, again: same, mark: true},
			ways: w(func(v *provision.Ways) {
				v.FindByName, v.DeleteByName, v.Mark, v.Repeat, v.Fetch = true, true, true, true, true
			})},
		{name: "generate", what: "id known before the create, a new one each time, ALREADY_EXISTS on repeat", proven: true,
			driver: driver{ids: generated, again: exists}, ways: w(func(v *provision.Ways) { v.Generate, v.Fetch = true, true })},
		{name: "generate-same", what: "id known before the create, a new one each time, repeat-safe", proven: true,
			driver: driver{ids: generated, again: same}, ways: w(func(v *provision.Ways) { v.Generate = true })},
		{name: "generate-state", what: "id known before the create and the same for a name, makes state", proven: true, stableID: true,
			driver: driver{ids: generated, again: same, state: true}, ways: w(func(v *provision.Ways) { v.Generate = true })},
		{name: "none", what: "server-assigned id, a repeat mints anew, no way to look", proven: true,
			driver: driver{ids: assigned, again: anew}},
	}
}

// shipped gives every setting in which the shipped protocol is tried: kind, capability, bound.
func shipped() (cs []class) {
	type pairs = map[budget]uint8
	few := []string{"template", "find", "delete-by-name", "generate"}
	bounds := []struct {
		name string
		on   []string // capabilities; nil: all
		left pairs
		set  func(*class)
	}{
		{name: "faults", left: pairs{bCrash: 1, bLost: 1, bLate: 1, bWrong: 1, bDelete: 1}},
		{name: "crashes", on: few, left: pairs{bCrash: 2, bLost: 2, bLate: 1, bDelete: 1}},
		{name: "people", left: pairs{bCrash: 1, bLate: 1, bDelete: 1, bForce: 1, bAgain: 1, bWord: 1, bFlip: 1}},
		{name: "retain", on: few, left: pairs{bCrash: 1, bLost: 1, bLate: 1, bDelete: 1, bAgain: 1}, set: func(c *class) { c.keep = true }},
		{name: "caches", on: few, left: pairs{bCrash: 1, bDelete: 1, bStale: 1, bTorn: 1, bLost: 1}},
		{name: "overlap", on: few, left: pairs{bOver: 1, bLate: 1, bDelete: 1}, set: func(c *class) { c.puff, c.stops = 5, c.access }},
		{name: "foreign", left: pairs{bCrash: 1, bLost: 1, bWrong: 1, bDelete: 1}, set: func(c *class) { c.foreign, c.proven = true, false }},
		{name: "static", on: few, left: pairs{bCrash: 1, bLost: 1, bLate: 1, bDelete: 1, bForce: 1}, set: func(c *class) { c.static, c.keep = true, true }},
		{name: "upstream", left: pairs{bCrash: 1, bLost: 1, bLate: 1, bDelete: 1}, set: func(c *class) { c.upstream, c.known = true, true }},
		{name: "reuse", on: []string{"template", "repeat"}, left: pairs{bCrash: 1, bLate: 1, bDelete: 1, bAgain: 1}, set: func(c *class) { c.reuse = true }},
		// Accounts under two incarnations that both go on for ever: a Secret may come to hold what was revoked.
		{name: "twins", on: few, left: pairs{bOver: 1, bLate: 1, bDelete: 1}, set: func(c *class) { c.puff, c.lax = 5, true }},
	}
	for _, b := range bounds {
		for _, access := range []bool{false, true} {
			for _, c := range capabilities() {
				if b.on != nil && !slices.Contains(b.on, c.name) || access && (b.name == "retain" || b.name == "static" || b.name == "reuse") || !access && b.name == "twins" {
					continue // accounts are never retained
				}
				kind := "bucket"
				if access {
					kind = "access"
				}
				c.name = kind + "/" + c.name + "/" + b.name
				c.access, c.ways.Remake = access, access
				c.settle, c.left = 1, budgetOf(b.left)
				if access {
					c.left[bFlip] = 0
				}
				if b.set != nil {
					b.set(&c)
				}
				cs = append(cs, c)
			}
		}
	}
	return cs
}
