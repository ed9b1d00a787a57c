package v1alpha2_test

import (
	"slices"
	"strings"
	"testing"
)

const bucketClass = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketClass
spec:
  driverName: s3.example.com
  deletionPolicy: Delete
  parameters: {tier: hot}
`

const accessClass = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketAccessClass
spec:
  driverName: s3.example.com
  authenticationType: Key
  parameters: {tier: hot}
  disallowedBucketAccessModes: [WriteOnly]
  multiBucketAccess: MultipleBuckets
`

func TestBucketClassRules(t *testing.T) {
	const immutable = "the spec of a BucketClass is immutable"
	check(t, "bucketclasses", slices.Concat(
		driverCases(bucketClass, "spec.driverName"),
		parameterCases(bucketClass, "spec.parameters"),
		cases{
			create(bucketClass, "policy Retain", set("spec.deletionPolicy", `"Retain"`), ""),
			create(bucketClass, "policy missing", set("spec.deletionPolicy", `null`), required),
			create(bucketClass, "policy unknown", set("spec.deletionPolicy", `"Recycle"`), unsupported),
			create(strings.Replace(bucketClass, "tier: hot", "", 1), "parameters empty", `{}`, ""),
			create(bucketClass, "no spec", `{"spec":null}`, required),

			update(bucketClass, "label", `{"metadata":{"labels":{"a":"b"}}}`, ""),
			update(bucketClass, "driver changed", set("spec.driverName", `"other"`), immutable),
			update(bucketClass, "policy changed", set("spec.deletionPolicy", `"Retain"`), immutable),
			update(bucketClass, "parameter changed", set("spec.parameters.tier", `"cold"`), immutable),
			update(bucketClass, "parameters removed", set("spec.parameters", `null`), immutable),
		},
	))
}

func TestBucketAccessClassRules(t *testing.T) {
	const immutable = "the spec of a BucketAccessClass is immutable"
	check(t, "bucketaccessclasses", slices.Concat(
		driverCases(accessClass, "spec.driverName"),
		parameterCases(accessClass, "spec.parameters"),
		cases{
			create(accessClass, "authentication ServiceAccount", set("spec.authenticationType", `"ServiceAccount"`), ""),
			create(accessClass, "authentication missing", set("spec.authenticationType", `null`), required),
			create(accessClass, "authentication unknown", set("spec.authenticationType", `"IAM"`), unsupported),
			create(accessClass, "modes absent", set("spec.disallowedBucketAccessModes", `null`), ""),
			create(accessClass, "modes all", set("spec.disallowedBucketAccessModes", `["ReadWrite","ReadOnly","WriteOnly"]`), ""),
			create(accessClass, "modes none", set("spec.disallowedBucketAccessModes", `[]`), tooFew),
			create(accessClass, "modes four", set("spec.disallowedBucketAccessModes", `["ReadWrite","ReadOnly","WriteOnly","ReadOnly"]`), tooMany),
			create(accessClass, "modes unknown", set("spec.disallowedBucketAccessModes", `["Admin"]`), unsupported),
			create(accessClass, "modes twice the same", set("spec.disallowedBucketAccessModes", `["ReadOnly","ReadOnly"]`), duplicate),
			create(accessClass, "several buckets absent", set("spec.multiBucketAccess", `null`), ""),
			create(accessClass, "several buckets no", set("spec.multiBucketAccess", `"SingleBucket"`), ""),
			create(accessClass, "several buckets unknown", set("spec.multiBucketAccess", `"Two"`), unsupported),
			create(strings.Replace(accessClass, "tier: hot", "", 1), "parameters empty", `{}`, ""),
			create(accessClass, "no spec", `{"spec":null}`, required),

			update(accessClass, "label", `{"metadata":{"labels":{"a":"b"}}}`, ""),
			update(accessClass, "driver changed", set("spec.driverName", `"other"`), immutable),
			update(accessClass, "authentication changed", set("spec.authenticationType", `"ServiceAccount"`), immutable),
			update(accessClass, "parameter changed", set("spec.parameters.tier", `"cold"`), immutable),
			update(accessClass, "modes changed", set("spec.disallowedBucketAccessModes", `["ReadOnly"]`), immutable),
			update(accessClass, "several buckets changed", set("spec.multiBucketAccess", `"SingleBucket"`), immutable),
			update(accessClass, "several buckets removed", set("spec.multiBucketAccess", `null`), immutable),
		},
	))
}
