package exclusive

// decide is the protocol: what one incarnation does next, given what it knows. It touches nothing.
func decide(r Request, m Memo) act {
	switch {
	case !m.Fresh:
		return act{door: toLoad}
	case m.Owed != "" && (m.Hold.State != Fencing || m.Hold.Instance != m.Owed):
		// We fenced, somebody else went on with the hold, and the owner may have lifted and unlisted before our fence
		// came: listed again, so that it is lifted one day.
		return act{door: toList, fence: Fence{m.Owed, m.OwedWho}}
	}
	switch r.Verb {
	case Stage:
		return stage(r, m)
	case Check:
		return check(r, m)
	case Unstage:
		return unstage(r, m)
	case Detach:
		return detach(r, m)
	}
	return sweep(r, m)
}

// claimed tells whether the hold is our own claim, untouched.
func (m Memo) claimed() bool {
	return m.Hold.State == Claimed && m.Claim != "" && m.Hold.Rev == m.Claim
}

func swap(h Hold, m Memo) act { return act{door: toSwap, hold: h, memo: m} }

func end(k Kind, w Why) act { return act{next: Next{Kind: k, Why: w}} }

// owns tells whether the hold names this life of this machine, whatever its node is called now.
func owns(r Request, h Hold) bool { return h.Who.Machine == r.Me.Machine && h.Who.Boot == r.Me.Boot }

// named tells whether the hold names this very mapping.
func named(r Request, m Memo) bool {
	return m.Hold.State == Mapped && owns(r, m.Hold) && m.Hold.Instance == m.Map.Instance
}

// stage: claim, map, record, expose. A swap that fails at any step re-reads, unmaps, and never exposes.
func stage(r Request, m Memo) act {
	h := m.Hold
	switch {
	case h.State == None:
		return end(Refused, WhyNoHold)
	case h.State == Opaque && owns(r, h):
		return end(Refused, WhyOpaque) // a guarded driver has it here: no device of that is touched
	case m.Map.Device != "" && named(r, m) && m.Doubt:
		return act{door: toFind}
	case m.Map.Device != "" && named(r, m):
		return use(r, m)
	case m.Map.Device != "" && m.New && m.claimed():
		h.State, h.Instance = Mapped, m.Map.Instance
		return swap(h, m)
	case m.Map.Device != "" && h.State == Fencing && h.Instance == m.Map.Instance:
		return fence(r, m, claim) // from ourselves: what hangs on the device lets go of it only once it is fenced
	case m.Map.Device != "":
		return away(m) // not ours by the hold: another has taken over, or an earlier life left it
	case !m.Cleared:
		return act{door: toOther, than: h.Instance}
	case m.claimed():
		return act{door: toMap}
	case h.State == Free:
		return claim(r, m)
	case h.State == Fencing:
		return fence(r, m, claim)
	case h.State == Mapped && owns(r, h) && !m.Sought:
		return act{door: toFind}
	case h.Who.Machine == r.Me.Machine && (h.State != Opaque || h.Who.Boot != r.Me.Boot):
		// Of this machine's own: an earlier boot, or this boot without a device of that instance. Nothing of it can
		// write; what is still under way fails at its next swap.
		return claim(r, m)
	}
	return take(r, m, claim)
}

// use goes on with a mapping that the hold names.
func use(r Request, m Memo) act {
	h := m.Hold
	switch {
	case !m.New && !h.Formatted:
		// Found, not made by this incarnation: a mkfs of an earlier one may still be writing through it. It is taken
		// over from ourselves.
		return fence(r, m, claim)
	case !m.Reached:
		return act{door: toReach}
	case r.Format && !h.Formatted && !m.Made:
		return act{door: toFormat}
	case !h.Formatted:
		h.Formatted = true // for a block device too: from here on a workload may write
		return swap(h, m)
	case !m.Shown:
		return act{door: toExpose}
	}
	return end(Done, WhyNone)
}

// away unmaps what this node must not use.
func away(m Memo) act {
	if !m.Hidden {
		return act{door: toWithdraw}
	}
	return act{door: toUnmap}
}

// claim names this node, with a new epoch and no instance.
func claim(r Request, m Memo) act {
	h := m.Hold
	if h.State == Fencing {
		h.Barrier = max(h.Barrier, m.Barrier)
	}
	h.State, h.Who, h.Instance, h.Fencer = Claimed, r.Me, "", ""
	h.Epoch++
	m.Owed = "" // the list has it: nobody takes it off while the hold is in Fencing
	m.Cleared, m.Sought, m.Fenced, m.Seen = false, false, "", ""
	m.New = false // a device of before the claim may be fenced
	return swap(h, m)
}

