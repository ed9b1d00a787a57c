package explore

import (
	mathbits "math/bits"
	"time"

	"github.com/custody-storage/custody/provision"
)

// codec turns worlds into bytes and back. States that nobody can tell apart are one state: nonces and minted ids are
// numbered in the order in which they are met; a nonce that stands in no record is none; a version is the present one or
// a past one; what the next read overwrites is not kept.
type codec struct {
	settle time.Duration
	buf    []byte
	// Writing: new numbers. Reading: the highest number met.
	nonce, rev   [16]uint8
	id           [maxIDs + 1]uint8
	nonces, revs uint8
	ids          uint8
	live         uint32 // nonces that stand in a record
	now          string // the Intent's version
	reuse        bool
	hasBase      bool
	keepAll      bool // every nonce counts (a mutation uses old ones)
}

func (c *codec) byte(b uint8) { c.buf = append(c.buf, b) }

func bits(bs ...bool) (m uint8) {
	for i, b := range bs {
		if b {
			m |= 1 << i
		}
	}
	return m
}

func bit(m uint8, i int) bool { return m>>i&1 == 1 }

func (c *codec) nonceNum(n provision.Nonce) uint8 {
	i := num(n)
	if i == 0 || c.live>>i&1 == 0 {
		return 0
	}
	if c.nonce[i] == 0 {
		c.nonces++
		c.nonce[i] = c.nonces
	}
	return c.nonce[i]
}

func (c *codec) revNum(r string) uint8 {
	i := num(r)
	switch {
	case i == 0:
		return 0
	case r == c.now:
		return 1
	case !c.reuse:
		return 2
	case c.rev[i] == 0:
		c.revs++
		c.rev[i] = c.revs + 1
	}
	return c.rev[i]
}

func (c *codec) idNum(i uint8) uint8 {
	if i <= theID {
		return i
	}
	if c.id[i] == 0 {
		c.ids++
		c.id[i] = c.ids
	}
	return c.id[i]
}

func (c *codec) idStr(s string) uint8 { return c.idNum(num(s)) }

func (c *codec) mask(set string) (m uint16) {
	for i := 0; i < len(set); i += 2 {
		m |= 1 << (c.idNum(set[i]-'a'+1) - 1)
	}
	return m
}

// set writes a set of ids, and up to five bits beside it.
func (c *codec) set(set string, more uint8) {
	m := c.mask(set)
	c.byte(more<<3 | uint8(m>>8))
	c.byte(uint8(m))
}

func (c *codec) record(r *provision.Record) {
	c.byte(uint8(r.Goal) | bits(r.Bound, r.Other, r.Static, r.Doubt, r.Proven, r.Missed)<<2)
	c.byte(uint8(r.Phase) | uint8(r.Origin)<<3 | uint8(r.Word)<<5 | bits(r.Linger)<<7)
	c.byte(c.idStr(r.Given) | c.idStr(r.Shown)<<4)
	c.byte(c.idStr(r.ID) | uint8(r.Hold)<<4)
	c.set(r.Strays, bits(r.Shared, r.Expired))
	c.byte(c.nonceNum(r.Attempt) | c.revNum(r.Rev)<<4)
}

func (c *codec) past(t time.Duration) uint8 { return uint8(max(0, t-(now-c.settle))) }

func future(t time.Duration) uint8 { return uint8(max(0, t-now)) }

func (c *codec) memo(m *provision.Memo) {
	mine := c.nonceNum(m.Mine)
	c.byte(bits(m.Fresh, m.Live, m.Exact, m.Called && mine != 0, m.Owned, m.Lost, m.Served, m.Looked))
	if m.Fresh {
		c.record(&m.Rec)
	} else {
		c.byte(uint8(m.Rec.Goal) | uint8(m.Rec.Word)<<2 | uint8(m.Rec.Phase)<<4)
		if c.reuse {
			c.byte(c.revNum(m.Rec.Rev))
		}
	}
	c.byte(bits(m.Vanish, m.Own, m.Unheard, m.Peeked, m.Late, m.Clean, m.Remade, m.Freed))
	c.byte(bits(m.Sweep, m.Hand.Full, m.Hand.Made, m.Hand.Ended, m.Hand.Named, m.Hand.Never, m.Ending))
	c.byte(c.idStr(m.Hand.ID) | c.idStr(m.Cand)<<4)
	c.byte(c.past(m.Lead) | c.past(m.Open)<<2 | future(m.After)<<4 | future(m.Due)<<6)
	c.byte(mine | c.nonceNum(m.Seen)<<4)
	c.byte(bits(m.Last == provision.AlreadyExists) | m.Tries<<5)
	c.set(m.Gone, m.Way)
	why := m.Why
	if m.After <= now && m.Tries == 0 {
		why = 0
	}
	c.byte(uint8(why))
}

