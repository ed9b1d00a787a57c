package writers

import (
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

// wrong says what is wrong in this very state.
func (w *world) wrong() (f search.Fault) {
	if w.writers() > 1 {
		f |= search.TwoWriters
	}
	if w.data == used {
		for n := range w.nodes {
			for s := range w.nodes[n].dev {
				if d := &w.nodes[n].dev[s]; d.mkfs && !d.foreign && w.accepts(d.inst) {
					f |= search.Loss
				}
			}
		}
	}
	return f
}

// durable judges what the world comes to if every process dies here. It depends on the storage and the kernels alone, so
// each such world is judged once.
func (m *model) durable() search.Fault {
	w := &m.w
	if w.hold == m.base.hold && w.list == m.base.list && w.block == m.base.block && w.nodes == m.base.nodes && w.data == m.base.data {
		return 0
	}
	bare := *w
	for i := range bare.actor {
		bare.drop(i)
	}
	bare.left, bare.old, bare.fly = [budgets]uint8{}, 0, flight{}
	m.key = m.cd.write(m.key[:0], &bare)
	f, ok := m.judged[string(m.key)]
	if !ok {
		was := m.turn
		m.turn = turn{calm: true}
		m.cd.read(m.key, &bare)
		f = m.aftermath(bare)
		m.turn = was
		m.judged[string(m.key)] = f
	}
	return f
}

// verb runs a request to its end and gives what it came to.
func (m *model) verb(w *world, me int, v exclusive.Verb, from uint8) exclusive.Kind {
	w.actor[me] = actor{verb: v, from: from}
	m.after = append(m.after, scene{me, v})
	m.turn.poor = v == exclusive.Unstage
	for range 200 {
		m.turn.door = false
		n := m.step(w, me)
		if m.turn.fault |= w.wrong(); w.actor[me].verb == 0 {
			return n.Kind
		}
		for i := range w.nodes { // what a busy device waits for
			for s := range w.nodes[i].dev {
				w.nodes[i].dev[s].mkfs = w.nodes[i].dev[s].mkfs && n.Kind != exclusive.Wait
			}
		}
	}
	return exclusive.Wait
}

// aftermath lets each node alone go on, and tells the first thing that goes wrong.
func (m *model) aftermath(from world) (f search.Fault) {
	scene := func(play func(w *world) search.Fault) bool {
		w := from
		m.turn.fault, m.turn.severed = 0, false
		m.after = m.after[:0]
		f = play(&w) | m.turn.fault
		return f != 0
	}
	if scene(m.told) || scene(m.swept) {
		return f
	}
	for n := range max(1, int(from.touched)) {
		if scene(func(w *world) search.Fault { return m.alone(w, n) }) {
			return f
		}
	}
	scene(func(w *world) search.Fault {
		h := w.hold
		if h.Who.Machine == "" || w.opaque() >= 0 || m.verb(w, controller, exclusive.Detach, h.Who.Node[0]-'1') == exclusive.Done && w.hold.State == exclusive.Free {
			return 0
		}
		return search.Stuck
	})
	return f
}

// alone lets one node have the volume and give it back.
func (m *model) alone(w *world, n int) search.Fault {
	if o := w.opaque(); o >= 0 {
		served := w.serves(o)
		if m.verb(w, n, exclusive.Stage, 0) != exclusive.Refused || w.serves(o) != served {
			return search.Stuck
		}
		if o != n { // an admin turns the machine off and says so
			w.nodes[o].dev = [slots]device{}
			m.turn.severed = true
		} else if m.verb(w, n, exclusive.Unstage, 0) != exclusive.Done {
			return search.Stuck
		}
	}
	if m.verb(w, n, exclusive.Stage, 0) != exclusive.Done || !w.serves(n) {
		return search.Stuck // nobody can have it
	}
	if f := m.told(w); f != 0 {
		return f
	}
	if m.verb(w, n, exclusive.Unstage, 0) != exclusive.Done || w.hold.State != exclusive.Free {
		return search.Stuck
	}
	return m.swept(w)
}

// opaque gives the node on which a guarded driver has the volume, or -1.
func (w *world) opaque() int {
	if h := w.hold; h.State == exclusive.Opaque && h.Who.Boot == bootOf[w.nodes[h.Who.Machine[0]-'1'].boot] {
		return int(h.Who.Machine[0] - '1')
	}
	return -1
}

// serves tells whether the volume can be used on that node.
func (w *world) serves(n int) bool {
	for s := range w.nodes[n].dev {
		d := &w.nodes[n].dev[s]
		if d.exposed && w.opaque() == n {
			return true
		}
		if d.exposed && w.hold.State == exclusive.Mapped && w.hold.Instance == d.inst && w.accepts(d.inst) {
			return true
		}
	}
	return false
}

// told finds an owner that Check tells the wrong thing. Whoever is told that the volume is its own must be able to write.
func (m *model) told(from *world) search.Fault {
	for n := range int(from.touched) {
		exposed, serves := false, from.serves(n)
		for _, d := range from.nodes[n].dev {
			exposed = exposed || d.exposed
		}
		if !exposed {
			continue
		}
		w := *from
		k := m.verb(&w, n, exclusive.Check, 0)
		if k != exclusive.Done && k != exclusive.Gone || (k == exclusive.Done) != serves {
			return search.Stuck
		}
	}
	return 0
}

// swept lets every node sweep; then no fence may be left, nor a device that the hold does not name.
func (m *model) swept(w *world) (f search.Fault) {
	if w.hold.State == exclusive.Fencing { // whoever wants the volume carries on first
		return 0
	}
	for n := range int(w.touched) {
		if m.verb(w, n, exclusive.Sweep, 0) != exclusive.Done {
			f |= search.Stuck
		}
	}
	for _, e := range w.block {
		if e.inst != "" && !e.adrift {
			f |= search.Orphan
		}
	}
	for _, x := range w.list {
		if x.Instance != "" && x.Instance != w.hold.Instance { // one for the present owner goes after it
			f |= search.Orphan
		}
	}
	for n := range w.nodes {
		for _, d := range w.nodes[n].dev {
			if d.inst != "" && w.opaque() != n && (w.hold.State != exclusive.Mapped || w.hold.Instance != d.inst) {
				f |= search.Orphan
			}
		}
	}
	return f
}

// scene is one request of an aftermath.
type scene struct {
	me   int
	verb exclusive.Verb
}

// ending tells what the aftermath of the present state comes to, if it comes to anything.
func (m *model) ending() (lines []string) {
	m.judged = map[string]search.Fault{}
	m.base = world{} // not what it was
	if m.durable() == 0 {
		return nil
	}
	for _, s := range m.after {
		lines = append(lines, "if every process dies here: "+m.w.name(s.me)+" is then asked for "+verbWords[s.verb])
	}
	return lines
}
