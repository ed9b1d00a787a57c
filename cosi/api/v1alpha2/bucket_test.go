package v1alpha2_test

import (
	"slices"
	"testing"
)

const dynamicBucket = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: Bucket
spec:
  driverName: s3.example.com
  deletionPolicy: Delete
  parameters: {tier: hot}
  protocols: [S3, GCS]
  bucketClaimRef:
    name: pictures
    namespace: web
    uid: 0b1d5e6a-3c1f-4f6b-9a52-7f0e8d1c2b3a
`

const staticBucket = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: Bucket
spec:
  driverName: s3.example.com
  deletionPolicy: Retain
  existingBucketID: eu/archive
  bucketClaimRef:
    name: archive
    namespace: web
`

func TestBucketRules(t *testing.T) {
	const (
		uid      = `"11111111-2222-3333-4444-555555555555"`
		paramsAR = "parameters cannot be added or removed later"
		protoAR  = "protocols cannot be added or removed later"
		idAR     = "existingBucketID cannot be added or removed later"
		notLabel = "must be a DNS label: lower-case letters, digits and -"
		made     = `{"status":{"readyToUse":true,"bucketID":"b1","protocols":["S3"],"bucketInfo":{"COSI_S3_BUCKET_ID":"b1"}}}`
	)
	check(t, "buckets", slices.Concat(
		driverCases(dynamicBucket, "spec.driverName"),
		parameterCases(dynamicBucket, "spec.parameters"),
		protocolCases(dynamicBucket, "spec.protocols"),
		subdomainCases(dynamicBucket, "spec.bucketClaimRef.name"),
		commonStatusCases(dynamicBucket),
		protocolStatusCases(dynamicBucket),
		idStatusCases(dynamicBucket, "bucketID"),
		cases{
			create(dynamicBucket, "policy Retain", set("spec.deletionPolicy", `"Retain"`), ""),
			create(dynamicBucket, "policy missing", set("spec.deletionPolicy", `null`), required),
			create(dynamicBucket, "policy unknown", set("spec.deletionPolicy", `"Recycle"`), unsupported),
			create(dynamicBucket, "claim missing", set("spec.bucketClaimRef", `null`), required),
			create(dynamicBucket, "claim's name missing", set("spec.bucketClaimRef.name", `null`), required),
			create(dynamicBucket, "claim's namespace missing", set("spec.bucketClaimRef.namespace", `null`), required),
			create(dynamicBucket, "claim's namespace of 63", set("spec.bucketClaimRef.namespace", text(long(63))), ""),
			create(dynamicBucket, "claim's namespace of 64", set("spec.bucketClaimRef.namespace", text(long(64))), tooLong),
			create(dynamicBucket, "claim's namespace with a dot", set("spec.bucketClaimRef.namespace", `"a.b"`), notLabel),
			create(dynamicBucket, "claim's namespace empty", set("spec.bucketClaimRef.namespace", `""`), tooShort),
			create(dynamicBucket, "claim's uid absent", set("spec.bucketClaimRef.uid", `null`), ""),
			create(dynamicBucket, "claim's uid short", set("spec.bucketClaimRef.uid", `"0b1d5e6a"`), "should be at least 36 chars long"),
			create(dynamicBucket, "claim's uid in capitals", set("spec.bucketClaimRef.uid", `"0B1D5E6A-3C1F-4F6B-9A52-7F0E8D1C2B3A"`), mismatch),
			create(dynamicBucket, "claim's uid of 37", set("spec.bucketClaimRef.uid", text(long(37))), tooLong),
			create(staticBucket, "parameters empty", set("spec.parameters", `{}`), "should have at least 1 properties"),
			create(staticBucket, "id with every sign", set("spec.existingBucketID", `"aZ09/._-"`), ""),
			create(staticBucket, "id of 2048", set("spec.existingBucketID", text(long(2048))), ""),
			create(staticBucket, "id of 2049", set("spec.existingBucketID", text(long(2049))), tooLong),
			create(staticBucket, "id empty", set("spec.existingBucketID", `""`), tooShort),
			create(staticBucket, "id with a plus", set("spec.existingBucketID", `"a+b"`), mismatch),
			create(staticBucket, "id missing", set("spec.existingBucketID", `null`), ""),
			create(dynamicBucket, "no spec", `{"spec":null}`, required),

			update(dynamicBucket, "policy changed", set("spec.deletionPolicy", `"Retain"`), ""),
			update(dynamicBucket, "policy removed", set("spec.deletionPolicy", `null`), required),
			update(dynamicBucket, "driver changed", set("spec.driverName", `"other"`), "driverName is immutable"),
			update(dynamicBucket, "parameter changed", set("spec.parameters.tier", `"cold"`), "parameters is immutable"),
			update(dynamicBucket, "parameter added", set("spec.parameters.more", `"x"`), "parameters is immutable"),
			update(dynamicBucket, "parameters removed", set("spec.parameters", `null`), paramsAR),
			update(staticBucket, "parameters added", set("spec.parameters", `{"a":"b"}`), paramsAR),
			update(dynamicBucket, "protocols in another order", set("spec.protocols", `["GCS","S3"]`), ""),
			update(dynamicBucket, "protocols fewer", set("spec.protocols", `["S3"]`), "protocols is immutable"),
			update(dynamicBucket, "protocols removed", set("spec.protocols", `null`), protoAR),
			update(staticBucket, "protocols added", set("spec.protocols", `["S3"]`), protoAR),
			update(dynamicBucket, "claim's name changed", set("spec.bucketClaimRef.name", `"other"`), "name is immutable"),
			update(dynamicBucket, "claim's namespace changed", set("spec.bucketClaimRef.namespace", `"other"`), "namespace is immutable"),
			update(dynamicBucket, "claim's uid changed", set("spec.bucketClaimRef.uid", uid), "uid is immutable once set"),
			update(dynamicBucket, "claim's uid removed", set("spec.bucketClaimRef.uid", `null`), "uid cannot be removed once set"),
			update(staticBucket, "claim's uid set once", set("spec.bucketClaimRef.uid", uid), ""),
			update(staticBucket, "id changed", set("spec.existingBucketID", `"other"`), "existingBucketID is immutable"),
			update(staticBucket, "id removed", set("spec.existingBucketID", `null`), idAR),
			update(dynamicBucket, "id added", set("spec.existingBucketID", `"b1"`), idAR),

			status(dynamicBucket, "", "all at once", made, ""),
			status(dynamicBucket, made, "info changed", `{"status":{"bucketInfo":{"COSI_S3_REGION":"eu"}}}`, ""),
			status(dynamicBucket, "", "info empty", `{"status":{"readyToUse":true,"bucketInfo":{}}}`, "should have at least 1 properties"),
			status(dynamicBucket, made, "info of 128", `{"status":{"bucketInfo":`+entries(127)+`}}`, ""),
			status(dynamicBucket, made, "info of 129", `{"status":{"bucketInfo":`+entries(128)+`}}`, tooMany),
		},
	))
}
