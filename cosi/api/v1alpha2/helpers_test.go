package v1alpha2_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/custody-storage/custody/api/apitest"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

func TestNamesHoldTheUID(t *testing.T) {
	meta := metav1.ObjectMeta{UID: types.UID("0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a")}
	if got := cosi.BucketName(&cosi.BucketClaim{ObjectMeta: meta}); got != "bc-0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a" {
		t.Errorf("BucketName = %q", got)
	}
	if got := cosi.AccountName(&cosi.BucketAccess{ObjectMeta: meta}); got != "ba-0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a" {
		t.Errorf("AccountName = %q", got)
	}
	if cosi.BucketName(&cosi.BucketClaim{}) != "" || cosi.AccountName(&cosi.BucketAccess{}) != "" {
		t.Error("an object without a UID must have no name: all of them would share it")
	}
}

func TestManagedBySidecar(t *testing.T) {
	now := metav1.Now()
	for _, c := range []struct {
		name        string
		driver      string
		deleting    bool
		annotations []string
		want        bool
	}{
		{name: "new"},
		{name: "handed over", driver: "d", want: true},
		{name: "handed over, deleting", driver: "d", deleting: true, want: true},
		{name: "never handed over, deleting", deleting: true},
		{name: "cleaned up", driver: "d", deleting: true, annotations: []string{cosi.AnnotationSidecarCleanupFinished}},
		{name: "forged cleanup on a live access", driver: "d", annotations: []string{cosi.AnnotationSidecarCleanupFinished}, want: true},
		{name: "override", driver: "d", annotations: []string{cosi.AnnotationControllerManagementOverride}},
		{name: "override while deleting", driver: "d", deleting: true, annotations: []string{cosi.AnnotationControllerManagementOverride}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &cosi.BucketAccess{Status: cosi.BucketAccessStatus{DriverName: c.driver}}
			a.Annotations = map[string]string{}
			for _, key := range c.annotations {
				a.Annotations[key] = ""
			}
			if c.deleting {
				a.DeletionTimestamp = &now
			}
			if got := a.ManagedBySidecar(); got != c.want {
				t.Errorf("ManagedBySidecar() = %v, want %v", got, c.want)
			}
		})
	}
}

