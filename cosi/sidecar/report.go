package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/provision"
)

const (
	// patience is how often the API may fail before it is said. Conflicts are never said.
	patience = 3
	// claimPace is how often a Bucket that waits for its claim looks: the claim is not watched.
	claimPace = 10 * time.Second
	// maxEvent is what an Event's note takes, less some for safety.
	maxEvent = 1000
	// maxAnswer is how much of an answer is shown. A driver may answer megabytes, and the API refuses a condition with
	// more than 32 KiB and an object with more than etcd takes: nothing at all would be said then.
	maxAnswer = 4 << 10
)

// report tells users, admins and metrics where a name stands, and says when to look again. It writes only what has
// changed, and nothing where all goes well.
func (a *adapter) report(ctx context.Context, e *entry, next provision.Next) (after time.Duration) {
	n := e.toSay(next)
	after = next.After
	if next.Kind != provision.Done && after <= 0 {
		after = a.options.RetryFirst
	}
	overdue, left := a.overdue(e, next)
	if left > 0 && (after == 0 || left < after) {
		after = left
	}
	if !e.view.note.empty() && (after == 0 || claimPace < after) {
		after = claimPace
	}
	r := e.memo.Rec
	stuck := next.Kind == provision.Stuck || next.Why.Stuck() && next.Why != provision.WhyRetained
	a.entries.note(e.name, state{phase: string(stored(phases, r.Phase)), doubt: r.Doubt, stuck: stuck, overdue: overdue})

	ctx, cancel := a.request(ctx)
	defer cancel()
	var failed error
	if next.Kind != provision.Done {
		failed = a.showError(ctx, e, n)
	}
	if e.intent != nil && r.Hold == provision.HoldNone && failed == nil {
		failed = a.showConditions(ctx, e, a.conditions(e, next, n, stuck, overdue))
	}
	if failed != nil && a.hard.Err() == nil {
		a.log.Info("could not say what is in the way", "name", e.name, "reason", n.word, "error", failed.Error())
		after = a.options.RetryFirst // once more
	}
	if n != e.told {
		e.told = n
		if !n.empty() {
			a.log.Info(n.text, "kind", a.kind.intents(), "name", e.name, "reason", n.word)
			a.warn(e, n)
		}
	}
	a.noticeOther(e)
	return after
}

// toSay works out what stands in the way, in words; nothing if nothing does.
func (e *entry) toSay(next provision.Next) note {
	why := next.Why
	plain := note{why.String(), why.Text()}
	withAnswer := plain
	answer := cut(e.answer, maxAnswer)
	if answer != "" {
		withAnswer.text += ": " + answer
	}
	switch why {
	case provision.WhyNone, provision.WhyRetained, provision.WhyTombstone:
		return e.view.note
	case provision.WhySettle:
		if next.Kind == provision.Done {
			return note{}
		}
		return plain
	case provision.WhyStore:
		if e.memo.Tries < patience {
			return note{}
		}
		return withAnswer
	case provision.WhyHold:
		if !e.hold.empty() {
			return e.hold
		}
		return plain
	case provision.WhyRefused, provision.WhyLost:
		if !e.refusal.empty() {
			return note{e.refusal.word, cut(e.refusal.text, maxAnswer)}
		}
		return plain
	case provision.WhyCreate, provision.WhyDelete, provision.WhyFetch, provision.WhyLook:
		if e.down {
			return note{v1alpha1.ReasonDriverDown, "the driver is not reached; it is tried again: " + answer}
		}
		return withAnswer
	case provision.WhyTaken, provision.WhyTemplate, provision.WhyNoWay, provision.WhyNoWayAgain:
		return withAnswer
	}
	return plain
}

