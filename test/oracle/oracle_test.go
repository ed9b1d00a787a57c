package oracle_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	custodyv1 "github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/test/oracle"
)

const driver = "double.test"

type fixed []oracle.Item

func (f fixed) Items(context.Context) ([]oracle.Item, error) { return f, nil }

func intent(name string, phase custodyv1.Phase, id string, strays ...string) *custodyv1.Intent {
	kind := custodyv1.KindBucket
	if strings.HasPrefix(name, "ba-") {
		kind = custodyv1.KindAccess
	}
	return &custodyv1.Intent{ObjectMeta: v1.ObjectMeta{Name: name},
		Spec: custodyv1.IntentSpec{Driver: driver, Kind: kind, Name: name, Phase: phase, ID: id, StrayIDs: strays}}
}

func item(id, name string) oracle.Item {
	i := oracle.Item{Driver: driver, Kind: custodyv1.KindBucket, ID: id, Name: name}
	if strings.HasPrefix(name, "ba-") {
		i.Kind, i.Keys = custodyv1.KindAccess, 1
	}
	return i
}

func TestCompare(t *testing.T) {
	ready := true
	broken := intent("bc-1", custodyv1.PhaseDeleting, "")
	broken.Status.Conditions = []v1.Condition{{Type: custodyv1.ConditionStuck, Status: v1.ConditionTrue, Reason: "NoWayToLook", Message: "look by hand"}}
	twoKeys := item("k", "ba-1")
	twoKeys.Keys = 2
	bucket := &cosi.Bucket{ObjectMeta: v1.ObjectMeta{Name: "bc-1"}, Spec: cosi.BucketSpec{DriverName: driver}, Status: cosi.BucketStatus{ReadyToUse: &ready}}
	waiting := bucket.DeepCopy()
	waiting.Status = cosi.BucketStatus{Error: cosi.NewError(v1.Now().Time, "CreateFailed", "the driver says no")}
	elsewhere := waiting.DeepCopy()
	elsewhere.Name, elsewhere.Spec.DriverName = "bc-2", "other"
	for _, c := range []struct {
		name    string
		items   fixed
		objects []client.Object
		keeps   []oracle.Keep
		want    string
		why     string
	}{
		{"at rest", fixed{item("a", "bc-1"), item("k", "ba-1")},
			[]client.Object{intent("bc-1", custodyv1.PhaseLive, "a"), intent("ba-1", custodyv1.PhaseLive, "k"), intent("bc-0", custodyv1.PhaseReleased, "z"), bucket, elsewhere}, nil,
			"orphans=0 doubles=0 stuck=0", ""},
		{"no Intent", fixed{item("a", "bc-1")}, nil, nil, "orphans=1 doubles=0 stuck=0", "no Intent names it"},
		{"another driver's Intent", fixed{{Driver: "other", Kind: custodyv1.KindBucket, ID: "a"}}, []client.Object{intent("bc-1", custodyv1.PhaseReleased, "a")}, nil,
			"orphans=1 doubles=0 stuck=0", "no Intent names it"},
		{"late, under a tombstone", fixed{item("a", "bc-1")}, []client.Object{intent("bc-1", custodyv1.PhaseReleased, "")}, nil,
			"orphans=1 doubles=0 stuck=0", "is released"},
		{"retained", fixed{item("a", "bc-1")}, []client.Object{intent("bc-1", custodyv1.PhaseRetained, "a")}, nil, "orphans=0 doubles=0 stuck=0", ""},
		{"a stray", fixed{item("a", "bc-1"), item("b", "bc-1")}, []client.Object{intent("bc-1", custodyv1.PhaseLive, "a", "b")}, nil,
			"orphans=0 doubles=1 stuck=0", "has a too"},
		{"one that nobody recorded", fixed{item("a", "bc-1"), item("b", "bc-1")}, []client.Object{intent("bc-1", custodyv1.PhaseLive, "a")}, nil,
			"orphans=0 doubles=1 stuck=0", "has a too"},
		{"two keys", fixed{twoKeys}, []client.Object{intent("ba-1", custodyv1.PhaseLive, "k")}, nil, "orphans=0 doubles=1 stuck=0", "2 live keys"},
		{"a stuck Intent", nil, []client.Object{broken}, nil, "orphans=0 doubles=0 stuck=1", "NoWayToLook: look by hand"},
		{"an object that waits", nil, []client.Object{waiting}, nil, "orphans=0 doubles=0 stuck=1", "the driver says no"},
		{"served, and not there", nil, []client.Object{intent("bc-1", custodyv1.PhaseLive, "a")}, nil, "orphans=0 doubles=0 stuck=0 lost=1", "no such id"},
		{"kept, and gone", nil, nil, []oracle.Keep{{Kind: "BucketClaim", Name: "ns/c", Check: func(context.Context) error { return errors.New("the object is not there") }}},
			"orphans=0 doubles=0 stuck=0 lost=1", "the object is not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{custodyv1.AddToScheme, cosi.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).Build()
			r, err := oracle.Compare(t.Context(), oracle.Options{Reader: reader, Drivers: []string{driver}, Backends: []oracle.Inventory{c.items}, Keeps: c.keeps})
			if err != nil {
				t.Fatal(err)
			}
			if r.String() != c.want || !strings.Contains(r.Details(), c.why) || r.Clean() != (c.why == "") {
				t.Errorf("got %s\n%swant %s, %q", r, r.Details(), c.want, c.why)
			}
		})
	}
}

func TestWithoutIntents(t *testing.T) {
	ready := true
	scheme := runtime.NewScheme()
	if err := errors.Join(custodyv1.AddToScheme(scheme), cosi.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &cosi.Bucket{ObjectMeta: v1.ObjectMeta{Name: "bc-1"}, Spec: cosi.BucketSpec{DriverName: driver}, Status: cosi.BucketStatus{ReadyToUse: &ready, BucketID: "a"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket).Build()
	r, err := oracle.Compare(t.Context(), oracle.Options{Reader: reader, Drivers: []string{driver}, WithoutIntents: true,
		Backends: []oracle.Inventory{fixed{item("a", "bc-1"), item("b", "bc-2")}}})
	if err != nil || r.Orphans != 1 || r.Findings[0].ID != "b" {
		t.Errorf("%v, %v", r, err)
	}
}