func TestBucketClaimBeingDeletedReadsBothSpellings(t *testing.T) {
	for key, want := range map[string]bool{
		"objectstorage.k8s.io/bucketclaim-being-deleted": true,
		"objectstorage.k8.io/bucketclaim-being-deleted":  true,
		"objectstorage.k8s.io/bucketclaim":               false,
	} {
		if got := cosi.BucketClaimBeingDeleted(map[string]string{key: ""}); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}

func TestErrorHasALeadingReason(t *testing.T) {
	e := cosi.NewError(time.Unix(1772704800, 0), "WaitsForClass", "BucketClass \"gold\": not found")
	if got := e.Reason(); got != "WaitsForClass" {
		t.Errorf("Reason() = %q", got)
	}
	if got := e.Text(); got != "BucketClass \"gold\": not found" {
		t.Errorf("Text() = %q", got)
	}
	foreign := "failed to get class: not found"
	if e := (&cosi.TimestampedError{Message: &foreign}); e.Reason() != "" || e.Text() != foreign {
		t.Errorf("a message of another program has no reason, but got %q and %q", e.Reason(), e.Text())
	}
	var none *cosi.TimestampedError
	if none.Reason() != "" || none.Text() != "" {
		t.Error("no error has no reason and no text")
	}
	// The cut must not leave half a letter, which the API server would refuse.
	cut := cosi.NewError(time.Now(), "Long", strings.Repeat("€", cosi.MaxErrorMessage))
	if n := len(*cut.Message); n > cosi.MaxErrorMessage || n < cosi.MaxErrorMessage-3 || !strings.HasSuffix(*cut.Message, "€") {
		t.Errorf("a long message has %d bytes and ends with %q", n, (*cut.Message)[n-3:])
	}
}

// CheckID must agree with the API server: both ways are wrong, an id that is
// refused too late and one that is refused without need.
func TestCheckIDAgreesWithTheAPIServer(t *testing.T) {
	for _, id := range []string{
		"b1", "aZ09/._-", "-", "/", long(2048), long(2049), "", "a b", "a=b", "a+b", "ä", "a\nb", "b1\n", "\"",
	} {
		object, err := apitest.Parse(dynamicBucket)
		if err != nil {
			t.Fatal(err)
		}
		object.SetName(server.Name())
		client := server.Objects(t, object)
		made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.Object["status"] = map[string]any{"readyToUse": false, "bucketID": id}
		_, refusal := client.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		if own := cosi.CheckID(id); (own == nil) != (refusal == nil) {
			t.Errorf("id %.20q: CheckID says %v, the API server says %v", id, own, refusal)
		}
	}
}

func TestAddClientKeysFillsBothSets(t *testing.T) {
	got := cosi.AddClientKeys(map[string]string{
		"COSI_PROTOCOL": "S3", "COSI_S3_BUCKET_ID": "b1", "COSI_S3_ENDPOINT": "https://s3", "COSI_S3_REGION": "eu",
		"COSI_S3_ADDRESSING_STYLE": "path", "COSI_S3_ACCESS_KEY_ID": "k", "COSI_S3_ACCESS_SECRET_KEY": "s",
	})
	want := map[string]string{
		"COSI_PROTOCOL": "S3", "COSI_S3_BUCKET_ID": "b1", "COSI_S3_ENDPOINT": "https://s3", "COSI_S3_REGION": "eu",
		"COSI_S3_ADDRESSING_STYLE": "path", "COSI_S3_ACCESS_KEY_ID": "k", "COSI_S3_ACCESS_SECRET_KEY": "s",
		"BUCKET_NAME": "b1", "AWS_ENDPOINT_URL": "https://s3", "AWS_DEFAULT_REGION": "eu",
		"AWS_S3_ADDRESSING_STYLE": "path", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	both := cosi.AddClientKeys(map[string]string{"COSI_S3_BUCKET_ID": "s3-name", "COSI_GCS_BUCKET_NAME": "gcs-name"})
	if both["BUCKET_NAME"] != "s3-name" {
		t.Errorf("BUCKET_NAME of a bucket with S3 and GCS is %q, want the S3 name", both["BUCKET_NAME"])
	}
}

// A key and its client key name the same thing: one is a credential if the other is.
func TestCredentialKeys(t *testing.T) {
	credentials := []string{
		cosi.KeyS3AccessKeyID, cosi.KeyS3AccessSecretKey, cosi.KeyAzureAccessToken, cosi.KeyAzureExpiryTimestamp,
		cosi.KeyGCSAccessID, cosi.KeyGCSAccessSecret, cosi.KeyGCSPrivateKeyName, cosi.KeyGCSServiceAccount,
	}
	public := []string{
		cosi.KeyS3BucketID, cosi.KeyS3Endpoint, cosi.KeyS3Region, cosi.KeyS3AddressingStyle,
		cosi.KeyAzureStorageAccount, cosi.KeyGCSProjectID, cosi.KeyGCSBucketName,
	}
	for _, key := range credentials {
		if !cosi.IsCredentialKey(key) || cosi.ClientKey(key) == "" || !cosi.IsCredentialKey(cosi.ClientKey(key)) {
			t.Errorf("%s and its client key %q must both be credentials", key, cosi.ClientKey(key))
		}
	}
	for _, key := range public {
		if cosi.IsCredentialKey(key) || cosi.ClientKey(key) == "" || cosi.IsCredentialKey(cosi.ClientKey(key)) {
			t.Errorf("%s and its client key %q must both be public", key, cosi.ClientKey(key))
		}
	}
}

func TestClassRules(t *testing.T) {
	class := &cosi.BucketAccessClassSpec{DisallowedBucketAccessModes: []cosi.AccessMode{cosi.AccessModeWriteOnly}}
	if class.Allows(cosi.AccessModeWriteOnly) || !class.Allows(cosi.AccessModeReadOnly) {
		t.Error("Allows does not follow disallowedBucketAccessModes")
	}
	if class.AllowsSeveralBuckets() {
		t.Error("a class that says nothing allows one bucket only")
	}
	if class.MultiBucketAccess = cosi.MultiBucketAccessMultiple; !class.AllowsSeveralBuckets() {
		t.Error("MultipleBuckets must allow several buckets")
	}
}

// An object that was never served must be written without a status: an empty one
// lacks readyToUse and would be refused wherever statuses are written.
func TestUnsetStatusIsLeftOut(t *testing.T) {
	for _, object := range []runtime.Object{&cosi.BucketClaim{}, &cosi.Bucket{}, &cosi.BucketAccess{}} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, there := content["status"]; there || strings.Contains(string(encoded), "status") {
			t.Errorf("%T has a status: %s", object, encoded)
		}
	}
}

func TestEveryKindIsRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := cosi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"BucketClaim", "Bucket", "BucketClass", "BucketAccess", "BucketAccessClass"} {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(cosi.Kind(name)) {
				t.Errorf("%s is not registered", name)
			}
		}
	}
}

func TestColumnsThatAPersonSees(t *testing.T) {
	object, err := apitest.Parse(dynamicBucket)
	if err != nil {
		t.Fatal(err)
	}
	object.SetName(server.Name())
	client := server.Objects(t, object)
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Object["status"] = map[string]any{
		"readyToUse": true, "bucketID": "b1", "protocols": []any{"S3"},
		"error": map[string]any{"message": "NotEmpty: 3 objects"},
	}
	if made, err = client.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	cells := server.Table(t, made)
	delete(cells, "AGE")
	want := map[string]any{
		"Name": made.GetName(), "READY": true, "DRIVER": "s3.example.com", "POLICY": "Delete", "NAMESPACE": "web",
		"CLAIM": "pictures", "ID": "b1", "PROTOCOLS": `["S3"]`, "ERROR": "NotEmpty: 3 objects",
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Error(diff)
	}
}
