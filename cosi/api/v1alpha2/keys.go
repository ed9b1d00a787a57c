package v1alpha2

import "maps"

// Keys of the Secret of a BucketAccess and of a Bucket's status.bucketInfo.
//
// Two sets are in use. Upstream's code writes the COSI_ set. KEP-1979 names the
// set that the SDKs and tools of each protocol read unaided, called client keys
// here. Writers fill the COSI_ set and call AddClientKeys, so that readers of
// either set are served.

// Keys that both sets share.
const (
	// KeyProtocol holds the ObjectProtocol of the access.
	KeyProtocol = "COSI_PROTOCOL"
	// KeyCertificateAuthority holds the PEM certificates to trust, if any.
	KeyCertificateAuthority = "COSI_CERTIFICATE_AUTHORITY"
)

// The COSI_ set, by protocol.
const (
	KeyS3BucketID        = "COSI_S3_BUCKET_ID"
	KeyS3Endpoint        = "COSI_S3_ENDPOINT"
	KeyS3Region          = "COSI_S3_REGION"
	KeyS3AddressingStyle = "COSI_S3_ADDRESSING_STYLE"
	KeyS3AccessKeyID     = "COSI_S3_ACCESS_KEY_ID"
	KeyS3AccessSecretKey = "COSI_S3_ACCESS_SECRET_KEY"

	KeyAzureStorageAccount  = "COSI_AZURE_STORAGE_ACCOUNT"
	KeyAzureAccessToken     = "COSI_AZURE_ACCESS_TOKEN"
	KeyAzureExpiryTimestamp = "COSI_AZURE_EXPIRY_TIMESTAMP"

	KeyGCSProjectID      = "COSI_GCS_PROJECT_ID"
	KeyGCSBucketName     = "COSI_GCS_BUCKET_NAME"
	KeyGCSAccessID       = "COSI_GCS_ACCESS_ID"
	KeyGCSAccessSecret   = "COSI_GCS_ACCESS_SECRET"
	KeyGCSPrivateKeyName = "COSI_GCS_PRIVATE_KEY_NAME"
	KeyGCSServiceAccount = "COSI_GCS_SERVICE_ACCOUNT"
)

// The client keys, by protocol. S3 and GCS share ClientKeyBucketName.
const (
	ClientKeyBucketName = "BUCKET_NAME"

	ClientKeyS3Endpoint        = "AWS_ENDPOINT_URL"
	ClientKeyS3Region          = "AWS_DEFAULT_REGION"
	ClientKeyS3AddressingStyle = "AWS_S3_ADDRESSING_STYLE"
	ClientKeyS3AccessKeyID     = "AWS_ACCESS_KEY_ID"
	ClientKeyS3AccessSecretKey = "AWS_SECRET_ACCESS_KEY"

	ClientKeyAzureStorageAccount  = "AZURE_STORAGE_ACCOUNT"
	ClientKeyAzureAccessToken     = "AZURE_STORAGE_SAS_TOKEN"
	ClientKeyAzureExpiryTimestamp = "AZURE_STORAGE_SAS_TOKEN_EXPIRY_TIMESTAMP"

	ClientKeyGCSProjectID      = "PROJECT_ID"
	ClientKeyGCSAccessID       = "HMAC_ACCESS_ID"
	ClientKeyGCSAccessSecret   = "HMAC_SECRET"
	ClientKeyGCSPrivateKeyName = "PRIVATE_KEY_ID"
	ClientKeyGCSServiceAccount = "SERVICE_ACCOUNT_NAME"
)

// Values of KeyS3AddressingStyle and of its client key.
const (
	AddressingStylePath    = "path"
	AddressingStyleVirtual = "virtual"
)

// ClientKey is the client key that stands for a key of the COSI_ set, or the empty
// string where there is none.
func ClientKey(key string) string {
	switch key {
	case KeyS3BucketID, KeyGCSBucketName:
		return ClientKeyBucketName
	case KeyS3Endpoint:
		return ClientKeyS3Endpoint
	case KeyS3Region:
		return ClientKeyS3Region
	case KeyS3AddressingStyle:
		return ClientKeyS3AddressingStyle
	case KeyS3AccessKeyID:
		return ClientKeyS3AccessKeyID
	case KeyS3AccessSecretKey:
		return ClientKeyS3AccessSecretKey
	case KeyAzureStorageAccount:
		return ClientKeyAzureStorageAccount
	case KeyAzureAccessToken:
		return ClientKeyAzureAccessToken
	case KeyAzureExpiryTimestamp:
		return ClientKeyAzureExpiryTimestamp
	case KeyGCSProjectID:
		return ClientKeyGCSProjectID
	case KeyGCSAccessID:
		return ClientKeyGCSAccessID
	case KeyGCSAccessSecret:
		return ClientKeyGCSAccessSecret
	case KeyGCSPrivateKeyName:
		return ClientKeyGCSPrivateKeyName
	case KeyGCSServiceAccount:
		return ClientKeyGCSServiceAccount
	}
	return ""
}

// AddClientKeys returns the fields and, for each key of the COSI_ set among them,
// its client key with the same value. A key that is there already is left as it
// is. For a bucket that speaks both S3 and GCS, BUCKET_NAME is the S3 name.
func AddClientKeys(fields map[string]string) map[string]string {
	all := maps.Clone(fields)
	for key, value := range fields {
		twin := ClientKey(key)
		if twin == "" {
			continue
		}
		if _, taken := fields[twin]; taken {
			continue
		}
		if _, s3 := fields[KeyS3BucketID]; s3 && key == KeyGCSBucketName {
			continue
		}
		all[twin] = value
	}
	return all
}

// IsCredentialKey tells whether a key, of either set, names something that gives
// access or belongs to a credential. Such a key goes into Secrets only, never into
// status.bucketInfo, an Intent, a log, an event or an error.
func IsCredentialKey(key string) bool {
	switch key {
	case KeyS3AccessKeyID, KeyS3AccessSecretKey,
		KeyAzureAccessToken, KeyAzureExpiryTimestamp,
		KeyGCSAccessID, KeyGCSAccessSecret, KeyGCSPrivateKeyName, KeyGCSServiceAccount,
		ClientKeyS3AccessKeyID, ClientKeyS3AccessSecretKey,
		ClientKeyAzureAccessToken, ClientKeyAzureExpiryTimestamp,
		ClientKeyGCSAccessID, ClientKeyGCSAccessSecret, ClientKeyGCSPrivateKeyName, ClientKeyGCSServiceAccount:
		return true
	}
	return false
}
