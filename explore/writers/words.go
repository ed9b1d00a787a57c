package writers

import (
	"github.com/custody-storage/custody/exclusive"
	"github.com/custody-storage/custody/explore/search"
)

// told puts a hold into a few words, if a trace is told.
func (t *turn) told(h exclusive.Hold) string {
	if t.said == nil {
		return ""
	}
	s := h.State.String()
	if h.Who.Machine != "" {
		s += " by node " + h.Who.Machine
	}
	if h.Instance != "" {
		s += ", client " + string(h.Instance)
	}
	if !h.Formatted {
		s += ", blank"
	}
	return s
}

var verbWords = [...]string{
	exclusive.Stage: "NodeStage", exclusive.Check: "check", exclusive.Unstage: "NodeUnstage",
	exclusive.Detach: "detach", exclusive.Sweep: "the sweep at start",
}

// name names a process.
func (w *world) name(me int) string {
	switch me {
	case controller:
		return "the controller"
	case ghost:
		return "the old plugin of node " + machineOf[w.old]
	}
	return "node " + machineOf[me]
}

// tell puts a move into words of the field.
func (m *model) tell(k kind, arg int, o outcome) string {
	w := &m.w
	switch k {
	case mCall:
		if arg == controller {
			return "the orchestrator says: detach from node " + machineOf[o>>3]
		}
		return w.name(arg) + " is asked for " + verbWords[o]
	case mCrash:
		return w.name(arg) + ": the process dies"
	case mAbort:
		return w.name(arg) + ": answers ABORTED"
	case mOver:
		return w.name(arg) + ": a new plugin starts; the old one froze"
	case mReboot:
		return w.name(arg) + ": the machine reboots"
	case mRename:
		return w.name(arg) + ": is now called as node " + machineOf[o] + " is"
	case mHear:
		return "the last OSD gets the osdmap"
	case mChild:
		return "node " + machineOf[arg/slots] + ": the mkfs child ends"
	case mLand:
		return "what was on its way takes effect"
	case mOther:
		if m.c.base != nil {
			return "node " + machineOf[arg/slots] + ": another volume is mapped there"
		}
		return "node " + machineOf[arg/slots] + ": another image gets the device number"
	case mExpire:
		return "an entry of the blocklist expires: client " + string(w.block[arg].inst)
	case mSnapshot:
		return "somebody takes a snapshot"
	}
	return w.name(arg)
}

// Story plays the choices from the start and tells each. The world is not put into its shortest form in between, so a
// client keeps its letter.
func (m *model) Story(cs []search.Choice) (lines []string) {
	m.load(m.Start(nil))
	for _, ch := range cs {
		m.w = m.base
		k, arg, o := split(ch)
		line := m.tell(k, arg, o)
		said := false
		m.turn.said = func(s string) {
			if !said {
				line += " · "
			}
			said = true
			line += s
		}
		m.apply(ch)
		m.turn.said = nil
		lines = append(lines, line)
		m.base = m.w
	}
	if m.c.base == nil && !m.c.brief {
		lines = append(lines, m.ending()...)
	}
	return lines
}
