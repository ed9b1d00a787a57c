package writers

import "github.com/custody-storage/custody/exclusive"

const (
	maxNodes   = 3
	controller = 3 // among the actors: where the orchestrator's detach is worked on
	ghost      = 4 // among the actors: an older plugin process of some node, that froze and may wake
	actors     = 5
	slots      = 2 // device numbers of a node
	volume     = "v"
)

// device is what a node's kernel has under one device number.
type device struct {
	inst    exclusive.Instance
	seen    uint64 // osdmap epoch that its client is known to have seen
	exposed bool
	dirty   bool // was exposed and is not unmapped: it may still write
	mkfs    bool // a mkfs child is at work, whether or not its plugin lives
	foreign bool // another image
	going   bool // its unmap is on its way (baselines and mutations)
}

type node struct {
	boot, name uint8
	dev        [slots]device
}

// actor is one process at work on one request; verb 0: nothing to do.
type actor struct {
	verb exclusive.Verb
	from uint8 // name of the node to detach from
	memo exclusive.Memo
	base memory // of a baseline
}

// entry is one of the blocklist.
type entry struct {
	inst   exclusive.Instance
	epoch  uint64
	firm   bool // every OSD has it
	adrift bool // set by a process that had slept through everything and then died: nobody knows of it
	brief  bool // expires (baselines)
}

type filled uint8

const (
	blank filled = iota
	half         // a mkfs has begun
	made
	used // a workload has written
)

// flight is a request that nobody waits for any more and that may still take effect.
type flight struct {
	op    flying
	hold  exclusive.Hold
	fence exclusive.Fence
	node  uint8
	where exclusive.Mapping
}

type flying uint8

const (
	grounded flying = iota
	flySwap
	flyFence
	flyLift
	flyList
	flyUnlist
	flyMap
	flyUnmap
)

// world is one state.
type world struct {
	hold    exclusive.Hold
	list    [12]exclusive.Fence
	block   [12]entry
	epoch   uint64 // osdmap
	data    filled
	nodes   [maxNodes]node
	actor   [actors]actor
	old     uint8 // the ghost's node
	touched uint8 // nodes that were ever asked; the others are all alike
	fly     flight
	left    [budgets]uint8

	// Counters, for a move's own use.
	insts uint8
	revs  uint8
}

type budget uint8

const (
	bStage   budget = iota // the orchestrator stages, on any node
	bUnstage               // ... unstages
	bDetach                // ... detaches
	bSweep                 // a node sweeps
	bCrash                 // a process dies
	bLost                  // a reply is lost, or the request was
	bLate                  // a request takes effect after its caller has given up
	bFalse                 // the fence is reported done and is not
	bChild                 // a mkfs outlives its caller
	bPuff                  // how many requests that one makes when it wakes
	bOver                  // a new plugin process works beside an old one that froze
	bReboot
	bRename // a machine gets the node name of another
	bOther  // another image gets a free device number
	bSilent // the evidence says that an owner is silent, whether or not it is
	bExpire // an entry of the blocklist goes by itself
	budgets
)

var (
	instOf = func() (s [64]exclusive.Instance) {
		for i := 1; i < len(s); i++ {
			s[i] = exclusive.Instance(rune('@' + i)) // A, B, ...
		}
		return s
	}()
	revOf = func() (s [200]string) {
		for i := 1; i < len(s); i++ {
			s[i] = string(rune(' ' + i))
		}
		return s
	}()
	devOf     = [slots]string{"0", "1"}
	machineOf = [...]string{"1", "2", "3", "c"}
	nameOf    = [...]string{"1", "2", "3", "c"}
	bootOf    = [...]string{"0", "1", "2", "3"}
)

func num(i exclusive.Instance) uint8 {
	if i == "" {
		return 0
	}
	return i[0] - '@'
}

// where gives an actor's node.
func (w *world) where(me int) int {
	if me == ghost {
		return int(w.old)
	}
	return me
}

// who is the actor as the protocol knows it.
func (w *world) who(me int) exclusive.Who {
	n := w.where(me)
	if n == controller {
		return exclusive.Who{Machine: machineOf[n], Node: nameOf[n], Boot: bootOf[2]}
	}
	return exclusive.Who{Machine: machineOf[n], Node: nameOf[w.nodes[n].name], Boot: bootOf[w.nodes[n].boot]}
}