// overdue tells whether a name has not come to rest for too long, and if not, when it will have been.
func (a *adapter) overdue(e *entry, next provision.Next) (overdue bool, left time.Duration) {
	if next.Kind == provision.Done {
		e.since = time.Time{}
		return false, 0
	}
	begun := e.since
	if begun.IsZero() {
		begun = time.Now()
	}
	switch {
	case e.object != nil && !e.object.GetDeletionTimestamp().IsZero():
		begun = earlier(begun, e.object.GetDeletionTimestamp().Time)
	case e.intent != nil && e.memo.Rec.Phase == provision.PhaseMaking:
		begun = earlier(begun, e.intent.CreationTimestamp.Time)
	}
	e.since = begun
	left = a.options.Overdue - time.Since(begun)
	return left <= 0, max(0, left)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// showError puts what is in the way into the object's status, if it is not there yet.
func (a *adapter) showError(ctx context.Context, e *entry, n note) error {
	if e.object == nil || n.empty() {
		return nil
	}
	ready, shown := a.kind.shown(e.object)
	want := a.timestamped(shown, n)
	// What users hold is not there any more.
	unready := n.word == v1alpha1.ReasonCredentialsLost
	if sameError(shown, want) && ready != nil && (!unready || !*ready) {
		return nil
	}
	status := map[string]any{"error": want}
	if ready == nil || unready {
		status["readyToUse"] = false // the API asks for it in every status
	}
	err := a.patchStatus(ctx, e, status, a.kind.blank(client.ObjectKeyFromObject(e.object)))
	if err != nil && e.object.GetDeletionTimestamp() != nil {
		return nil // it is going, and so is whoever could read it
	}
	return err
}

// timestamped is the error to show. One that says the same keeps its time.
func (w *world) timestamped(shown *cosi.TimestampedError, n note) *cosi.TimestampedError {
	want := cosi.NewError(time.Now(), n.word, n.text)
	if sameError(shown, want) {
		return shown
	}
	return want
}

// conditions are those that an Intent should have. Where nothing is wrong and nothing was, there are none: they would
// cost a write for each bucket.
func (a *adapter) conditions(e *entry, next provision.Next, n note, stuck, overdue bool) []metav1.Condition {
	var want []metav1.Condition
	set := func(kind string, holds bool, reason, text string) {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		want = append(want, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text, ObservedGeneration: e.intent.Generation})
	}
	had := func(kind string) bool { return meta.FindStatusCondition(e.intent.Status.Conditions, kind) != nil }
	switch {
	case !n.empty() && next.Kind != provision.Done:
		set(v1alpha1.ConditionSettled, false, n.word, n.text)
	case next.Kind == provision.Done && had(v1alpha1.ConditionSettled):
		set(v1alpha1.ConditionSettled, true, restReason(e.memo.Rec.Phase), "every call was answered and kept")
	}
	if stuck && !n.empty() {
		set(v1alpha1.ConditionStuck, true, n.word, n.text)
	} else if !stuck && had(v1alpha1.ConditionStuck) {
		set(v1alpha1.ConditionStuck, false, v1alpha1.ReasonUnhindered, "nothing is in the way")
	}
	if e.memo.Rec.Open() {
		set(v1alpha1.ConditionInDoubt, true, v1alpha1.ReasonCallUnanswered, "a create was never heard of: a look in the backend comes before release")
	} else if had(v1alpha1.ConditionInDoubt) {
		set(v1alpha1.ConditionInDoubt, false, v1alpha1.ReasonAnswered, "every create was answered")
	}
	if overdue {
		reason := n.word
		if reason == "" {
			reason = v1alpha1.ReasonAPIUnavailable
		}
		set(v1alpha1.ConditionOverdue, true, reason, fmt.Sprintf("this has not come to rest for %s", a.options.Overdue))
	} else if had(v1alpha1.ConditionOverdue) {
		set(v1alpha1.ConditionOverdue, false, v1alpha1.ReasonUnhindered, "it has come to rest or goes on")
	}
	return want
}

func restReason(p provision.Phase) string {
	switch p {
	case provision.PhaseReleased, provision.PhaseSweeping:
		return v1alpha1.ReasonReleased
	case provision.PhaseRetained:
		return v1alpha1.ReasonRetained
	}
	return v1alpha1.ReasonAnswered
}

// showConditions writes those conditions whose status or reason has changed.
func (a *adapter) showConditions(ctx context.Context, e *entry, want []metav1.Condition) error {
	all := append([]metav1.Condition{}, e.intent.Status.Conditions...)
	changed := false
	for _, c := range want {
		have := meta.FindStatusCondition(all, c.Type)
		if have == nil || have.Status != c.Status || have.Reason != c.Reason {
			changed = meta.SetStatusCondition(&all, c) || changed
		}
	}
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": e.intent.UID},
		"status":   map[string]any{"observedGeneration": e.intent.Generation, "conditions": all},
	})
	if err != nil {
		return err
	}
	into := &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: e.intent.Name}}
	if err := a.cached.Status().Patch(ctx, into, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	e.intent = into
	return nil
}

// warn makes an Event on the object, or on the Intent where there is none.
func (a *adapter) warn(e *entry, n note) {
	text := cut(n.text, maxEvent)
	switch {
	case e.object != nil:
		a.events.Eventf(e.object, nil, core.EventTypeWarning, n.word, actionServe, "%s", text)
	case e.intent != nil:
		a.events.Eventf(e.intent, nil, core.EventTypeWarning, n.word, actionServe, "%s", text)
	}
}

// cut gives the beginning of a text, as text that the API takes.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// actionServe is what an Event says that we were about.
const actionServe = "Serve"

// noticeOther says that another program writes the status of an object that we serve: two orchestrators of one driver
// undo each other's work. It was found in the managed fields of the object as it was read: once we have written what it
// had changed, they don't name it any more.
func (a *adapter) noticeOther(e *entry) {
	other := e.other
	if e.object == nil || other == "" || other == e.toldOf {
		return
	}
	e.toldOf = other
	n := note{v1alpha1.ReasonOtherController, fmt.Sprintf("%q writes the status of this object too; two COSI sidecars of one driver must not be active at once: stop the other one, or whatever else writes here", other)}
	a.metrics.otherController(a.kind.intents())
	a.log.Info(n.text, "kind", a.kind.intents(), "name", e.name, "reason", n.word)
	a.warn(e, n)
}

// otherWriter is another program that has written an object's status since a moment; "" if none has.
func otherWriter(o client.Object, from time.Time) string {
	for _, m := range o.GetManagedFields() {
		// Their time is in whole seconds.
		if m.Subresource == "status" && m.Manager != v1alpha1.FieldManager && m.Time != nil && !m.Time.Time.Before(from.Truncate(time.Second)) {
			return m.Manager
		}
	}
	return ""
}

// slim drops from objects in the cache what is never read there. Who else has written the status stays.
func slim(o any) (any, error) {
	object, ok := o.(client.Object)
	if !ok {
		return o, nil
	}
	var others []metav1.ManagedFieldsEntry
	for _, m := range object.GetManagedFields() {
		if m.Subresource == "status" && m.Manager != v1alpha1.FieldManager {
			m.FieldsV1 = nil
			others = append(others, m)
		}
	}
	object.SetManagedFields(others)
	return object, nil
}
