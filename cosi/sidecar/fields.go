package sidecar

import (
	"strings"

	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/wire"
)

// put sets the fields that say something.
func put(into map[string]string, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			into[pairs[i]] = pairs[i+1]
		}
	}
}

// bucketInfo is what a driver said of a bucket, by the keys of status.bucketInfo; nil if nothing.
func bucketInfo(info wire.BucketInfo) map[string]string {
	fields := map[string]string{}
	if s3 := info.S3; s3 != nil {
		put(fields, cosi.KeyS3BucketID, s3.BucketID, cosi.KeyS3Endpoint, s3.Endpoint, cosi.KeyS3Region, s3.Region,
			cosi.KeyS3AddressingStyle, string(s3.AddressingStyle))
	}
	if azure := info.Azure; azure != nil {
		put(fields, cosi.KeyAzureStorageAccount, azure.StorageAccount)
	}
	if gcs := info.GCS; gcs != nil {
		put(fields, cosi.KeyGCSProjectID, gcs.ProjectID, cosi.KeyGCSBucketName, gcs.BucketName)
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// credentials are those of one protocol, by the keys of a Secret; nil if there are none.
func credentials(p cosi.ObjectProtocol, c wire.Credentials) map[string]string {
	fields := map[string]string{}
	switch {
	case p == cosi.ProtocolS3 && c.S3 != nil:
		put(fields, cosi.KeyS3AccessKeyID, c.S3.AccessKeyID.Reveal(), cosi.KeyS3AccessSecretKey, c.S3.AccessSecretKey.Reveal())
	case p == cosi.ProtocolAzure && c.Azure != nil:
		put(fields, cosi.KeyAzureAccessToken, c.Azure.AccessToken.Reveal(), cosi.KeyAzureExpiryTimestamp, c.Azure.Expiry)
	case p == cosi.ProtocolGCS && c.GCS != nil:
		put(fields, cosi.KeyGCSAccessID, c.GCS.AccessID.Reveal(), cosi.KeyGCSAccessSecret, c.GCS.AccessSecret.Reveal(),
			cosi.KeyGCSPrivateKeyName, c.GCS.PrivateKeyName, cosi.KeyGCSServiceAccount, c.GCS.ServiceAccount)
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// prefix is what the keys of a protocol begin with.
func prefix(p cosi.ObjectProtocol) string { return "COSI_" + strings.ToUpper(string(p)) + "_" }

// spokenIn gives the protocols that a bucket's info speaks of.
func spokenIn(info map[string]string) []cosi.ObjectProtocol {
	var spoken []cosi.ObjectProtocol
	for _, p := range []cosi.ObjectProtocol{cosi.ProtocolS3, cosi.ProtocolAzure, cosi.ProtocolGCS} {
		if len(only(info, p)) > 0 {
			spoken = append(spoken, p)
		}
	}
	return spoken
}

// only gives the fields of one protocol.
func only(info map[string]string, p cosi.ObjectProtocol) map[string]string {
	fields := map[string]string{}
	for key, value := range info {
		if strings.HasPrefix(key, prefix(p)) {
			fields[key] = value
		}
	}
	return fields
}

// holds tells whether an id holds a name.
func holds(id, name string) bool { return strings.Contains(id, name) }
