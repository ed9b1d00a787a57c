package holds

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Explanation says in words what is with an image. The JSON names are kept from release to release.
type Explanation struct {
	Row
	Who      string   `json:"who"`               // who holds it
	Blocked  string   `json:"blocked,omitempty"` // why it can't be taken; "" if it can
	Do       []string `json:"do"`                // what a person can do; empty if nothing is to be done
	Happened []string `json:"happened,omitempty"`
}

// Explain puts a row into words.
func (r Row) Explain(now time.Time) Explanation {
	e := Explanation{Row: r, Do: []string{}}
	since := ""
	if r.Since != nil {
		since = fmt.Sprintf(" since %s (%s ago)", r.Since.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(*r.Since)))
	}
	switch r.State {
	case "none":
		e.Who = "There is no hold: Custody did not make this image, or it has not finished making it"
		e.Blocked = "Custody does not stage a volume whose past it does not know, and never formats it"
		e.Do = append(e.Do, "A volume of many writers, or for reading only, has no hold and needs none.",
			"One that is to become Custody's: docs/rbd.md, moving from ceph-csi.")
	case unreadable:
		e.Who = "The hold can't be read: " + r.Error
		e.Blocked = "Nobody stages, frees or fences it: a newer version's safety may rest on what this one can't read"
		e.Do = append(e.Do, "A newer format: upgrade this program and every node plugin.",
			"Garbage: find out who wrote object custody.hold."+r.ImageID+" in pool "+r.Pool+"; no program of Custody does. Make sure that no node has the image mapped (rbd status), keep a copy of the object, and write to it only then.")
	case "free":
		e.Who = "Nobody holds it" + since
		if !r.Formatted {
			e.Who += "; nothing was ever written to it"
		}
	default:
		e.held(since)
	}
	e.fences()
	for _, w := range r.Words {
		e.Happened = append(e.Happened, fmt.Sprintf("%s: %s lifted the fence of %s without proof: %s", w.At.UTC().Format(time.RFC3339), w.By, w.Instance, w.Reason))
	}
	return e
}

func (e *Explanation) held(since string) {
	r := e.Row
	switch r.State {
	case "claimed":
		e.Who = fmt.Sprintf("Node %s is about to map it%s; it has not shown it to anybody", r.Node, since)
	case "opaque":
		e.Who = fmt.Sprintf("Node %s has it in a call of another driver%s, by a client that nobody knows", r.Node, since)
	case "fencing":
		e.Who = fmt.Sprintf("%s is fencing node %s, client %s%s", r.Fencer, r.Node, r.Instance, since)
	default:
		e.Who = fmt.Sprintf("Node %s holds it%s, mapped by client %s", r.Node, since, r.Instance)
	}
	e.Blocked = map[string]string{
		"":          "Its owner has not given it back",
		beatMissing: "Its owner's machine never had a heartbeat, so nothing is known against it: only Kubernetes (out-of-service taint, Node gone) or a person can take it",
		beatThis:    "Its owner's machine has a heartbeat of the same boot. Another node takes it only when that stands still, or Kubernetes says that the node is lost",
		beatMoving:  "Its owner's machine is alive: its heartbeat moves",
		beatStill:   "Its owner's heartbeat did not move while it was listened to. A node that wants the volume takes it when that has lasted for its own set time",
	}[r.Heartbeat.State]
	switch {
	case r.State == "opaque":
		if r.Heartbeat.State != beatOther {
			e.Blocked = "The client that may write it is not known, so it can't be fenced: only another boot of the node makes it free"
			e.Do = append(e.Do, "Reboot node "+r.Node+", or delete the Pod there.")
		}
	case r.State == "fencing":
		e.Blocked = ""
		e.Do = append(e.Do, "Nothing: whoever wants it goes on with the fence. If nobody does: custody fence "+r.Spec())
	case r.Heartbeat.State == beatOther:
	default:
		e.Do = append(e.Do, "If the node works: delete the Pod that uses it there; the volume is given back when it is unmounted.",
			"If the node is lost: kubectl taint node "+r.Node+" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			"If it can't wait: custody fence "+r.Spec()+" (what runs on it there gets I/O errors; nothing that was acknowledged is lost).")
	}
	if r.Heartbeat.State == beatOther {
		e.Blocked = ""
		e.Do = append(e.Do, "Nothing: its owner's machine has booted again since, and whoever wants the volume takes it.")
	}
}

func (e *Explanation) fences() {
	for _, f := range e.Fences {
		switch {
		case f.Instance == e.Instance:
			e.Happened = append(e.Happened, fmt.Sprintf("client %s of node %s is being fenced", f.Instance, f.Node))
		case f.Standing:
			e.Happened = append(e.Happened, fmt.Sprintf("client %s of node %s is fenced: it can't write any more. The node lifts that by itself when it has unmapped the device, or has booted again", f.Instance, f.Node))
		default:
			e.Happened = append(e.Happened, fmt.Sprintf("client %s of node %s is on the list of fences, and no entry stands for it: the fence was not finished, or was lifted and is about to go off the list", f.Instance, f.Node))
		}
	}
}
