package v1alpha2_test

import (
	"slices"
	"strings"
	"testing"
)

const access = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketAccess
spec:
  bucketAccessClassName: keys
  protocol: S3
  serviceAccountName: web
  bucketClaims:
  - bucketClaimName: pictures
    accessMode: ReadWrite
    accessSecretName: pictures-access
  - bucketClaimName: logs
    accessMode: WriteOnly
    accessSecretName: logs-access
`

const accessWithoutAccount = `
apiVersion: objectstorage.k8s.io/v1alpha2
kind: BucketAccess
spec:
  bucketAccessClassName: keys
  protocol: S3
  bucketClaims:
  - bucketClaimName: pictures
    accessMode: ReadOnly
    accessSecretName: pictures-access
`

// claim is one member of spec.bucketClaims, with the marks replaced by pairs.
func claim(pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(`{"bucketClaimName":"pictures","accessMode":"ReadOnly","accessSecretName":"secret"}`)
}

// accessed is one member of status.accessedBuckets, with the marks replaced by pairs.
func accessed(pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(`{"bucketName":"bc-1","bucketID":"b1","bucketClaimName":"pictures"}`)
}

func TestBucketAccessRules(t *testing.T) {
	claims := func(members ...string) string { return set("spec.bucketClaims", "["+strings.Join(members, ",")+"]") }
	buckets := func(members ...string) string {
		return `{"status":{"readyToUse":false,"accessedBuckets":[` + strings.Join(members, ",") + `]}}`
	}
	copied := func(field, value string) string {
		return `{"status":{"readyToUse":false,"` + field + `":` + value + `}}`
	}
	swapped := `{"bucketClaimName":"logs","accessMode":"WriteOnly","accessSecretName":"logs-access"},` +
		`{"bucketClaimName":"pictures","accessMode":"ReadWrite","accessSecretName":"pictures-access"}`

	all := cases{
		create(access, "two claims", `{}`, ""),
		create(access, "no spec", `{"spec":null}`, required),
		create(access, "claims missing", set("spec.bucketClaims", `null`), required),
		create(access, "claims none", claims(), tooFew),
		create(access, "claims 128", set("spec.bucketClaims", list(128, claim("pictures", "c#", "secret", "s#"))), ""),
		create(access, "claims 129", set("spec.bucketClaims", list(129, claim("pictures", "c#", "secret", "s#"))), tooMany),
		create(access, "claims twice the same", claims(claim(), claim("secret", "other")), duplicate),
		create(access, "mode WriteOnly", claims(claim("ReadOnly", "WriteOnly")), ""),
		create(access, "mode unknown", claims(claim("ReadOnly", "Admin")), unsupported),
		create(access, "mode missing", claims(`{"bucketClaimName":"a","accessSecretName":"b"}`), required),
		create(access, "claim name missing", claims(`{"accessMode":"ReadOnly","accessSecretName":"b"}`), required),
		create(access, "claim name in capitals", claims(claim("pictures", "P")), notSubdomain),
		create(access, "claim name empty", claims(claim("pictures", "")), tooShort),
		create(access, "claim name of 254", claims(claim("pictures", long(254))), tooLong),
		create(access, "Secret name missing", claims(`{"bucketClaimName":"a","accessMode":"ReadOnly"}`), required),
		create(access, "Secret name in capitals", claims(claim(`"secret"`, `"S"`)), notSubdomain),
		create(access, "Secret name empty", claims(claim(`"secret"`, `""`)), tooShort),
		create(access, "Secret name of 254", claims(claim(`"secret"`, text(long(254)))), tooLong),
		create(access, "class missing", set("spec.bucketAccessClassName", `null`), required),
		create(access, "class empty", set("spec.bucketAccessClassName", `""`), tooShort),
		create(access, "class of 254", set("spec.bucketAccessClassName", text(long(254))), tooLong),
		create(access, "protocol GCS", set("spec.protocol", `"GCS"`), ""),
		create(access, "protocol missing", set("spec.protocol", `null`), required),
		create(access, "protocol unknown", set("spec.protocol", `"NFS"`), unsupported),
		create(access, "ServiceAccount absent", set("spec.serviceAccountName", `null`), ""),
		create(access, "ServiceAccount empty", set("spec.serviceAccountName", `""`), tooShort),
		create(access, "ServiceAccount of 254", set("spec.serviceAccountName", text(long(254))), tooLong),

		update(access, "label", `{"metadata":{"labels":{"a":"b"}}}`, ""),
		update(access, "claims the same in another order", claims(swapped), ""),
		update(access, "claims fewer", claims(claim()), "bucketClaims is immutable"),
		update(access, "claims with another mode", claims(strings.Replace(swapped, "WriteOnly", "ReadWrite", 1)), "bucketClaims is immutable"),
		update(access, "claims with another Secret", claims(strings.Replace(swapped, "logs-access", "other", 1)), "bucketClaims is immutable"),
		update(access, "class changed", set("spec.bucketAccessClassName", `"other"`), "bucketAccessClassName is immutable"),
		update(access, "protocol changed", set("spec.protocol", `"GCS"`), "protocol is immutable"),
		update(access, "ServiceAccount changed", set("spec.serviceAccountName", `"other"`), "serviceAccountName is immutable"),
		update(access, "ServiceAccount removed", set("spec.serviceAccountName", `null`), "serviceAccountName cannot be added or removed later"),
		update(accessWithoutAccount, "ServiceAccount added", set("spec.serviceAccountName", `"web"`), "serviceAccountName cannot be added or removed later"),

		status(access, "", "buckets set", buckets(accessed(), accessed("bc-1", "bc-2", "b1", "b2", "pictures", "logs")), ""),
		status(access, "", "buckets none", buckets(), tooFew),
		status(access, "", "buckets 128", set("status", `{"readyToUse":false,"accessedBuckets":`+list(128, accessed("bc-1", "bc-#"))+`}`), ""),
		status(access, "", "buckets 129", set("status", `{"readyToUse":false,"accessedBuckets":`+list(129, accessed("bc-1", "bc-#"))+`}`), tooMany),
		status(access, "", "buckets twice the same", buckets(accessed(), accessed("b1", "b2")), duplicate),
		status(access, "", "bucket name missing", buckets(`{"bucketID":"b1","bucketClaimName":"a"}`), required),
		status(access, "", "bucket name in capitals", buckets(accessed("bc-1", "BC")), notSubdomain),
		status(access, "", "bucket name empty", buckets(accessed("bc-1", "")), tooShort),
		status(access, "", "bucket name of 254", buckets(accessed("bc-1", long(254))), tooLong),
		status(access, "", "bucket id empty", buckets(accessed("b1", "")), tooShort),
		status(access, "", "bucket's claim empty", buckets(accessed("pictures", "")), tooShort),
		status(access, "", "bucket's claim of 254", buckets(accessed("pictures", long(254))), tooLong),
		status(access, "", "bucket id missing", buckets(`{"bucketName":"b1","bucketClaimName":"a"}`), required),
		status(access, "", "bucket id in base64", buckets(accessed("b1", "eyJ9Cg==")), mismatch),
		status(access, "", "bucket id of 2049", buckets(accessed(`"b1"`, text(long(2049)))), tooLong),
		status(access, "", "bucket's claim missing", buckets(`{"bucketName":"b1","bucketID":"a"}`), required),
		status(access, "", "bucket's claim in capitals", buckets(accessed("pictures", "P")), notSubdomain),
		status(access, buckets(accessed()), "buckets the same", buckets(accessed()), ""),
		status(access, buckets(accessed()), "buckets changed", buckets(accessed("b1", "b2")), "accessedBuckets is immutable once set"),
		status(access, buckets(accessed()), "buckets removed", copied("accessedBuckets", "null"), "accessedBuckets cannot be removed once set"),
		status(access, "", "driver set", copied("driverName", `"s3.example.com"`), ""),
		status(access, "", "driver with a slash", copied("driverName", `"a/b"`), mismatch),
		status(access, "", "driver empty", copied("driverName", `""`), tooShort),
		status(access, "", "driver of 64", copied("driverName", text(long(64))), tooLong),
		status(access, copied("driverName", `"a"`), "driver changed", copied("driverName", `"b"`), "driverName is immutable once set"),
		status(access, copied("driverName", `"a"`), "driver removed", copied("driverName", `null`), "driverName cannot be removed once set"),
		status(access, "", "authentication set", copied("authenticationType", `"ServiceAccount"`), ""),
		status(access, "", "authentication unknown", copied("authenticationType", `"Password"`), unsupported),
		status(access, copied("authenticationType", `"Key"`), "authentication changed", copied("authenticationType", `"ServiceAccount"`), "authenticationType is immutable once set"),
		status(access, copied("authenticationType", `"Key"`), "authentication removed", copied("authenticationType", `null`), "authenticationType cannot be removed once set"),
		status(access, "", "parameters empty", copied("parameters", `{}`), "should have at least 1 properties"),
		status(access, "", "parameters 512", copied("parameters", entries(512)), ""),
		status(access, "", "parameters 513", copied("parameters", entries(513)), tooMany),
		status(access, copied("parameters", `{"a":"b"}`), "parameters changed", copied("parameters", `{"a":"c"}`), "parameters is immutable once set"),
		status(access, copied("parameters", `{"a":"b"}`), "parameters removed", copied("parameters", `null`), "parameters cannot be removed once set"),
	}
	check(t, "bucketaccesses", slices.Concat(all, commonStatusCases(access), idStatusCases(access, "accountID")))
}
