package explore

import (
	"strings"

	"github.com/custody-storage/custody/explore/search"
	"github.com/custody-storage/custody/provision"
)

var opWords = [...]string{
	provision.Generate: "GenerateId", provision.Create: "Create", provision.Fetch: "Get", provision.Find: "FindByName",
	provision.Derive: "template", provision.Delete: "Delete", provision.DeleteByName: "DeleteByName",
}

var phaseWords = [...]string{"none", "Making", "Live", "Deleting", "Released", "Sweeping", "Retained"}

var shownIDs = [maxIDs + 1]string{"nothing", "id a", "id b", "id c", "id d", "id e", "id f", "id g", "id h", "id i", "id j", "id k"}

func shownID(id uint8) string { return shownIDs[id] }

// words names a call, if a trace is told.
func (t *turn) words(c call) string {
	switch {
	case t.said == nil:
		return ""
	case c.id == 0:
		return opWords[c.op] + "(name)"
	}
	return opWords[c.op] + "(" + idOf[c.id] + ")"
}

// told puts a record into a few words, if a trace is told.
func (t *turn) told(r provision.Record) string {
	if t.said == nil {
		return ""
	}
	s := []string{phaseWords[r.Phase]}
	if r.ID != "" {
		s = append(s, "id "+r.ID)
	}
	if r.Strays != "" {
		s = append(s, "strays "+strings.Join(provision.SplitIDs(r.Strays), " "))
	}
	for _, f := range []struct {
		on   bool
		word string
	}{{r.Attempt != "", "attempt " + string(r.Attempt)}, {r.Doubt, "doubt"}, {r.Missed, "missed"}, {r.Linger, "linger"}} {
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

// Story plays the choices from the start and tells each.
func (m *model) story(cs []search.Choice) (lines []string) {
	state := m.Start(nil)
	for _, ch := range cs {
		k, arg, _ := split(ch)
		m.load(state)
		line := m.tell(k, arg)
		m.turn.said = func(s string) { line += " · " + s }
		m.reset()
		m.apply(ch)
		m.turn.said = nil
		lines = append(lines, line)
		state = m.cd.write(nil, &m.w)
	}
	return lines
}

// slug makes a name that can be typed.
func slug(s string) string {
	return strings.NewReplacer(",", "", "'s", "", " ", "-").Replace(s)
}