// mapping is the device as the door hands it out.
func (w *world) mapping(n, slot int) exclusive.Mapping {
	return exclusive.Mapping{Device: devOf[slot], Volume: volume, Instance: w.nodes[n].dev[slot].inst}
}

// dev gives exactly that device, or nil.
func (w *world) dev(n int, m exclusive.Mapping) *device {
	if m.Device == "" {
		return nil
	}
	d := &w.nodes[n].dev[m.Device[0]-'0']
	if d.foreign || d.inst != m.Instance {
		return nil
	}
	return d
}

func (w *world) entry(i exclusive.Instance) *entry {
	for k := range w.block {
		if w.block[k].inst == i {
			return &w.block[k]
		}
	}
	return nil
}

// accepts tells whether the storage carries out what this client sends.
func (w *world) accepts(i exclusive.Instance) bool {
	e := w.entry(i)
	return e == nil || !e.firm
}

// heard: an OSD serves nobody whose osdmap is newer than its own.
func (w *world) heard(seen uint64) {
	for k := range w.block {
		if e := &w.block[k]; e.inst != "" && e.epoch <= seen {
			e.firm = true
		}
	}
}

// fence puts an entry into the blocklist and gives the epoch of the osdmap that has it.
func (w *world) fence(i exclusive.Instance, brief bool) uint64 {
	if e := w.entry(i); e != nil {
		e.brief = e.brief && brief
		return w.epoch
	}
	w.epoch++
	for k := range w.block {
		if w.block[k].inst == "" {
			w.block[k] = entry{inst: i, epoch: w.epoch, brief: brief}
			return w.epoch
		}
	}
	panic("writers: the blocklist is too short for these budgets")
}

// lift takes an entry off the blocklist and tells whether its client may still write.
func (w *world) lift(i exclusive.Instance) (early bool) {
	e := w.entry(i)
	if e == nil {
		return false
	}
	copy(w.block[indexOf(w, i):], w.block[indexOf(w, i)+1:])
	w.block[len(w.block)-1] = entry{}
	w.epoch++
	return w.mapped(i) != nil
}

func indexOf(w *world, i exclusive.Instance) int {
	for k := range w.block {
		if w.block[k].inst == i {
			return k
		}
	}
	return len(w.block) - 1
}

// mapped gives the device of that client, wherever it is.
func (w *world) mapped(i exclusive.Instance) *device {
	for n := range w.nodes {
		for s := range w.nodes[n].dev {
			if d := &w.nodes[n].dev[s]; d.inst == i && i != "" {
				return d
			}
		}
	}
	return nil
}

func (w *world) enlist(f exclusive.Fence) {
	for k := range w.list {
		if w.list[k].Instance == f.Instance || w.list[k].Instance == "" {
			w.list[k] = f
			return
		}
	}
	panic("writers: the list is too short for these budgets")
}

func (w *world) unlist(i exclusive.Instance) {
	for k := range w.list {
		if w.list[k].Instance == i {
			copy(w.list[k:], w.list[k+1:])
			w.list[len(w.list)-1] = exclusive.Fence{}
			return
		}
	}
}

// attach maps the volume on a node, if a device number is free.
func (w *world) attach(n int) (exclusive.Mapping, bool) {
	for s := range w.nodes[n].dev {
		if d := &w.nodes[n].dev[s]; d.inst == "" && !d.foreign {
			w.insts++
			*d = device{inst: instOf[w.insts]}
			return w.mapping(n, s), true
		}
	}
	return exclusive.Mapping{}, false
}

// drop ends a process.
func (w *world) drop(me int) {
	a := &w.actor[me]
	w.adrift(a.memo.Owed)
	if a.memo.Lifted || a.memo.Off {
		w.adrift(a.memo.Entry.Instance)
	}
	*a = actor{}
}

// adrift marks an entry whose maker can't list it any more.
func (w *world) adrift(i exclusive.Instance) {
	e := w.entry(i)
	if e == nil || i == "" || w.hold.State == exclusive.Fencing && w.hold.Instance == i {
		return
	}
	for k := range w.list {
		if w.list[k].Instance == i {
			return
		}
	}
	e.adrift = true
}

// writers gives how many clients may change the image.
func (w *world) writers() (n int) {
	for i := range w.nodes {
		for s := range w.nodes[i].dev {
			if d := &w.nodes[i].dev[s]; (d.dirty || d.mkfs) && !d.foreign && w.accepts(d.inst) {
				n++
			}
		}
	}
	return n
}
