package writers

import (
	"math/bits"

	"github.com/custody-storage/custody/exclusive"
)

// codec turns worlds into bytes and back. States that nobody can tell apart are one state: clients are numbered in the
// order in which they came; an osdmap epoch is known only by how many fences before it some OSD has not heard of; a
// boot is the present one or an earlier one; a version is the present one or an old one; what the next read overwrites
// is not kept.
type codec struct {
	buf    []byte
	count  bool   // first pass: see what there is
	insts  uint64 // clients met
	epochs uint32 // of entries that are not firm
	w      *world
	// epoch: holds are told apart by their epochs too (a mutation).
	epoch bool
	base  bool // a baseline
}

func (c *codec) byte(b uint8) { c.buf = append(c.buf, b) }

func flags(bs ...bool) (m uint8) {
	for i, b := range bs {
		if b {
			m |= 1 << i
		}
	}
	return m
}

func flag(m uint8, i int) bool { return m>>i&1 == 1 }

func (c *codec) inst(i exclusive.Instance) uint8 {
	n := num(i)
	if n == 0 {
		return 0
	}
	if c.count {
		c.insts |= 1 << n
		return 0
	}
	r := bits.OnesCount64(c.insts&(1<<n-1)) + 1
	if r > 15 {
		panic("writers: more than 15 clients")
	}
	return uint8(r)
}

func (c *codec) when(e uint64) uint8 { return uint8(bits.OnesCount32(c.epochs & (2<<e - 1))) }

func (c *codec) who(h exclusive.Who) uint8 {
	if h.Machine == "" {
		return 0
	}
	m, past := uint8(controller), uint8(0)
	if h.Machine != "c" {
		m = h.Machine[0] - '1'
		if h.Boot != bootOf[c.w.nodes[m].boot] {
			past = 1
		}
	}
	name := uint8(controller)
	if h.Node != "c" {
		name = h.Node[0] - '1'
	}
	return 1 + m + past<<2 + name<<3
}

func (c *codec) hold(h *exclusive.Hold) {
	c.byte(uint8(h.State) | flags(h.Formatted)<<3)
	c.byte(c.who(h.Who))
	c.byte(c.inst(h.Instance) | c.when(h.Barrier)<<4)
	if c.epoch {
		c.byte(uint8(min(7, c.w.hold.Epoch-h.Epoch)))
	}
}

func (c *codec) actor(a *actor) {
	m := &a.memo
	h := &m.Hold
	// A version matters only as long as something may be compared with it.
	rev := h.Rev
	if !m.Fresh {
		rev = c.w.hold.Rev
	}
	same := m.Fresh && *h == c.w.hold
	fenced := m.Fenced != "" && m.Fenced == h.Instance
	judged := m.Judged != "" && m.Judged == rev
	c.byte(uint8(a.verb) | flags(m.Fresh, same, m.Owed != "", m.Entry.Instance != "", m.Past != "")<<3)
	c.byte(flags(m.New, m.Cleared, m.Sought, m.Reached, m.Made, m.Shown, m.Hidden, m.Lifted))
	c.byte(flags(m.Walked, m.Claim != "" && m.Claim == rev, m.Fresh && h.Rev == c.w.hold.Rev, judged,
		m.Listed != "" && m.Listed == h.Instance, fenced, m.Seen != "" && m.Seen == h.Instance, m.Why != 0))
	v := uint8(0)
	if judged {
		v = uint8(m.Verdict)
	}
	b := uint64(0)
	if fenced {
		b = m.Barrier
	}
	c.byte(v | a.from<<3 | c.when(b)<<5)
	d := uint8(0)
	if m.Map.Device != "" {
		d = m.Map.Device[0] - '0' + 1
	}
	c.byte(d | flags(m.Doubt)<<2 | c.inst(m.Map.Instance)<<4)
	switch {
	case !m.Fresh:
		c.byte(c.inst(h.Instance))
	case !same:
		c.hold(h)
	}
	if m.Owed != "" {
		c.byte(c.inst(m.Owed))
		c.byte(c.who(m.OwedWho))
	}
	if m.Entry.Instance != "" {
		c.byte(c.inst(m.Entry.Instance))
		c.byte(c.who(m.Entry.Who) | flags(m.Dead, m.Off)<<6)
	}
	if m.Past != "" {
		c.byte(c.inst(m.Past))
	}
}

