package intents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/custody-storage/custody/api/v1alpha1"
)

// Explanation is a record in words.
type Explanation struct {
	Name string `json:"name"`
	// What it is the record of.
	What string `json:"what"`
	// Happened is what is known, oldest first.
	Happened []string `json:"happened"`
	// Reason is the word for what is waited for; empty if nothing is.
	Reason string `json:"reason,omitempty"`
	// Waits says what is waited for and why.
	Waits string `json:"waits"`
	// Next is what to do.
	Next []string `json:"next"`
	// Owner is what the record serves.
	Owner Owner `json:"owner"`
	// Record is the record in short.
	Record Row `json:"record"`
}

// Explain says of an Intent what happened, what is waited for and why, and what to do.
func (c *Client) Explain(ctx context.Context, name string) (Explanation, error) {
	intent, err := c.get(ctx, name)
	if err != nil {
		return Explanation{}, err
	}
	// That it can't be read is no reason to say nothing.
	cluster, _ := c.clusterUID(ctx)
	return explain(intent, c.owner(ctx, intent), cluster, c.now()), nil
}

func explain(intent *v1alpha1.Intent, owner Owner, cluster string, now time.Time) Explanation {
	s := intent.Spec
	e := Explanation{Name: intent.Name, Owner: owner, Record: rowOf(intent)}
	e.What = fmt.Sprintf("%s of the driver %s, asked for by the name %s, for %s", noun(s.Kind), s.Driver, s.Name, owner.Text)
	if owner.Claim != "" {
		e.Record.For = "BucketClaim " + owner.Claim
		e.What += " of BucketClaim " + owner.Claim
	}
	if err := v1alpha1.ReadFormat(intent); err != nil {
		e.Reason, e.Waits = v1alpha1.ReasonNewerFormat, err.Error()
		e.Next = advice[v1alpha1.ReasonNewerFormat]
		return e
	}
	e.Happened = happened(intent, owner, now)
	if cluster != "" && s.ClusterUID != cluster {
		e.Reason = v1alpha1.ReasonOtherCluster
		e.Waits = fmt.Sprintf("nothing here: it is the record of the cluster %s, and this one is %s; no program of this cluster acts on it", s.ClusterUID, cluster)
		e.Next = advice[e.Reason]
		return e
	}
	e.Reason, e.Waits = waits(intent, owner, now)
	e.Next = next(intent, owner, e.Reason)
	return e
}

// happened tells the story of a record from what it keeps.
func happened(intent *v1alpha1.Intent, owner Owner, now time.Time) []string {
	s := intent.Spec
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	age := duration.HumanDuration(now.Sub(intent.CreationTimestamp.Time))
	switch s.Origin {
	case v1alpha1.OriginStatic:
		say("%s ago an admin bound it by its id; it was made elsewhere", age)
	case v1alpha1.OriginAdopted:
		say("%s ago it was taken over: its object bore a finalizer and had no record (from another COSI controller, or from a backup)", age)
	default:
		say("%s ago the record was made, before the driver was asked", age)
	}
	if s.ID != "" {
		say("its id is %s", s.ID)
	} else {
		say("no id is known")
	}
	if len(s.StrayIDs) > 0 {
		say("there are further ids, which are to be deleted: %s", strings.Join(s.StrayIDs, ", "))
	}
	if s.Attempt != "" {
		say("a create call (attempt %s) is not answered yet, as far as the record knows", s.Attempt)
	}
	if s.Doubt {
		say("it is in doubt: a create call was never heard of, and may have made something, or may still")
	}
	if s.Missed {
		say("a create call was answered with an error, which proves nothing: a look in the backend comes before release")
	}
	if s.Linger {
		say("a delete call of another process may still be under way, so release leaves a tombstone")
	}
	switch s.Phase {
	case v1alpha1.PhaseMaking:
		say("it is being made; nothing was shown to a user")
	case v1alpha1.PhaseLive:
		say("it serves")
	case v1alpha1.PhaseDeleting:
		say("it is being deleted")
	case v1alpha1.PhaseReleased, v1alpha1.PhaseSweeping:
		since := ""
		if s.ReleasedAt != nil {
			since = " " + duration.HumanDuration(now.Sub(s.ReleasedAt.Time)) + " ago"
		}
		say("it was released%s; the record is a tombstone, under which what arrives late is found and deleted", since)
	case v1alpha1.PhaseRetained:
		say("its object was deleted and it stays in the backend, as its deletion policy says")
	}
	switch owner.State {
	case OwnerWants:
		say("%s exists", owner.Text)
	case OwnerDeleting:
		say("%s is being deleted", owner.Text)
	case OwnerGone:
		say("%s does not exist", owner.Text)
	case OwnerReplaced:
		say("%s does not exist any more; another one of that name does", owner.Text)
	default:
		say("whether %s exists could not be found out: %s", owner.Text, or(owner.Error, "its kind is not known"))
	}
	if s.Word != "" {
		a := intent.Annotations
		say("%s decided: %s (%s: %s)", or(a[AnnotationBy], "somebody"), s.Word, or(a[AnnotationAt], "no time"), or(a[AnnotationReason], "no reason given"))
	}
	return lines
}

