package explore

import "github.com/custody-storage/custody/provision"

// memory is what an incarnation of a baseline protocol knows.
type memory struct {
	pc uint8
}

func (c *codec) memory(m *memory)     { c.byte(m.pc) }
func (c *codec) readMemory(m *memory) { m.pc = c.next() }

// baseline is a protocol other than the shipped one.
type baseline struct {
	name    string
	step    func(*turn, *memory) (idle bool, next provision.Next)
	differs func(*world, *memory) bool
	wake    func(memory) memory
	older   func(*memory)
}