// write appends the world to buf.
func (c *codec) write(buf []byte, w *world) []byte {
	c.w, c.buf, c.insts, c.epochs, c.count = w, buf, 0, 0, true
	for _, e := range w.block {
		if e.inst != "" && !e.firm {
			c.epochs |= 1 << e.epoch
		}
	}
	c.world(w)
	c.buf, c.count = buf, false
	c.world(w)
	return c.buf
}

func (c *codec) world(w *world) {
	for i := 0; i < len(w.left); i += 2 {
		b := w.left[i]
		if i+1 < len(w.left) {
			b |= w.left[i+1] << 4
		}
		c.byte(b)
	}
	c.hold(&w.hold)
	blocks, lists := uint8(0), uint8(0)
	for _, e := range w.block {
		if e.inst != "" {
			blocks++
		}
	}
	for _, f := range w.list {
		if f.Instance != "" {
			lists++
		}
	}
	c.byte(blocks | lists<<4)
	for _, e := range w.block[:blocks] {
		c.byte(c.inst(e.inst) | flags(e.firm, e.adrift, e.brief)<<4)
		if !e.firm {
			c.byte(c.when(e.epoch))
		}
	}
	for _, f := range w.list[:lists] {
		c.byte(c.inst(f.Instance))
		c.byte(c.who(f.Who))
	}
	c.byte(uint8(w.data) | w.touched<<2 | w.old<<4)
	for i := range w.nodes {
		n := &w.nodes[i]
		has := uint8(0)
		for s, d := range n.dev {
			if d.inst != "" || d.foreign {
				has |= 1 << s
			}
		}
		c.byte(n.name | has<<2)
		for _, d := range n.dev {
			if d.inst != "" || d.foreign {
				c.byte(c.inst(d.inst) | c.when(d.seen)<<4)
				c.byte(flags(d.exposed, d.dirty, d.mkfs, d.foreign, d.going))
			}
		}
	}
	f := w.fly
	if f.op == flySwap && f.hold.Rev != w.hold.Rev {
		f = flight{} // it will find the hold changed
	}
	at := uint8(0)
	if f.where.Device != "" {
		at = f.where.Device[0] - '0' + 1
	}
	c.byte(uint8(f.op) | f.node<<3 | at<<5)
	switch f.op {
	case flySwap:
		c.hold(&f.hold)
	case flyFence, flyLift, flyList, flyUnlist:
		c.byte(c.inst(f.fence.Instance))
		c.byte(c.who(f.fence.Who))
	case flyUnmap:
		c.byte(c.inst(f.where.Instance))
	}
	on := uint8(0)
	for i := range w.actor {
		if w.actor[i].verb != 0 {
			on |= 1 << i
		}
	}
	c.byte(on)
	for i := range w.actor {
		switch a := &w.actor[i]; {
		case a.verb == 0:
		case c.base:
			c.memory(a)
		default:
			c.actor(a)
		}
	}
}

func (c *codec) next() uint8 {
	b := c.buf[0]
	c.buf = c.buf[1:]
	return b
}

func (c *codec) readInst(i uint8) exclusive.Instance {
	c.w.insts = max(c.w.insts, i)
	return instOf[i]
}

func (c *codec) readWho() exclusive.Who {
	b := c.next() & 63
	if b == 0 {
		return exclusive.Who{}
	}
	b--
	return exclusive.Who{Machine: machineOf[b&3], Node: nameOf[b>>3], Boot: bootOf[2-b>>2&1]}
}

const (
	presentRev   = 10 // older ones: below, one for each actor
	presentEpoch = 100
)

func (c *codec) readHold(h *exclusive.Hold) {
	b := c.next()
	h.Volume, h.State, h.Formatted = volume, exclusive.State(b&7), flag(b, 3)
	h.Who = c.readWho()
	b = c.next()
	h.Instance, h.Barrier = c.readInst(b&15), uint64(b>>4)
	if c.epoch {
		h.Epoch = presentEpoch - uint64(c.next())
	}
}

