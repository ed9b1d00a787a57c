package explore

import (
	"fmt"
	"strings"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

var opWords = [...]string{
	provision.Generate: "GenerateId", provision.Create: "Create", provision.Fetch: "Get", provision.Find: "FindByName",
	provision.Derive: "template", provision.Delete: "Delete", provision.DeleteByName: "DeleteByName",
}

var phaseWords = [...]string{"none", "Making", "Live", "Deleting", "Released", "Sweeping", "Retained"}

// naming keeps the names of ids and nonces the same through a story, although every state numbers them anew.
type naming struct {
	id     [maxIDs + 2]string
	nonce  [17]string
	ids    int
	nonces int
}

func (n *naming) ofID(id uint8) string {
	if n.id[id] == "" {
		n.ids++
		n.id[id] = fmt.Sprintf("id %d", n.ids)
	}
	return n.id[id]
}

func (n *naming) ofNonce(nonce uint8) string {
	if n.nonce[nonce] == "" {
		n.nonces++
		n.nonce[nonce] = fmt.Sprintf("attempt %d", n.nonces)
	}
	return n.nonce[nonce]
}

// follow carries the names over to the numbers that the codec has just given.
func (n *naming) follow(c *codec) {
	was := *n
	n.id, n.nonce = [maxIDs + 2]string{}, [17]string{}
	n.id[theID] = was.id[theID]
	for old := range c.id {
		if to := c.id[old]; to != 0 {
			n.id[to] = was.id[old]
		}
	}
	for old := range c.nonce {
		if to := c.nonce[old]; to != 0 {
			n.nonce[to] = was.nonce[old]
		}
	}
}

// shown names an id, if a trace is told.
func (t *turn) shown(id uint8) string {
	switch {
	case t.said == nil:
		return ""
	case id == 0:
		return "nothing"
	}
	return t.names.ofID(id)
}

// words names a call, if a trace is told.
func (t *turn) words(c call) string {
	switch {
	case t.said == nil:
		return ""
	case c.id == 0:
		return opWords[c.op] + "(name)"
	}
	return opWords[c.op] + "(" + t.shown(c.id) + ")"
}

// told puts a record into a few words, if a trace is told.
func (t *turn) told(r provision.Record) string {
	if t.said == nil {
		return ""
	}
	s := []string{phaseWords[r.Phase]}
	if r.ID != "" {
		s = append(s, t.shown(num(r.ID)))
	}
	if r.Strays != "" {
		for _, id := range provision.SplitIDs(r.Strays) {
			s = append(s, "stray "+t.shown(num(id)))
		}
	}
	if r.Attempt != "" {
		s = append(s, t.names.ofNonce(num(r.Attempt))+" open")
	}
	for _, f := range []struct {
		on   bool
		word string
	}{{r.Doubt, "doubt"}, {r.Missed, "missed"}, {r.Linger, "linger"}} {
		if f.on {
			s = append(s, f.word)
		}
	}
	return strings.Join(s, ", ")
}

// tell puts a move into words of the field.
func (m *model) tell(k kind, arg int) string {
	who := "the sidecar"
	if arg == 1 {
		who = "the old sidecar"
	}
	switch k {
	case mWake:
		return who + " is woken by an event"
	case mCrash:
		return who + " dies"
	case mOver:
		return "another sidecar takes the lead; the old one freezes"
	case mTick:
		return "time passes"
	case mLand:
		return "in the backend, the call lands"
	case mLandWrite:
		return "in the API, the write lands"
	case mDelete:
		return "the user deletes the object"
	case mFlip:
		return "the user changes the deletion policy"
	case mForce:
		return "the user removes the finalizers: the object is gone"
	case mAgain:
		return "the object is made again under the same name"
	case mWord:
		return "an admin says: custody intents resolve --delete"
	case mVanish:
		return "an admin removes it in the backend"
	case mExpire:
		return "the tombstone's time is over"
	case mEnd:
		return "the old sidecar is gone for good"
	case mLag:
		return "the cache of " + who + " stops following"
	case mTearObject:
		return who + " reads the object, and not yet the Intent"
	case mTearIntent:
		return who + " reads the Intent, and not yet the object"
	}
	return who
}

// play makes one move, in m.w, and tells it.
func (m *model) play(state []byte, ch search.Choice) string {
	k, arg, _ := split(ch)
	m.load(state)
	line := m.tell(k, arg)
	said := 0
	m.turn.said = func(s string) {
		if said++; said == 1 {
			line += ": " + s
		} else {
			line += "; " + s
		}
	}
	m.reset()
	m.apply(ch)
	m.turn.said = nil
	if k == mStep && said == 0 {
		line += " has nothing to do"
	}
	return line
}

// Story implements search.Teller: it plays the choices from the start and tells each.
func (m *model) Story(cs []search.Choice) (lines []string) {
	state := m.Start(nil)
	m.turn.names = &naming{}
	for _, ch := range cs {
		lines = append(lines, m.play(state, ch))
		state = m.cd.write(nil, &m.w)
		m.turn.names.follow(&m.cd)
	}
	return lines
}

// slug makes a name that can be typed.
func slug(s string) string {
	return strings.NewReplacer(",", "", "'s", "", " ", "-").Replace(s)
}
