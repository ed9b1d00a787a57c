package controller

import (
	"bytes"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Two COSI controllers in one cluster work against each other (fault 11 of the COSI
// issues, if they are not of one lease). The other one gives itself away in
// managedFields: a status, or upstream's finalizer, written by another field manager
// since this program started. What was written before is an upgrade, not a rival.

// keepOthers strips managedFields, half the size of an object, down to the entries
// that tell of another controller.
func keepOthers(since time.Time) toolscache.TransformFunc {
	// The API server stamps whole seconds.
	since = since.Truncate(time.Second).Add(time.Second)
	return func(in any) (any, error) {
		object, ok := in.(metav1.Object)
		if !ok { // a tombstone of the cache
			return in, nil
		}
		var kept []metav1.ManagedFieldsEntry
		for _, f := range object.GetManagedFields() {
			if byOther(f, since) {
				f.FieldsV1 = nil
				kept = append(kept, f)
			}
		}
		object.SetManagedFields(kept)
		return in, nil
	}
}

func byOther(f metav1.ManagedFieldsEntry, since time.Time) bool {
	if f.Manager == v1alpha1.FieldManager || f.Time == nil || f.Time.Time.Before(since) {
		return false
	}
	if f.Subresource == "status" {
		return true
	}
	return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(api.ProtectionFinalizer))
}

// watchOther says it if another controller wrote the object, as it is in the cache.
func (b *base) watchOther(object client.Object, kind string) {
	for _, f := range object.GetManagedFields() {
		b.metrics.otherSeen.Store(time.Now().UnixNano())
		what := "put " + api.ProtectionFinalizer + " on it"
		if f.Subresource == "status" {
			what = "wrote its status"
		}
		b.warnOnce(object, kind, "Watch", ReasonOtherController, fmt.Sprintf(
			"another COSI controller seems to be at work: field manager %q %s at %s. Run one of the two: scale the other to zero",
			f.Manager, what, f.Time.UTC().Format(time.RFC3339)))
	}
}
