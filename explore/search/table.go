package search

import (
	"bytes"
	"hash/maphash"
)

// table holds every state once, numbered in the order of arrival.
type table struct {
	seed  maphash.Seed
	slots []uint64 // upper half: hash, lower half: number + 1
	at    []uint64 // where each state begins: chunk and offset
	chunk [][]byte
}

const chunkSize = 1 << 22

func newTable() *table {
	return &table{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<12)}
}

// get gives a state's bytes. They are never changed.
func (t *table) get(i uint32) []byte {
	c, o := t.at[i]>>32, uint32(t.at[i])
	b := t.chunk[c]
	return b[o+1 : o+1+uint32(b[o])]
}

// add gives the state's number and tells whether it is new. States are at most 255 bytes long.
func (t *table) add(state []byte) (uint32, bool) {
	h := uint64(uint32(maphash.Bytes(t.seed, state)))
	mask := uint64(len(t.slots) - 1)
	p := h & mask
	for ; t.slots[p] != 0; p = (p + 1) & mask {
		if t.slots[p]>>32 == h && bytes.Equal(t.get(uint32(t.slots[p])-1), state) {
			return uint32(t.slots[p]) - 1, false
		}
	}
	n := uint32(len(t.at))
	t.slots[p] = h<<32 | uint64(n+1)
	t.keep(state)
	if len(t.at)*3 > len(t.slots)*2 {
		t.grow()
	}
	return n, true
}

func (t *table) keep(state []byte) {
	if len(state) > 255 {
		panic("search: a state is longer than 255 bytes")
	}
	last := len(t.chunk) - 1
	if last < 0 || len(t.chunk[last])+len(state)+1 > chunkSize {
		t.chunk = append(t.chunk, make([]byte, 0, chunkSize))
		last++
	}
	b := t.chunk[last]
	t.at = append(t.at, uint64(last)<<32|uint64(len(b)))
	t.chunk[last] = append(append(b, byte(len(state))), state...)
}

func (t *table) grow() {
	slots := make([]uint64, 2*len(t.slots))
	mask := uint64(len(slots) - 1)
	for _, s := range t.slots {
		if s == 0 {
			continue
		}
		p := s >> 32 & mask
		for slots[p] != 0 {
			p = (p + 1) & mask
		}
		slots[p] = s
	}
	t.slots = slots
}