// free names nobody.
func free(_ Request, m Memo) act {
	h := m.Hold
	if h.State == Fencing {
		h.Barrier = max(h.Barrier, m.Barrier)
	}
	h.State, h.Who, h.Instance, h.Fencer = Free, Who{}, "", ""
	h.Epoch++
	m.Owed, m.Fenced, m.Seen = "", "", ""
	return swap(h, m)
}

// take gets the volume from another owner, if the policy lets it, and then does what comes after.
func take(r Request, m Memo, then func(Request, Memo) act) act {
	h := m.Hold
	switch {
	case m.Judged != h.Rev:
		return act{door: toJudge}
	case !r.Policy.allows(h, m.Verdict) && h.State == Opaque:
		return end(Refused, WhyOpaque)
	case !r.Policy.allows(h, m.Verdict):
		return end(Refused, WhyElse)
	case h.Instance == "":
		return then(r, m) // never exposed, or its machine has stopped: its own next swap will fail
	}
	return fence(r, m, then)
}

// fence shuts the recorded instance out: list, mark the hold, fence, read back, and only then what comes after.
func fence(r Request, m Memo, then func(Request, Memo) act) act {
	h := m.Hold
	switch {
	case m.Listed != h.Instance:
		return act{door: toList, fence: Fence{h.Instance, h.Who}}
	case h.State != Fencing:
		h.State, h.Fencer = Fencing, r.Me.Node
		h.Epoch++
		return swap(h, m)
	case m.Seen != h.Instance && m.Fenced != h.Instance:
		return act{door: toFence}
	case m.Seen != h.Instance:
		return act{door: toFenced}
	case m.Fenced != h.Instance:
		return act{door: toFence} // for the barrier: the first one may be of before the entry, if another has set that
	}
	return then(r, m)
}

// check tells a live owner that it lost its volume.
func check(r Request, m Memo) act {
	h := m.Hold
	switch {
	case h.State == Mapped && owns(r, h) && m.Map.Device == "" && !m.Sought:
		return act{door: toFind}
	case m.Map.Device != "" && named(r, m):
		return end(Done, WhyNone)
	case h.State == Opaque && owns(r, h):
		return end(Done, WhyNone)
	}
	return end(Gone, WhyElse)
}

// unstage: withdraw, unmap, and only then the hold.
func unstage(r Request, m Memo) act {
	h := m.Hold
	switch {
	case !m.Hidden:
		return act{door: toWithdraw}
	case m.Map.Device != "":
		return act{door: toUnmap}
	case !m.Cleared:
		return act{door: toOther} // any: none is to be left
	case owns(r, h) && (h.State == Claimed || h.State == Mapped || h.State == Opaque):
		return free(r, m)
	}
	return lift(r, m)
}

// detach takes the volume from a node that the CO has given up, without its help: fence first.
func detach(r Request, m Memo) act {
	h := m.Hold
	switch {
	case h.State == None, h.State == Free, h.Who.Node != r.From:
		return end(Done, WhyNone)
	case h.State == Fencing:
		return fence(r, m, free)
	}
	return take(r, m, free)
}

// sweep puts in order what an earlier life of this node has left of the volume.
func sweep(r Request, m Memo) act {
	h := m.Hold
	switch {
	case h.State == Opaque && owns(r, h), m.Map.Device != "" && named(r, m):
		return lift(r, m)
	case m.Map.Device != "":
		return away(m)
	case !m.Cleared && h.State == Mapped && owns(r, h):
		return act{door: toOther, than: h.Instance}
	case !m.Cleared:
		return act{door: toOther}
	case h.State == Mapped && owns(r, h) && !m.Sought:
		return act{door: toFind}
	case h.Who.Machine == r.Me.Machine && (h.State == Claimed || h.State == Mapped),
		h.Who.Machine == r.Me.Machine && h.State == Opaque && h.Who.Boot != r.Me.Boot:
		return free(r, m)
	}
	return lift(r, m)
}

// lift ends the fences of this machine's own instances that can't write any more, and only those. The hold is read after
// the entry: if it does not name the instance then, it never will again.
func lift(r Request, m Memo) act {
	e := m.Entry
	proof := Unmapped
	if e.Who.Boot != r.Me.Boot {
		proof = Rebooted
	}
	switch {
	case m.Walked:
		return end(Done, WhyNone)
	case e.Instance == "":
		return act{door: toListed}
	case m.Lifted:
		return act{door: toUnlist, fence: e}
	case m.Off:
		return act{door: toLift, proof: proof} // once more: a fencer that slept may have fenced in between
	case m.Hold.Instance == e.Instance:
		m.Entry = Fence{} // still mapped, or its fence is still to be set
		return act{door: toMemo, memo: m}
	case proof == Unmapped && !m.Dead:
		return act{door: toDead}
	}
	return act{door: toLift, proof: proof}
}
