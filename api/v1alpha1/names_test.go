package v1alpha1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	custody "github.com/custody-storage/custody/api/v1alpha1"
)

// These names are on disk in clusters: a change of any of them loses records.
func TestIntentNameNeverChanges(t *testing.T) {
	const uid = "0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a"
	for _, c := range []struct {
		kind         custody.Kind
		driver, name string
		want         string
	}{
		{custody.KindBucket, "s3.example.com", "bc-" + uid, "bc-" + uid},
		{custody.KindBucket, "other.example.com", "bc-" + uid, "bc-" + uid},
		{custody.KindAccess, "s3.example.com", "ba-" + uid, "ba-" + uid},
		{custody.KindAccess, "s3.example.com", "bc-" + uid, "access-84d03df4a66cd484858650b3fc92b619-bc-0b1d5e6a-3c1f-4f6b"},
		{custody.KindBucket, "s3.example.com", "archive", "bucket-a07e8aad6d5542e7610bc858987e87d4-archive"},
		{custody.KindVolume, "rbd.csi.ceph.com", "pvc-" + uid, "volume-54f37c6ac102202395307d1024feaa8e-pvc-0b1d5e6a-3c1f-4f6"},
		{custody.KindSnapshot, "rbd.csi.ceph.com", "snapshot-" + uid, "snapshot-12080d194d61609418413f26564e8fb6-snapshot-0b1d5e6a-3c1"},
		{custody.KindVolume, "rbd.csi.ceph.com", "Daten für Ä/Ö", "volume-d75d9ca436f3f896f8441abe58aa771b-daten-f-r"},
		{custody.KindVolume, "rbd.csi.ceph.com", "", "volume-461824bb0cc3da01c88e6b7c48c55e40"},
	} {
		if got := custody.IntentName(c.kind, c.driver, c.name); got != c.want {
			t.Errorf("IntentName(%s, %s, %s) = %q, want %q", c.kind, c.driver, c.name, got, c.want)
		}
	}
}

func TestIntentNameIsAlwaysAnObjectName(t *testing.T) {
	kinds := []custody.Kind{custody.KindBucket, custody.KindAccess, custody.KindVolume, custody.KindSnapshot}
	type asked struct {
		kind         custody.Kind
		driver, name string
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) asked {
			return asked{
				rapid.SampledFrom(kinds).Draw(t, "kind"),
				rapid.StringMatching(`[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?`).Draw(t, "driver"),
				rapid.OneOf(rapid.String(), rapid.StringMatching(`b[ac]-[0-9a-f-]{30,40}`)).Draw(t, "name"),
			}
		})
		a, b := draw.Draw(t, "one"), draw.Draw(t, "two")
		one, two := custody.IntentName(a.kind, a.driver, a.name), custody.IntentName(b.kind, b.driver, b.name)
		if problems := validation.IsDNS1123Label(one); len(problems) > 0 {
			t.Fatalf("%q is no object name: %v", one, problems)
		}
		if a != b && one == two {
			t.Fatalf("%v and %v share the name %q", a, b, one)
		}
	})
}

func TestLabelsAreLabels(t *testing.T) {
	driver := "S3." + strings.Repeat("x", 59) + "9"
	for key, value := range custody.Labels(custody.KindSnapshot, driver) {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			t.Errorf("%s=%s: %v", key, value, problems)
		}
	}
}

func TestReadFormat(t *testing.T) {
	for _, c := range []struct {
		format int32
		want   []string // parts of the error; none for no error
	}{
		{format: custody.FormatVersion},
		{format: custody.FormatVersion + 1, want: []string{`"bc-1"`, "format 2", "up to 1", "upgrade"}},
		{format: 0, want: []string{`"bc-1"`, "format 0", "not written by Custody", "kubectl get intents.custody.dev bc-1"}},
		{format: -1, want: []string{`"bc-1"`, "format -1", "not written by Custody"}},
	} {
		intent := &custody.Intent{ObjectMeta: metav1.ObjectMeta{Name: "bc-1"}, Spec: custody.IntentSpec{FormatVersion: c.format}}
		err := custody.ReadFormat(intent)
		if len(c.want) == 0 {
			if err != nil {
				t.Errorf("format %d: %v", c.format, err)
			}
			continue
		}
		var format *custody.FormatError
		if !errors.As(err, &format) || format.Found != c.format {
			t.Errorf("format %d: want a FormatError, have %v", c.format, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("format %d: the error lacks %q: %v", c.format, part, err)
			}
		}
	}
}

func TestEveryKindIsRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := custody.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Intent", "IntentList"} {
		if !scheme.Recognizes(custody.GroupVersion().WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
}

// What a program reads and writes back unchanged must be stored unchanged: a field
// that came or went on the way would be a write of its own.
func TestRecordSurvivesReadAndWriteBack(t *testing.T) {
	for _, text := range []string{accessIntent, newIntent} {
		stored := store(t, text)
		var intent custody.Intent
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, &intent, true); err != nil {
			t.Fatalf("the types lack a field of the definition: %v", err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&intent)
		if err != nil {
			t.Fatal(err)
		}
		back := &unstructured.Unstructured{Object: content}
		written, err := server.Objects(t, back).Update(t.Context(), back, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Fatal(err)
		}
		if written.GetResourceVersion() != stored.GetResourceVersion() {
			t.Errorf("writing it back unchanged has changed it:\n%s", cmp.Diff(stored.Object, written.Object))
		}
	}
}