func (c *codec) object(o object, past ...bool) {
	c.byte(bits(o.here, o.deleting, o.keep, o.fin, o.up, o.static) | bits(past...)<<6)
	c.byte(c.idNum(o.shown) | o.secret<<4)
}

// write appends the world to buf.
func (c *codec) write(buf []byte, w *world) []byte {
	c.buf = buf
	c.nonce, c.rev, c.id = [16]uint8{}, [16]uint8{}, [maxIDs + 1]uint8{}
	c.nonces, c.revs, c.ids = 0, 1, theID
	c.now = w.intent.Rev
	c.live = 1<<num(w.intent.Attempt) | 1<<num(w.wr.rec.Attempt)
	for i := range w.actor {
		a := &w.actor[i]
		c.live |= 1<<num(a.snap.intent.Attempt) | 1<<num(a.memo.Rec.Attempt)*uint32(bits(a.memo.Fresh))
	}
	if c.keepAll {
		c.live = 1<<16 - 1
	}
	var left uint8
	for i, n := range w.left {
		if left |= n << (2 * (i % 4)); i%4 == 3 || i == int(budgets)-1 {
			c.byte(left)
			left = 0
		}
	}
	flies := 0
	for i := range w.fly {
		if w.fly[i].op != 0 {
			flies++
		}
	}
	things := 0
	for i := range w.things {
		if w.things[i].id != 0 {
			things++
		}
	}
	c.byte(bits(w.intent.Rev != "", w.old, w.flipped, w.early, w.wr.on) | uint8(flies)<<5 | bits(w.news)<<7)
	c.object(w.obj, w.actor[0].past, w.actor[1].past)
	if w.intent.Rev != "" {
		c.record(&w.intent)
	}
	c.byte(uint8(things))
	for i := range w.actor {
		a := &w.actor[i]
		c.byte(bits(a.on, a.payDead) | a.snap.kind<<2 | c.idNum(a.pay)<<4)
		if !a.on {
			continue
		}
		if i == 1 {
			c.byte(w.puff)
		}
		if c.hasBase {
			c.memory(&a.base)
		} else {
			c.memo(&a.memo)
		}
		if a.snap.kind != noSnap {
			c.object(a.snap.obj)
			c.record(&a.snap.intent)
		}
	}
	for _, f := range w.fly {
		if f.op != 0 {
			c.byte(uint8(f.op) | c.idNum(f.id)<<4)
		}
	}
	if w.wr.on {
		c.record(&w.wr.rec)
	}
	// Things last and in the order of their ids: their places mean nothing.
	var order [maxIDs + 1]int8
	for i := range order {
		order[i] = -1
	}
	for i, t := range w.things {
		if t.id != 0 {
			order[c.idNum(t.id)] = int8(i)
		}
	}
	for id, i := range order {
		if i >= 0 {
			t := w.things[i]
			c.byte(uint8(id) | bits(t.foreign, t.given, t.half, t.twice)<<4)
		}
	}
	return c.buf
}

func (c *codec) next() uint8 {
	b := c.buf[0]
	c.buf = c.buf[1:]
	return b
}

func (c *codec) readID(i uint8) uint8 {
	c.ids = max(c.ids, i)
	return i
}

// readSet gives a set of ids and what else is in its bytes.
func (c *codec) readSet() (string, uint8) {
	b := c.next()
	m := uint16(b&7)<<8 | uint16(c.next())
	c.ids = max(c.ids, uint8(mathbits.Len16(m)))
	return setOf[m], b >> 3
}

func (c *codec) readNonce(i uint8) provision.Nonce {
	c.nonces = max(c.nonces, i)
	return nonceOf[i]
}

func (c *codec) readRecord(r *provision.Record) {
	b := c.next()
	r.Goal = provision.Goal(b & 3)
	r.Bound, r.Other, r.Static, r.Doubt, r.Proven, r.Missed = bit(b, 2), bit(b, 3), bit(b, 4), bit(b, 5), bit(b, 6), bit(b, 7)
	b = c.next()
	r.Phase, r.Origin, r.Word, r.Linger = provision.Phase(b&7), provision.Origin(b>>3&3), provision.Word(b>>5&3), bit(b, 7)
	b = c.next()
	r.Given, r.Shown = idOf[c.readID(b&15)], idOf[c.readID(b>>4)]
	b = c.next()
	r.ID, r.Hold = idOf[c.readID(b&15)], provision.Hold(b>>4)
	r.Strays, b = c.readSet()
	r.Shared, r.Expired = bit(b, 0), bit(b, 1)
	b = c.next()
	r.Attempt = c.readNonce(b & 15)
	c.revs = max(c.revs, b>>4)
	r.Rev = revOf[b>>4]
}

