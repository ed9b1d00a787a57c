package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/controller"
)

func TestAnotherControllerIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.class(driverManual, api.DeletionPolicyDelete)
	quiet, loud := w.newClaim("quiet"), w.newClaim("loud")
	w.bucketOf(quiet)
	before := gauge(t, "custody_cosi_other_controller")
	w.bucketOf(loud)
	patch := client.MergeFrom(loud.DeepCopy())
	loud.Status.ReadyToUse = ptr.To(false)
	if err := admin.Status().Patch(w.ctx, loud, patch, client.FieldOwner("upstream-controller")); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent(loud, controller.ReasonOtherController)
	if after := gauge(t, "custody_cosi_other_controller"); before != 0 || after != 1 {
		t.Errorf("the metric went from %v to %v, want 0 to 1", before, after)
	}
	if e := w.events(quiet, ""); len(e) > 0 {
		t.Errorf("an event about a claim that nobody else wrote: %s", e[0].Note)
	}
}

func gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// Two controllers act at once, as during an update that went wrong (fault 11 of the COSI
// issues). They get in each other's way and nobody else's.
func TestTwoControllersAtOnce(t *testing.T) {
	w := newWorld(t)
	account, err := kube.Account(w.ctx, system, accountName)
	if err != nil {
		t.Fatal(err)
	}
	second := newGate()
	stop, err := startController(account, second, prometheus.NewRegistry(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	w.class(driverFake, api.DeletionPolicyDelete)
	w.accessClass(nil)
	// Both must be at work before there is something to fight over.
	w.readyClaim("first")
	w.await("the second controller reads along", func() bool {
		return len(second.requests(func(s sent) bool { return s.method == "GET" })) > 5
	})

	const n = 20
	var claims []*api.BucketClaim
	var accesses []*api.BucketAccess
	for i := range n {
		claims = append(claims, w.newClaim(fmt.Sprintf("c%d", i)))
		access := w.access(fmt.Sprintf("a%d", i), claims[i].Name)
		w.create(access)
		accesses = append(accesses, access)
	}
	for i := range n {
		w.awaitReady(claims[i])
		w.awaitAccessReady(accesses[i])
	}
	if got := len(w.bucketsOfWorld()); got != n+1 {
		t.Errorf("%d Buckets for %d claims", got, n+1)
	}
	for i := range n {
		w.delete(claims[i])
		w.delete(accesses[i])
	}
	for i := range n {
		w.awaitGone(accesses[i])
		w.awaitGone(claims[i])
	}
	if got := len(w.bucketsOfWorld()); got != 1 {
		t.Errorf("%d Buckets are left, want 1", got)
	}
	if len(second.requests(sent.write)) == 0 {
		t.Error(errors.New("the second controller wrote nothing, so this proves nothing"))
	}
}
