package sidecar_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A bucket for which all goes well costs three writes and one call; a restart costs neither.
func TestBucketCosts(t *testing.T) {
	w := newWorld(t)
	c := w.sidecar()
	claim, b := w.readyBucket("one")
	intents := "/apis/custody.dev/v1alpha1/intents"
	want := []string{"POST " + intents, "PUT " + intents + "/" + b.Name, "PATCH /apis/objectstorage.k8s.io/v1alpha2/buckets/" + b.Name + "/status"}
	w.stays("three writes", func() bool { return len(c.writes.all()) <= 3 })
	if diff := cmp.Diff(want, c.writes.all()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create " + b.Name}, w.driver.log()); diff != "" {
		t.Errorf("driver calls (-want +got):\n%s", diff)
	}
	if i := w.intent(b); i.Spec.ID != b.Status.BucketID || len(i.Status.Conditions) != 0 || i.Spec.Attempt != "" || i.Spec.Doubt {
		t.Errorf("intent %+v, conditions %v", i.Spec, i.Status.Conditions)
	}
	if diff := cmp.Diff(map[string]string{"COSI_S3_BUCKET_ID": b.Name, "COSI_S3_ENDPOINT": "http://s3.test", "COSI_S3_REGION": "here", "COSI_S3_ADDRESSING_STYLE": "path"}, b.Status.BucketInfo); diff != "" {
		t.Errorf("bucketInfo (-want +got):\n%s", diff)
	}
	c.stop(w)

	again := w.sidecar()
	other := w.claim("two")
	w.isReady(w.bucket(other)) // it has come so far
	w.stays("no call for what is settled", func() bool { return w.driver.called("") == 2 })
	if got := len(again.writes.all()); got != 3 {
		t.Errorf("%d writes after a restart, want 3 for the new bucket: %v", got, again.writes.all())
	}

	w.deleteBoth(claim, b)
	w.gone(b)
	w.eventually("the Intent is gone", func() bool { return w.intent(b) == nil })
	if got := w.driver.called("delete"); got != 1 {
		t.Errorf("%d deletes, want 1", got)
	}
}

// An access costs four writes with one Secret; the Secret has both sets of keys.
func TestAccessCosts(t *testing.T) {
	w := newWorld(t)
	c := w.sidecar()
	_, b := w.readyBucket("one")
	before := len(c.writes.all())
	a := w.access("one", b)
	w.isReady(a)
	w.stays("four writes", func() bool { return len(c.writes.all())-before <= 4 })
	if got := len(c.writes.all()) - before; got != 4 {
		t.Errorf("%d writes, want 4: %v", got, c.writes.all()[before:])
	}
	s := &core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "one-0"}}
	if !w.get(s) {
		t.Fatal("no Secret")
	}
	got := map[string]string{}
	for key, value := range s.Data {
		got[key] = string(value)
	}
	key := w.driver.key(a.Status.AccountID)
	want := map[string]string{
		"COSI_PROTOCOL":     "S3",
		"COSI_S3_BUCKET_ID": b.Name, "BUCKET_NAME": b.Name,
		"COSI_S3_ENDPOINT": "http://s3.test", "AWS_ENDPOINT_URL": "http://s3.test",
		"COSI_S3_REGION": "here", "AWS_DEFAULT_REGION": "here",
		"COSI_S3_ADDRESSING_STYLE": "path", "AWS_S3_ADDRESSING_STYLE": "path",
		"COSI_S3_ACCESS_KEY_ID": a.Status.AccountID, "AWS_ACCESS_KEY_ID": a.Status.AccountID,
		"COSI_S3_ACCESS_SECRET_KEY": key, "AWS_SECRET_ACCESS_KEY": key,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
	c.stop(w)

	again := w.sidecar()
	w.readyBucket("two")
	w.stays("no call for what is settled", func() bool { return w.driver.called("grant") == 1 && w.driver.called("revoke") == 0 })
	if got := len(again.writes.all()); got != 3 {
		t.Errorf("%d writes after a restart, want 3 for the new bucket: %v", got, again.writes.all())
	}

	secretAtRevoke := true
	w.driver.onBefore("revoke", func(context.Context, string) error { secretAtRevoke = w.get(s); return nil })
	w.delete(a)
	w.gone(a)
	if secretAtRevoke {
		t.Error("the Secret was there when the account was revoked")
	}
	w.eventually("nothing is left", func() bool { return len(w.driver.accountIDs()) == 0 && w.intent(a) == nil })
}
