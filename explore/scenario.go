package explore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

// Scenario plays a script: one run of the shipped protocol, in words. It fails where a line does not happen.
//
//	# what it is about
//	setting bucket/template/faults     see Names
//	allow late=1 crash=2               other budgets than the setting's
//	the user deletes the object        a move, by a part of what is told of it
//	... Create(name): time-out         what happens next by itself happens, until this can
//	ends clean                         nothing goes wrong any more: what remains is right
//	stops NameSpent                    ... and this is what the user is told for good
func Scenario(script io.Reader) error {
	var m *model
	var state []byte
	lines := bufio.NewScanner(script)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch {
		case line == "" || word == "#":
		case word == "setting":
			var c *class
			if c, err = never(rest); err == nil {
				c.puff = max(c.puff, 12)
				m = newModel(c)
				state = m.Start(nil)
				m.turn.names = &naming{}
			}
		case m == nil:
			err = fmt.Errorf("the first line must name a setting")
		case word == "allow":
			if err = m.c.allow(rest); err == nil {
				state = m.Start(nil)
			}
		case word == "ends":
			if f := search.End(m, state); f.String() != rest {
				err = fmt.Errorf("it ends in %s", f)
			}
		case word == "stops":
			var why provision.Why
			if why, err = m.final(state); err == nil && why.String() != rest {
				err = fmt.Errorf("it stops with %s", why)
			}
		default:
			part, auto := strings.CutPrefix(line, "... ")
			state, err = m.until(state, part, auto)
		}
		if err != nil {
			return fmt.Errorf("line %d: %q: %w", n, line, err)
		}
	}
	return lines.Err()
}

// allow sets budgets from a text.
func (c *class) allow(text string) error {
	c.left = [budgets]uint8{}
next:
	for _, f := range strings.Fields(text) {
		var n uint8
		name, count, _ := strings.Cut(f, "=")
		if _, err := fmt.Sscan(count, &n); err != nil || n > 3 {
			return fmt.Errorf("%q is no budget from 0 to 3", f)
		}
		for b, w := range budgetNames {
			if w == name {
				c.left[b] = n
				continue next
			}
		}
		return fmt.Errorf("%q is none of %v", name, budgetNames)
	}
	return nil
}

// option is a move that can be made, and what is told of it.
type option struct {
	move search.Move
	told string
}

func (m *model) options(state []byte) (out []option) {
	names := *m.turn.names
	m.Expand(state, func(mv search.Move, _ []byte) { out = append(out, option{move: mv}) })
	for i := range out {
		*m.turn.names = names
		out[i].told = m.play(state, out[i].move.Choice)
	}
	*m.turn.names = names
	return out
}

// until makes the move that the text is part of; with auto, what happens by itself happens before.
func (m *model) until(state []byte, text string, auto bool) ([]byte, error) {
	for range 200 {
		options := m.options(state)
		pick := -1
		for i, o := range options {
			if strings.Contains(o.told, text) && (pick < 0 || o.move.Follow) {
				pick = i
			}
		}
		found := pick >= 0
		if !found && auto {
			pick = m.byItself(state, options)
		}
		if pick < 0 {
			var can []string
			for _, o := range options {
				can = append(can, "  "+o.told)
			}
			return state, fmt.Errorf("this can't happen here; what can:\n%s", strings.Join(can, "\n"))
		}
		m.play(state, options[pick].move.Choice)
		state = m.cd.write(nil, &m.w)
		m.turn.names.follow(&m.cd)
		if found {
			if options[pick].move.Fault != 0 {
				return state, fmt.Errorf("%s: this must not happen", options[pick].told)
			}
			return state, nil
		}
	}
	return state, fmt.Errorf("this does not happen in 200 moves")
}

// byItself picks what the leader does, or else that time passes; nothing lands by itself.
func (m *model) byItself(state []byte, options []option) int {
	pick, best := -1, 0
	m.load(state)
	due := m.differs(0)
	for i, o := range options {
		rank := 0
		switch o.move.Choice {
		case choice(mStep, 0, oFine):
			rank = 4
		case choice(mWake, 0, 0):
			if due {
				rank = 3
			}
		case choice(mExpire, 0, 0), choice(mEnd, 0, 0):
			if o.move.Follow {
				rank = 2
			}
		case choice(mTick, 0, 0):
			rank = 1
		}
		if rank > best {
			pick, best = i, rank
		}
	}
	return pick
}

// final follows a state until it comes round again and tells what the leader says where it rests.
func (m *model) final(state []byte) (provision.Why, error) {
	for round, seen := 0, map[string]bool{}; round < 2; {
		if seen[string(state)] {
			round, seen = round+1, map[string]bool{} // once round to be on the cycle, once round to look at it
		}
		seen[string(state)] = true
		next := append([]byte(nil), state...)
		s := m.Expand(state, func(mv search.Move, n []byte) {
			if mv.Follow {
				next = append(next[:0], n...)
			}
		})
		if round == 1 && s.Rest {
			m.load(state)
			_, n := m.step(0, oFine)
			return n.Why, nil
		}
		state = next
	}
	return 0, errors.New("it does not come to rest")
}
