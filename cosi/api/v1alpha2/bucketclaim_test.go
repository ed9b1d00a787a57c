package v1alpha2_test

import (
	"slices"
	"testing"
)

const dynamicClaim = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketClaim
spec:
  bucketClassName: gold
  protocols: [S3, Azure]
`

const staticClaim = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketClaim
spec:
  existingBucketName: archive
`

func TestBucketClaimRules(t *testing.T) {
	const (
		one      = "exactly one of bucketClassName and existingBucketName must be set"
		classAR  = "bucketClassName cannot be added or removed later"
		bucketAR = "existingBucketName cannot be added or removed later"
		protoAR  = "protocols cannot be added or removed later"
		toStatic = `{"spec":{"bucketClassName":null,"existingBucketName":"archive"}}`
		bound    = `{"status":{"readyToUse":false,"boundBucketName":"bc-1","protocols":["S3"]}}`
	)
	at := func(value string) string { return `{"status":{"readyToUse":false,"boundBucketName":` + value + `}}` }
	check(t, "bucketclaims", slices.Concat(
		subdomainCases(dynamicClaim, "spec.bucketClassName"),
		subdomainCases(staticClaim, "spec.existingBucketName"),
		protocolCases(dynamicClaim, "spec.protocols"),
		commonStatusCases(dynamicClaim),
		protocolStatusCases(dynamicClaim),
		cases{
			create(dynamicClaim, "class only", `{}`, ""),
			create(dynamicClaim, "bucket only", toStatic, ""),
			create(dynamicClaim, "both", `{"spec":{"existingBucketName":"archive"}}`, one),
			create(dynamicClaim, "neither", `{"spec":{"bucketClassName":null}}`, one),
			create(dynamicClaim, "no spec", `{"spec":null}`, required),

			update(dynamicClaim, "label", `{"metadata":{"labels":{"a":"b"}}}`, ""),
			update(dynamicClaim, "class the same", `{"spec":{"bucketClassName":"gold"}}`, ""),
			update(dynamicClaim, "class changed", `{"spec":{"bucketClassName":"silver"}}`, "bucketClassName is immutable"),
			update(dynamicClaim, "class removed", toStatic, classAR),
			update(dynamicClaim, "bucket added", toStatic, bucketAR),
			update(staticClaim, "bucket changed", `{"spec":{"existingBucketName":"other"}}`, "existingBucketName is immutable"),
			update(staticClaim, "bucket the same", `{"spec":{"existingBucketName":"archive"}}`, ""),
			update(dynamicClaim, "protocols in another order", `{"spec":{"protocols":["Azure","S3"]}}`, ""),
			update(dynamicClaim, "protocols fewer", `{"spec":{"protocols":["S3"]}}`, "protocols is immutable"),
			update(dynamicClaim, "protocols removed", `{"spec":{"protocols":null}}`, protoAR),
			update(staticClaim, "protocols added", `{"spec":{"protocols":["S3"]}}`, protoAR),

			status(dynamicClaim, "", "bucket set", bound, ""),
			status(dynamicClaim, bound, "bucket the same, ready", `{"status":{"readyToUse":true,"boundBucketName":"bc-1"}}`, ""),
			status(dynamicClaim, bound, "bucket changed", at(`"bc-2"`), "boundBucketName is immutable once set"),
			status(dynamicClaim, bound, "bucket removed", at(`null`), "boundBucketName cannot be removed once set"),
			status(dynamicClaim, "", "bucket in capitals", at(`"BC-1"`), notSubdomain),
			status(dynamicClaim, "", "bucket empty", at(`""`), tooShort),
			status(dynamicClaim, "", "bucket of 254", at(text(long(254))), tooLong),
		},
	))
}