func (c *codec) readMemo(m *provision.Memo) {
	b := c.next()
	m.Fresh, m.Live, m.Exact, m.Called = bit(b, 0), bit(b, 1), bit(b, 2), bit(b, 3)
	m.Owned, m.Lost, m.Served, m.Looked = bit(b, 4), bit(b, 5), bit(b, 6), bit(b, 7)
	if m.Fresh {
		c.readRecord(&m.Rec)
	} else {
		b := c.next()
		m.Rec.Goal, m.Rec.Word, m.Rec.Phase = provision.Goal(b&3), provision.Word(b>>2&3), provision.Phase(b>>4)
		if c.reuse {
			b := c.next()
			c.revs = max(c.revs, b)
			m.Rec.Rev = revOf[b]
		}
	}
	m.Rec.Name = theName
	b = c.next()
	m.Vanish, m.Own, m.Unheard, m.Peeked = bit(b, 0), bit(b, 1), bit(b, 2), bit(b, 3)
	m.Late, m.Clean, m.Remade, m.Freed = bit(b, 4), bit(b, 5), bit(b, 6), bit(b, 7)
	b = c.next()
	m.Sweep, m.Hand.Full, m.Hand.Made, m.Hand.Ended = bit(b, 0), bit(b, 1), bit(b, 2), bit(b, 3)
	m.Hand.Named, m.Hand.Never, m.Ending = bit(b, 4), bit(b, 5), bit(b, 6)
	b = c.next()
	m.Hand.ID, m.Cand = idOf[c.readID(b&15)], idOf[c.readID(b>>4)]
	b = c.next()
	floor := now - c.settle
	m.Lead, m.Open = floor+time.Duration(b&3), floor+time.Duration(b>>2&3)
	if b>>4&3 != 0 {
		m.After = now + time.Duration(b>>4&3)
	}
	if b>>6 != 0 {
		m.Due = now + time.Duration(b>>6)
	}
	b = c.next()
	m.Mine, m.Seen = c.readNonce(b&15), c.readNonce(b>>4)
	b = c.next()
	if m.Tries = b >> 5; bit(b, 0) {
		m.Last = provision.AlreadyExists
	}
	m.Gone, m.Way = c.readSet()
	m.Why = provision.Why(c.next())
}

func (c *codec) readObject(o *object) {
	b := c.next()
	o.here, o.deleting, o.keep, o.fin, o.up, o.static = bit(b, 0), bit(b, 1), bit(b, 2), bit(b, 3), bit(b, 4), bit(b, 5)
	b = c.next()
	o.shown, o.secret = c.readID(b&15), b>>4
}

// read makes a world out of bytes.
func (c *codec) read(state []byte, w *world) {
	*w = world{}
	c.buf = state
	c.nonces, c.revs, c.ids = 0, 2, theID
	var left uint8
	for i := range w.left {
		if i%4 == 0 {
			left = c.next()
		}
		w.left[i] = left >> (2 * (i % 4)) & 3
	}
	b := c.next()
	here, flies := bit(b, 0), int(b>>5&3)
	w.news = bit(b, 7)
	w.old, w.flipped, w.early, w.wr.on = bit(b, 1), bit(b, 2), bit(b, 3), bit(b, 4)
	past := c.buf[0] >> 6
	c.readObject(&w.obj)
	if here {
		c.readRecord(&w.intent)
	}
	things := int(c.next())
	for i := range w.actor {
		a := &w.actor[i]
		b := c.next()
		a.past = bit(past, i)
		a.on, a.payDead, a.snap.kind, a.pay = bit(b, 0), bit(b, 1), b>>2&3, c.readID(b>>4)
		if !a.on {
			continue
		}
		if i == 1 {
			w.puff = c.next()
		}
		if c.hasBase {
			c.readMemory(&a.base)
		} else {
			c.readMemo(&a.memo)
		}
		if a.snap.kind != noSnap {
			c.readObject(&a.snap.obj)
			c.readRecord(&a.snap.intent)
		}
	}
	for i := range flies {
		b := c.next()
		w.fly[i] = call{provision.Op(b & 15), c.readID(b >> 4)}
	}
	if w.wr.on {
		c.readRecord(&w.wr.rec)
	}
	for i := range things {
		b := c.next()
		w.things[i] = thing{id: c.readID(b & 15), foreign: bit(b, 4), given: bit(b, 5), half: bit(b, 6), twice: bit(b, 7)}
	}
}

// older makes everything that is remembered one tick older.
func older(a *actor) {
	m := &a.memo
	m.Lead, m.Open, m.After, m.Due = m.Lead-1, m.Open-1, max(0, m.After-1), max(0, m.Due-1)
	if m.After <= now {
		m.After = 0
	}
	if m.Due <= now {
		m.Due = 0
	}
}