// waits is what is waited for: what the sidecar has said, else what follows from the
// record.
func waits(intent *v1alpha1.Intent, owner Owner, now time.Time) (reason, text string) {
	s := intent.Spec
	c := isTrue(intent, v1alpha1.ConditionStuck)
	if c == nil {
		if w := meta.FindStatusCondition(intent.Status.Conditions, v1alpha1.ConditionSettled); w != nil && w.Status == "False" {
			c = w
		}
	}
	switch {
	case c != nil:
		return c.Reason, fmt.Sprintf("%s (since %s)", c.Message, duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)))
	case s.Word != "":
		return "", "the sidecar acts on the decision"
	case s.Phase == v1alpha1.PhaseLive && owner.State == OwnerGone && s.Origin != v1alpha1.OriginStatic:
		return v1alpha1.ReasonOwnerGone, reasonText(v1alpha1.ReasonOwnerGone)
	case owner.State == OwnerReplaced:
		return v1alpha1.ReasonOtherOwner, "it is the record of an earlier object of that name, and the sidecar keeps its hands off"
	case s.Phase == v1alpha1.PhaseReleased, s.Phase == v1alpha1.PhaseSweeping:
		return v1alpha1.ReasonReleased, reasonText(v1alpha1.ReasonReleased)
	case s.Phase == v1alpha1.PhaseRetained:
		return v1alpha1.ReasonRetained, reasonText(v1alpha1.ReasonRetained)
	case s.Phase == v1alpha1.PhaseLive && owner.State == OwnerWants && len(s.StrayIDs) == 0:
		return "", "nothing"
	}
	return "", "the driver's sidecar, which goes on by itself; if nothing changes, see whether it runs and what it logs"
}

// next is what to do: what helps with the reason, then the decisions that make sense.
func next(intent *v1alpha1.Intent, owner Owner, reason string) []string {
	lines := append([]string{}, advice[reason]...)
	stopped := isTrue(intent, v1alpha1.ConditionStuck) != nil || isTrue(intent, v1alpha1.ConditionOverdue) != nil ||
		reason == v1alpha1.ReasonOwnerGone || reason == v1alpha1.ReasonRetained || reason == v1alpha1.ReasonOtherOwner
	if intent.Spec.Word == "" && stopped {
		ok, does := words(intent, owner)
		for i, w := range ok {
			lines = append(lines, fmt.Sprintf("custody intents resolve %s --%s --reason '...'   %s", intent.Name, strings.ToLower(string(w)), does[i]))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing")
	}
	return lines
}

func noun(k v1alpha1.Kind) string {
	switch k {
	case v1alpha1.KindBucket:
		return "A bucket"
	case v1alpha1.KindAccess:
		return "An account with access to buckets"
	case v1alpha1.KindVolume:
		return "A volume"
	case v1alpha1.KindSnapshot:
		return "A snapshot"
	}
	return "A " + string(k)
}

// thing names what a record is of, for a person who decides about it.
func thing(s v1alpha1.IntentSpec) string {
	what := strings.ToLower(string(s.Kind))
	if s.ID == "" {
		return fmt.Sprintf("the %s %s of the driver %s", what, s.Name, s.Driver)
	}
	return fmt.Sprintf("the %s with the %s of the driver %s", what, ids(s), s.Driver)
}

func ids(s v1alpha1.IntentSpec) string {
	if len(s.StrayIDs) == 0 {
		return "id " + s.ID
	}
	all := s.StrayIDs
	if s.ID != "" {
		all = append([]string{s.ID}, all...)
	}
	return "ids " + strings.Join(all, ", ")
}