func (c *codec) readActor(i int, a *actor) {
	m := &a.memo
	b := c.next()
	a.verb = exclusive.Verb(b & 7)
	same, owed, entry, past := flag(b, 4), flag(b, 5), flag(b, 6), flag(b, 7)
	m.Fresh = flag(b, 3)
	b = c.next()
	m.New, m.Cleared, m.Sought, m.Reached = flag(b, 0), flag(b, 1), flag(b, 2), flag(b, 3)
	m.Made, m.Shown, m.Hidden, m.Lifted = flag(b, 4), flag(b, 5), flag(b, 6), flag(b, 7)
	k := c.next()
	m.Walked = flag(k, 0)
	if flag(k, 7) {
		m.Why = exclusive.WhyDoor
	}
	b = c.next()
	a.from, m.Verdict = b>>3&3, exclusive.Verdict(b&7)
	if flag(k, 5) {
		m.Barrier = uint64(b >> 5)
	}
	b = c.next()
	m.Doubt = flag(b, 2)
	if d := b & 3; d != 0 {
		m.Map = exclusive.Mapping{Device: devOf[d-1], Volume: volume, Instance: c.readInst(b >> 4)}
	}
	h := &m.Hold
	switch {
	case !m.Fresh:
		h.Instance = c.readInst(c.next())
	case same:
		*h = c.w.hold
	default:
		c.readHold(h)
	}
	rev := revOf[i+1]
	if flag(k, 2) || !m.Fresh {
		rev = c.w.hold.Rev
	}
	if m.Fresh {
		h.Rev = rev
	}
	if flag(k, 1) {
		m.Claim = rev
	}
	if flag(k, 3) {
		m.Judged = rev
	}
	if flag(k, 4) {
		m.Listed = h.Instance
	}
	if flag(k, 5) {
		m.Fenced = h.Instance
	}
	if flag(k, 6) {
		m.Seen = h.Instance
	}
	if owed {
		m.Owed = c.readInst(c.next())
		m.OwedWho = c.readWho()
	}
	if entry {
		m.Entry.Instance = c.readInst(c.next())
		m.Dead, m.Off = flag(c.buf[0], 6), flag(c.buf[0], 7)
		m.Entry.Who = c.readWho()
	}
	if past {
		m.Past = c.readInst(c.next())
	}
}

// read makes a world out of bytes.
func (c *codec) read(state []byte, w *world) {
	*w = world{revs: presentRev}
	c.w, c.buf = w, state
	for i := 0; i < len(w.left); i += 2 {
		b := c.next()
		w.left[i] = b & 15
		if i+1 < len(w.left) {
			w.left[i+1] = b >> 4
		}
	}
	c.readHold(&w.hold)
	w.hold.Rev = revOf[presentRev]
	if c.epoch {
		w.hold.Epoch = presentEpoch
	}
	b := c.next()
	blocks, lists := b&15, b>>4
	for i := range blocks {
		b := c.next()
		e := &w.block[i]
		e.inst, e.firm, e.adrift, e.brief = c.readInst(b&15), flag(b, 4), flag(b, 5), flag(b, 6)
		if !e.firm {
			e.epoch = uint64(c.next())
			w.epoch = max(w.epoch, e.epoch)
		}
	}
	for i := range lists {
		w.list[i].Instance = c.readInst(c.next())
		w.list[i].Who = c.readWho()
	}
	b = c.next()
	w.data, w.touched, w.old = filled(b&3), b>>2&3, b>>4
	for i := range w.nodes {
		n := &w.nodes[i]
		b := c.next()
		n.boot, n.name = 2, b&3
		for s := range n.dev {
			if !flag(b, 2+s) {
				continue
			}
			d := &n.dev[s]
			x := c.next()
			d.inst, d.seen = c.readInst(x&15), uint64(x>>4)
			x = c.next()
			d.exposed, d.dirty, d.mkfs, d.foreign, d.going = flag(x, 0), flag(x, 1), flag(x, 2), flag(x, 3), flag(x, 4)
		}
	}
	b = c.next()
	f := &w.fly
	f.op, f.node = flying(b&7), b>>3&3
	switch f.op {
	case flySwap:
		c.readHold(&f.hold)
		f.hold.Rev = w.hold.Rev
	case flyFence, flyLift, flyList, flyUnlist:
		f.fence.Instance = c.readInst(c.next())
		f.fence.Who = c.readWho()
	case flyUnmap:
		f.where = exclusive.Mapping{Device: devOf[b>>5-1], Volume: volume, Instance: c.readInst(c.next())}
	}
	on := c.next()
	for i := range w.actor {
		switch {
		case !flag(on, i):
		case c.base:
			c.readMemory(i, &w.actor[i])
		default:
			c.readActor(i, &w.actor[i])
		}
	}
}
