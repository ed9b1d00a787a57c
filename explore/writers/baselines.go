package writers

import (
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

type baseline struct {
	name     string
	what     string
	step     func(t *turn, a *actor) exclusive.Next
	snapshot func(t *turn) search.Fault
	stuck    func(w *world) search.Fault
}

type memory struct{ at uint8 }

func (c *codec) memory(a *actor)            { c.byte(a.base.at) }
func (c *codec) readMemory(_ int, a *actor) { a.base.at = c.next() }
