package search

import (
	"context"
	"math/rand/v2"
)

// step is one move and where it leads.
type step struct {
	Move
	next []byte
}

// moves lists what can happen in a state.
func moves(m Model, state []byte, out []step) ([]step, Status) {
	out = out[:0]
	st := m.Expand(state, func(mv Move, next []byte) {
		out = append(out, step{mv, append([]byte(nil), next...)})
	})
	return out, st
}

// End follows a state until it comes round again and tells what is wrong with what remains.
func End(m Model, state []byte) Fault {
	at := map[string]int{}
	var statuses []Status
	for cur := state; ; {
		if first, seen := at[string(cur)]; seen {
			rest, f := false, Fault(0)
			for _, s := range statuses[first:] {
				if s.Rest {
					rest = true
					f |= s.Fault
				}
			}
			if !rest {
				f |= Stuck
			}
			return f
		}
		at[string(cur)] = len(statuses)
		next, bad := append([]byte(nil), cur...), Fault(0)
		s := m.Expand(cur, func(mv Move, n []byte) {
			if mv.Follow {
				next, bad = append(next[:0], n...), mv.Fault
			}
		})
		if bad != 0 {
			return bad
		}
		statuses = append(statuses, s)
		cur = next
	}
}

// Play makes the choices from the start and tells what they came to: the fault of a move, or of what remains when
// nothing goes wrong any more. It reports false if a choice can't be made.
func Play(m Model, choices []Choice) (Fault, bool) {
	state := m.Start(nil)
	var buf []step
	for _, c := range choices {
		buf, _ = moves(m, state, buf)
		found := false
		for _, s := range buf {
			if s.Choice == c {
				if s.Fault != 0 {
					return s.Fault, true
				}
				state, found = s.next, true
				break
			}
		}
		if !found {
			return 0, false
		}
	}
	return End(m, state), true
}

// Walk goes at random from the start, again and again, until ctx ends or something is wrong. It gives the choices,
// shortened as far as leaving some out still ends in the same fault, and the number of moves made.
func Walk(ctx context.Context, m Model, seed uint64, length int) (choices []Choice, fault Fault, made int) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a search, not a secret
	var buf []step
	for ctx.Err() == nil {
		state := m.Start(nil)
		choices = choices[:0]
		for range length {
			buf, _ = moves(m, state, buf)
			if len(buf) == 0 {
				break
			}
			s := buf[r.IntN(len(buf))]
			if follow := follows(buf); follow >= 0 && r.IntN(2) == 0 {
				s = buf[follow] // else most walks would die of their faults before anything is made
			}
			choices = append(choices, s.Choice)
			made++
			if s.Fault != 0 {
				return shrink(m, choices, s.Fault), s.Fault, made
			}
			state = s.next
		}
		if f := End(m, state); f != 0 {
			return shrink(m, choices, f), f, made
		}
	}
	return nil, 0, made
}

func follows(ss []step) int {
	for i, s := range ss {
		if s.Follow {
			return i
		}
	}
	return -1
}

// shrink leaves out what the fault does not need.
func shrink(m Model, choices []Choice, want Fault) []Choice {
	for n := len(choices) / 2; n > 0; {
		cut := false
		for i := 0; i+n <= len(choices); {
			try := append(append([]Choice(nil), choices[:i]...), choices[i+n:]...)
			if f, ok := Play(m, try); ok && f&want != 0 {
				choices, cut = try, true
			} else {
				i++
			}
		}
		if !cut {
			n /= 2
		}
	}
	return choices
}
