package intents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
)

// Annotations of an Intent about which somebody has decided. They are for people;
// nothing reads them.
const (
	AnnotationReason = "custody.dev/decided-because"
	AnnotationBy     = "custody.dev/decided-by"
	AnnotationAt     = "custody.dev/decided-at"
)

// maxReason keeps a reason within what an Event's note takes.
const maxReason = 900

// Plan is a decision that may be made: what it would do to the record as it is now.
type Plan struct {
	Name  string        `json:"name"`
	Word  v1alpha1.Word `json:"word"`
	Does  string        `json:"does"`
	Warns []string      `json:"warnings,omitempty"`

	client *Client
	intent *v1alpha1.Intent
}

// Plan reads an Intent and what it serves and says what a word would do. A word that
// makes no sense there is refused, with what to do instead.
func (c *Client) Plan(ctx context.Context, name string, word v1alpha1.Word) (*Plan, error) {
	refused := func(err error) error {
		return fmt.Errorf("--%s is refused for intent %q: %w", strings.ToLower(string(word)), name, err)
	}
	intent, err := c.get(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := v1alpha1.ReadFormat(intent); err != nil {
		return nil, refused(err)
	}
	cluster, err := c.clusterUID(ctx)
	if err != nil {
		return nil, err
	}
	if intent.Spec.ClusterUID != cluster {
		return nil, refused(fmt.Errorf("it is the record of the cluster %s, and this is %s: it came with a backup, and no sidecar here acts on it. "+
			"Resolve it there. If that cluster is gone for good, docs/backup.md says how to bind what it names, and how to remove the record", intent.Spec.ClusterUID, cluster))
	}
	does, err := consequence(intent, c.owner(ctx, intent), word)
	if err != nil {
		return nil, refused(err)
	}
	p := &Plan{Name: name, Word: word, Does: does, client: c, intent: intent}
	row := rowOf(intent)
	if w := intent.Spec.Word; w != "" && w != word {
		p.Warns = append(p.Warns, fmt.Sprintf("%s was decided before and is not acted on yet; this takes its place", w))
	}
	// Of the words, Delete for what was kept by policy is the only one that needs no trouble.
	if row.Stuck == "" && !row.Overdue && intent.Spec.Phase != v1alpha1.PhaseRetained {
		p.Warns = append(p.Warns, "nothing says that it is stuck: the sidecar may be about to end this by itself")
	}
	if word == v1alpha1.WordRelease && intent.Spec.Kind == v1alpha1.KindAccess {
		p.Warns = append(p.Warns, "a credential that is left in the backend goes on to work")
	}
	return p, nil
}

// Do writes the decision, if the record is still as it was when the plan was made. The
// reason, and who decided, stand in annotations of the Intent and in an Event. The
// sidecar acts on it as soon as it sees it.
//
// The error of an Event that could not be made comes with done set: the decision holds.
func (p *Plan) Do(ctx context.Context, reason string) (done bool, err error) {
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "":
		return false, errors.New("give a reason: what you have looked at, and what you saw")
	case len(reason) > maxReason:
		return false, fmt.Errorf("the reason has %d bytes; %d fit", len(reason), maxReason)
	}
	who := p.client.whoAmI(ctx)
	now := p.client.now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             p.intent.UID,
			"resourceVersion": p.intent.ResourceVersion,
			"annotations":     map[string]any{AnnotationReason: reason, AnnotationBy: who, AnnotationAt: now.UTC().Format(time.RFC3339)},
		},
		"spec": map[string]any{"word": p.Word},
	})
	if err != nil {
		return false, err
	}
	into := &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	switch err := p.client.api.Patch(ctx, into, client.RawPatch(types.MergePatchType, patch)); {
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("intent %q has changed since it was looked at, and nothing was decided: run `custody intents explain %s` and decide again", p.Name, p.Name)
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("intent %q is gone since it was looked at: there is nothing left to decide", p.Name)
	case err != nil:
		return false, p.client.failed(fmt.Sprintf("decide %s on intent %q", p.Word, p.Name), err)
	}
	return true, p.client.tell(ctx, into, p.Word, who, reason, now)
}

// whoAmI is our user name, as the API server knows us.
func (c *Client) whoAmI(ctx context.Context) string {
	review := &authentication.SelfSubjectReview{}
	if err := c.api.Create(ctx, review); err != nil || review.Status.UserInfo.Username == "" {
		return "unknown" // the API server's audit log knows
	}
	return review.Status.UserInfo.Username
}

func (c *Client) tell(ctx context.Context, intent *v1alpha1.Intent, word v1alpha1.Word, who, reason string, now time.Time) error {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "custody-intents-"},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "custody.dev/" + fieldManager,
		ReportingInstance:   fieldManager,
		Action:              "Resolve",
		Reason:              "Decided" + string(word),
		Regarding: core.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: "Intent", Name: intent.Name, UID: intent.UID, ResourceVersion: intent.ResourceVersion,
		},
		Note: who + ": " + reason,
		Type: core.EventTypeNormal,
	}
	if len(event.Note) > maxReason+100 {
		event.Note = strings.ToValidUTF8(event.Note[:maxReason+100], "")
	}
	if err := c.api.Create(ctx, event); err != nil {
		return c.failed("say in an event what was decided", err)
	}
	return nil
}

// words are those that make sense for a record now.
func words(intent *v1alpha1.Intent, owner Owner) (ok []v1alpha1.Word, does []string) {
	for _, w := range []v1alpha1.Word{v1alpha1.WordRetry, v1alpha1.WordDelete, v1alpha1.WordRelease} {
		if text, err := consequence(intent, owner, w); err == nil {
			ok, does = append(ok, w), append(does, text)
		}
	}
	return ok, does
}

func isTrue(intent *v1alpha1.Intent, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(intent.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}
