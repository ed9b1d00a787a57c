package intents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/intents"
)

// bucketIntent makes the record of a bucket of this cluster.
func bucketIntent(t *testing.T, name string, change func(*v1alpha1.IntentSpec)) *v1alpha1.Intent {
	t.Helper()
	driver := strings.ToLower(t.Name()) + ".test"
	i := &v1alpha1.Intent{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: v1alpha1.Labels(v1alpha1.KindBucket, driver)},
		Spec: v1alpha1.IntentSpec{FormatVersion: 1, ClusterUID: cluster, Kind: v1alpha1.KindBucket, Driver: driver, Name: name,
			Owner: v1alpha1.Owner{APIVersion: cosi.GroupVersion().String(), Kind: "Bucket", Name: name, UID: "gone"},
			Phase: v1alpha1.PhaseLive, Origin: v1alpha1.OriginCreated, ID: name, Proven: true},
	}
	if change != nil {
		change(&i.Spec)
	}
	if err := root.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	return i
}

func says(t *testing.T, i *v1alpha1.Intent, kind, reason, text string) {
	t.Helper()
	settled := metav1.Condition{Type: v1alpha1.ConditionSettled, Status: "False", Reason: reason, Message: text, LastTransitionTime: metav1.Now()}
	other := settled
	other.Type, other.Status = kind, "True"
	i.Status.Conditions = []metav1.Condition{settled, other}
	if err := root.Status().Update(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

func bucket(t *testing.T, name string) *cosi.Bucket {
	t.Helper()
	b := &cosi.Bucket{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cosi.BucketSpec{DriverName: "x.test", DeletionPolicy: cosi.DeletionPolicyDelete,
		BucketClaimRef: cosi.BucketClaimReference{Namespace: "default", Name: "photos"}}}
	if err := root.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestList(t *testing.T) {
	c := open(t, as(t, "list", "custody-intents-view"))
	bucketIntent(t, "list-calm", func(s *v1alpha1.IntentSpec) { s.Owner.UID = bucket(t, "list-calm").UID })
	says(t, bucketIntent(t, "list-stuck", func(s *v1alpha1.IntentSpec) { s.Doubt = true }), v1alpha1.ConditionStuck, v1alpha1.ReasonNoWayToLook, "no way")
	bucketIntent(t, "list-going", func(s *v1alpha1.IntentSpec) { s.Phase, s.ID = v1alpha1.PhaseDeleting, "odd\x1b[31m" })
	bucketIntent(t, "list-access", func(s *v1alpha1.IntentSpec) { s.Kind, s.Doubt = v1alpha1.KindAccess, true })

	const driver = "testlist.test"
	for _, tc := range []struct {
		name string
		f    intents.Filter
		want string
	}{
		{"all of a driver, trouble first", intents.Filter{Driver: driver}, "list-stuck list-going list-access list-calm"},
		{"stuck", intents.Filter{Driver: driver, Stuck: true}, "list-stuck"},
		{"doubt", intents.Filter{Driver: driver, Doubt: true}, "list-stuck list-access"},
		{"phase in any case", intents.Filter{Driver: driver, Phase: "deleting"}, "list-going"},
		{"kind and doubt", intents.Filter{Driver: driver, Kind: "access", Doubt: true}, "list-access"},
		{"another driver", intents.Filter{Driver: "none.test"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows, err := c.List(t.Context(), tc.f)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, r := range rows {
				names = append(names, r.Name)
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if _, err := c.List(t.Context(), intents.Filter{Phase: "lost"}); err == nil || !strings.Contains(err.Error(), "--phase") {
		t.Errorf("a phase that is none: %v", err)
	}
	rows, err := c.List(t.Context(), intents.Filter{Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	var table, wide, asJSON bytes.Buffer
	for _, err := range []error{intents.WriteTable(&table, rows, time.Now(), false), intents.WriteTable(&wide, rows, time.Now(), true), intents.WriteJSON(&asJSON, rows)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"stuck: NoWayToLook", "under way", "BucketClaim default/photos", "settled"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	if strings.Contains(wide.String(), "\x1b") || !strings.Contains(wide.String(), "odd?[31m") {
		t.Errorf("a control character reaches the terminal:\n%q", wide.String())
	}
	var back []map[string]any
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || len(back) != 4 || back[0]["stuck"] != "NoWayToLook" {
		t.Errorf("JSON: %v\n%s", err, asJSON.String())
	}
}

func TestNothingIsAnEmptyList(t *testing.T) {
	var out bytes.Buffer
	if err := intents.WriteJSON(&out, []intents.Row(nil)); err != nil || strings.TrimSpace(out.String()) != "[]" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestExplain(t *testing.T) {
	c := open(t, as(t, "explain", "custody-intents-view"))
	text := func(name string) string {
		t.Helper()
		e, err := c.Explain(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := e.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	has := func(name string, want ...string) {
		t.Helper()
		got := text(name)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q:\n%s", name, w, got)
			}
		}
	}
	b := bucket(t, "explain-well")
	bucketIntent(t, "explain-well", func(s *v1alpha1.IntentSpec) { s.Owner.UID = b.UID })
	has("explain-well", "of BucketClaim default/photos", "it serves", "Bucket explain-well exists", "nothing")

	bucketIntent(t, "explain-gone", nil)
	has("explain-gone", "OwnerGone", "Bucket explain-gone does not exist", "resolve explain-gone --delete", "resolve explain-gone --release")

	says(t, bucketIntent(t, "explain-stuck", func(s *v1alpha1.IntentSpec) { s.Phase, s.ID, s.Doubt = v1alpha1.PhaseDeleting, "", true }),
		v1alpha1.ConditionStuck, v1alpha1.ReasonNoWayToLook, "no way to look: the driver said so")
	has("explain-stuck", "no id is known", "it is in doubt", "NoWayToLook: no way to look: the driver said so", "--bucket-id-template", "resolve explain-stuck --release")

	bucketIntent(t, "explain-elsewhere", func(s *v1alpha1.IntentSpec) { s.ClusterUID = "another" })
	has("explain-elsewhere", "OtherCluster", "another", "docs/backup.md")

	bucketIntent(t, "explain-newer", func(s *v1alpha1.IntentSpec) { s.FormatVersion = 7 })
	has("explain-newer", "NewerFormat", "format 7", "Upgrade")

	if _, err := c.Explain(t.Context(), "no-such"); err == nil || !strings.Contains(err.Error(), "custody intents list") {
		t.Errorf("an intent that is not there: %v", err)
	}
}

func TestResolve(t *testing.T) {
	adminConfig := as(t, "resolve-admin", "custody-intents-admin")
	admin := open(t, adminConfig)
	ctx := t.Context()

	i := bucketIntent(t, "resolve-gone", nil)
	plan, err := admin.Plan(ctx, i.Name, v1alpha1.WordDelete)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan.Does, "resolve-gone") {
		t.Errorf("the plan does not say what goes: %q", plan.Does)
	}
	if _, err := plan.Do(ctx, "  "); err == nil {
		t.Error("no reason was asked for")
	}
	if done, err := plan.Do(ctx, "the team has left"); !done || err != nil {
		t.Fatalf("done %v, %v", done, err)
	}
	if err := root.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
		t.Fatal(err)
	}
	if i.Spec.Word != v1alpha1.WordDelete || i.Annotations[intents.AnnotationReason] != "the team has left" ||
		!strings.Contains(i.Annotations[intents.AnnotationBy], "resolve-admin") {
		t.Errorf("word %q, annotations %v", i.Spec.Word, i.Annotations)
	}
	var events eventsv1.EventList
	if err := root.List(ctx, &events, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	told := false
	for _, e := range events.Items {
		told = told || e.Regarding.Name == i.Name && e.Reason == "DecidedDelete" && strings.Contains(e.Note, "the team has left")
	}
	if !told {
		t.Errorf("no event tells of the decision: %v", events.Items)
	}

	// Somebody writes between the look and the decision.
	other := bucketIntent(t, "resolve-raced", nil)
	if plan, err = admin.Plan(ctx, other.Name, v1alpha1.WordRelease); err != nil {
		t.Fatal(err)
	}
	other.Spec.StrayIDs = []string{"one-more"}
	if err := root.Update(ctx, other); err != nil {
		t.Fatal(err)
	}
	if done, err := plan.Do(ctx, "looked"); done || err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a decision on what was not looked at: done %v, %v", done, err)
	}

	// A bucket that is in use is not deleted.
	b := bucket(t, "resolve-used")
	bucketIntent(t, "resolve-used", func(s *v1alpha1.IntentSpec) { s.Owner.UID = b.UID })
	for _, w := range []v1alpha1.Word{v1alpha1.WordDelete, v1alpha1.WordRelease, v1alpha1.WordRetry} {
		if _, err := admin.Plan(ctx, "resolve-used", w); err == nil || !strings.Contains(err.Error(), "is refused") {
			t.Errorf("%s on a bucket in use: %v", w, err)
		}
	}
	bucketIntent(t, "resolve-elsewhere", func(s *v1alpha1.IntentSpec) { s.ClusterUID = "another" })
	if _, err := admin.Plan(ctx, "resolve-elsewhere", v1alpha1.WordRelease); err == nil || !strings.Contains(err.Error(), "docs/backup.md") {
		t.Errorf("another cluster's record: %v", err)
	}
	bucketIntent(t, "resolve-newer", func(s *v1alpha1.IntentSpec) { s.FormatVersion = 7 })
	if _, err := admin.Plan(ctx, "resolve-newer", v1alpha1.WordRelease); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a newer record: %v", err)
	}

	// Who may only look is told what lacks.
	bucketIntent(t, "resolve-viewer", nil)
	plan, err = open(t, as(t, "resolve-viewer", "custody-intents-view")).Plan(ctx, "resolve-viewer", v1alpha1.WordDelete)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := plan.Do(ctx, "looked"); done || err == nil || !strings.Contains(err.Error(), "custody-intents-admin") {
		t.Errorf("a viewer decides: done %v, %v", done, err)
	}
}

// TestPolicy tries what who may decide may do besides: nothing.
func TestPolicy(t *testing.T) {
	admin := rawClient(t, as(t, "policy-admin", "custody-intents-admin"))
	// The control: the same rights in RBAC, and more, but not the verb that the policy asks for.
	editor := rawClient(t, asEditor(t, "policy-editor"))
	ctx := t.Context()
	patch := func(c client.Client, name, text string) error {
		return c.Patch(ctx, &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	const word = `{"spec":{"word":"Release"},"metadata":{"annotations":{"a":"b"}}}`
	n := 0
	intent := func() string {
		n++
		return bucketIntent(t, fmt.Sprintf("policy-%d", n), func(s *v1alpha1.IntentSpec) {
			s.StrayIDs, s.Inputs.Parameters = []string{"s"}, map[string]string{"a": "b"}
		}).Name
	}
	// A policy is in force a moment after it is made.
	first := intent()
	if err := poll(ctx, func() error {
		if err := patch(editor, first, `{"spec":{"phase":"Deleting"}}`); err == nil {
			return fmt.Errorf("the policy is not in force")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := patch(admin, intent(), word); err != nil {
		t.Errorf("the word of who may decide is refused: %v", err)
	}
	if err := patch(editor, intent(), word); !apierrors.IsForbidden(err) {
		t.Errorf("the word of who may not decide: %v", err)
	}
	for _, text := range []string{
		`{"spec":{"phase":"Deleting"}}`, `{"spec":{"word":"Delete","id":"else"}}`, `{"spec":{"strayIDs":null}}`, `{"spec":{"new":"field"}}`,
		`{"spec":{"inputs":{"parameters":{"a":"c"}}}}`, `{"metadata":{"labels":{"custody.dev/driver":"else"}}}`, `{"metadata":{"finalizers":["a.test/b"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"u"}]},"spec":{"word":"Delete"}}`,
	} {
		if err := patch(admin, intent(), text); !apierrors.IsForbidden(err) {
			t.Errorf("patch %s: %v", text, err)
		}
	}
	if err := editor.Delete(ctx, &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: intent()}}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: %v", err)
	}
	if err := editor.Status().Patch(ctx, &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{Name: intent()}},
		client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":7}}`))); !apierrors.IsForbidden(err) {
		t.Errorf("status: %v", err)
	}
}
